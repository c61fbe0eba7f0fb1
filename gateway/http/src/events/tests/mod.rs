#![expect(unreachable_pub, reason = "two of the files belong to tests of other crates")]

mod sockets;
#[path = "../../../../feed/tests/support.rs"]
mod support;
#[path = "../../../../../projections/history/tests/world/mod.rs"]
mod world;

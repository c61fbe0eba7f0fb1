#![expect(unreachable_pub, reason = "one of the files belongs to tests of another crate")]

mod sockets;
#[path = "../../../../feed/tests/support.rs"]
mod support;

mod sockets;
#[path = "../../../../feed/tests/support.rs"]
mod support;
#[path = "../../../../../projections/history/tests/world/mod.rs"]
mod world;

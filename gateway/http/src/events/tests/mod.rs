mod resume;
mod shape;
mod sockets;
mod support;
mod waiting;
#[path = "../../../../../projections/history/tests/world/mod.rs"]
mod world;

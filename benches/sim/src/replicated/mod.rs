//! The second layer: real consensus over the real segment store, each server on a simulated disk and simulated links, in
//! virtual time on one thread.
//!
//! What stands on the log is the real sequencer, fold, images and event feed; clients write to registers as in the first
//! layer. There are no nodes and no workers: what is asked of them lies above the log. Read `world.rs` first, then
//! `server.rs` for what outlives a process, `process.rs` for what does not, `fault.rs` for what happens to them.

mod calm;
mod client;
mod disk;
mod fault;
mod members;
mod options;
mod process;
mod reader;
mod scene;
mod server;
mod world;

pub use world::run;

//! The first layer: a whole cluster on one thread, over a log that delays, commits and loses as the seed says.
//!
//! Read `world.rs` first, then `server.rs` for what is real in a server, `log.rs` for what is not.

pub(crate) mod call;
pub(crate) mod client;
mod faults;
mod images;
mod leadership;
mod log;
mod network;
mod node;
mod operations;
mod readers;
pub(crate) mod rest;
pub(crate) mod server;
mod task;
mod worker;
pub(crate) mod world;

pub use world::run;

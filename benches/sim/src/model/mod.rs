//! The first layer: a whole cluster on one thread, over a log that delays, commits and loses as the seed says.
//!
//! Read `world.rs` first, then `server.rs` for what is real in a server, `log.rs` for what is not.

mod call;
mod client;
mod faults;
mod images;
mod leadership;
mod log;
mod network;
mod node;
mod operations;
mod readers;
mod rest;
mod server;
mod task;
mod worker;
mod world;

pub use world::run;

//! Composition: opens the log, the state, the loops and the speakers, and decides nothing.
//!
//! Read `start.rs` for what a server is made of, and [`rpc`] for how node agents talk to it.

pub mod autopilot;
pub mod cluster;
pub mod gossip;
mod link;
mod lone;
pub mod rpc;
pub mod servers;
mod sessions;
pub mod snapshot_file;
mod start;

pub use sessions::Sessions;
pub use start::{Server, Settings, StartError};

//! Composition: opens the log, the state, the loops and the speakers, and decides nothing.
//!
//! Read `start.rs` for what a server is made of, and [`rpc`] for how node agents talk to it.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod autopilot;
pub mod cluster;
mod consensus;
mod door;
pub mod gossip;
mod identity;
mod link;
pub mod rpc;
mod scrub;
pub mod servers;
mod sessions;
pub mod snapshot_file;
mod start;
mod states;

pub use sessions::Sessions;
pub use start::{ClusterSettings, GossipSettings, Halted, Limits, Server, Settings, StartError, log_dir};

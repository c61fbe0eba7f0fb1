//! Load on a server that speaks Nomad's API, and what came of it: `sojourn bench`.
//!
//! [`cluster`] runs against any server over HTTP and the node RPC; it is one more user of them and knows nothing of what is
//! behind. The generator shares the processors with what it measures, so it is cheap: requests are bytes that were made
//! once, answers and events are looked through and not parsed. [`plan`] runs the scheduler alone, on states of [`world`]. Read
//! `cluster.rs` next.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod arrivals;
mod calibration;
mod cleanup;
pub mod cluster;
mod fleet;
mod http;
mod job;
mod latency;
mod options;
pub mod plan;
mod process;
mod report;
mod stop;
mod stream;
mod submit;
mod tracker;
pub mod world;

pub use options::{ALLOCS_MAX, ClusterOptions, Load, Ramp, Wait};
pub use report::ClusterReport;

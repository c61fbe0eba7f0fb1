//! The node agent: describes the host, keeps contact with the servers, runs what they assign.
//!
//! A program that embeds it makes [`NodeSettings`], starts an [`Agent`], and calls [`executor::main`] when it is
//! itself started as an executor. No HTTP lives here, no scheduling, and no rule about jobs beyond what running them
//! takes: what the servers decided is done or rejected with a reason.
//!
//! Read [`agent`] for the whole, then `alloc/runner.rs` and `task/runner.rs` for the life of an allocation, and
//! `alloc/hooks` and `task/hooks` for the steps around it. `DESIGN.md` says how to add a driver or a hook.
//! The rules that they apply are pure functions beside them: [`task::restart`], [`task::lifecycle`],
//! [`task::events`], [`task::environment`], [`alloc::status`], [`alloc::health`].

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod agent;
pub mod alloc;
pub mod allocs;
pub mod artifacts;
pub mod clock;
mod contact;
pub mod context;
pub mod csi;
pub mod dns;
pub mod drain;
pub mod driver;
mod driver_watch;
pub mod drivers;
pub mod figures;
pub mod files;
mod fingerprint;
mod heartbeat;
pub mod hook;
pub mod host_volumes;
mod http_answer;
mod identity;
pub mod layout;
pub mod log_shipping;
pub mod meta;
pub mod network;
mod plugins;
mod programs;
mod pull;
mod quotas;
mod remote;
mod returned;
pub mod rpc;
mod samples;
mod sampling;
mod secret_plugins;
pub mod server;
pub mod services;
pub mod settings;
mod stats;
pub mod store;
pub mod task;
mod task_api;
pub mod templates;
#[cfg(test)]
mod testing;
pub mod updates;
pub mod users;
pub mod vault;

pub use agent::{Agent, AgentError, LocalNode};
pub use contact::{Beat, ServerContact};
pub use fingerprint::cloud;
pub use heartbeat::{Missed, wait_after_miss};
pub use identity::node_id;
pub use rpc::WireServers;
pub use settings::NodeSettings;
pub use task_api::TaskApi;

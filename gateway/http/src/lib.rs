//! The HTTP API, version 1: routes over a running [`control::Control`].
//!
//! Here live reading requests, waiting for newer state, writing answers and the one table that turns rejections
//! into status codes. What must never live here: a rule about jobs or nodes (those are in `state`), a socket
//! or a file (those are opened by `server`), a field name of Nomad's API (those are in `api` and `model`).
//!
//! Read `server.rs` first, then `routes/nodes.rs` for what a route file looks like, then `error.rs`.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod access;
mod answer;
mod app_state;
mod audit_layer;
mod blocking;
mod cluster_admin;
mod cors;
mod elsewhere;
mod error;
pub mod events;
mod forks;
mod frames;
mod gate;
mod node_rpc;
mod page;
mod path;
mod regions;
mod rendering;
mod request;
mod request_stats;
mod rewriting;
mod routes;
mod sealing;
mod storage;
mod tables;
mod view;

pub use access::AccessSettings;
pub use app_state::{AgentInfo, Api, NOMAD_VERSION};
pub use blocking::WAITING_READS_MAX;
pub use cluster_admin::{
    ClusterAdmin, ClusterError, Entries, FileStream, GossipKeys, HistoryFiles, PeerName, SnapshotFile,
    Snapshots,
};
pub use elsewhere::OtherHistory;
pub use error::Failure;
pub use events::history_line;
pub use gate::Gate;
pub use jobspec::ImpliedIdentities;
pub use node_rpc::{FrameStream, NodeRoutes, NodeRpc, NodeRpcError, frames};
pub use regions::{REGION, RegionError, Regions};
pub use routes::{history_file, router};
pub use storage::Storage;
pub use tables::{Rows as TableRows, tables};
pub use ui::Folder as PageFolder;

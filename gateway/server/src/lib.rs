//! Composition: opens the log, the state, the loops and the speakers, and decides nothing.
//!
//! Read `start.rs` for what a server is made of, and [`rpc`] for how node agents talk to it.

#![warn(unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod autopilot;
mod claims;
pub mod cluster;
mod consensus;
mod dropped_history;
pub mod gossip;
mod gossip_keyring;
mod identity;
mod key_trees;
mod log_files;
mod lost_tail;
mod node_connections;
mod node_router;
mod open_log;
mod peers_file;
mod published_state;
mod region_links;
mod release;
mod replication;
mod rollouts;
mod root_keys;
pub mod rpc;
mod scrub;
mod server_calls;
pub mod server_connections;
mod settings;
pub mod snapshot_file;
mod start;

pub use bucket::{Address as BucketAddress, Settings as BucketSettings, Url};
pub use delivery::AddressRules;
pub use http_gateway::{AccessSettings, NodeRoutes, PageFolder};
pub use http_gateway::{history_file, history_line, tables};
pub use identity::lose_up_to;
pub use keyring::RootKeySettings;
pub use lost_tail::{LostTail, lost_tail};
pub use node_connections::NodeConnections;
pub use open_log::log_dir;
pub use raft::{LogEnd, Member as LoggedMember, RETENTION, Retention, log_end, logged_members};
pub use settings::{
    Archive, ArchivePlace, ClusterSettings, FederationSettings, GossipSettings, HistorySettings,
    KEEP_MAX_BYTES, Limits, Settings,
};
pub use start::{Halted, Server, StartError};

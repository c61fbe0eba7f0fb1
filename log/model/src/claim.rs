//! Claims: which allocations have which volumes of storage plugins, and what has to be undone when they have ended.

use rkyv::{Archive, Deserialize, Serialize};

use crate::object::NodeId;

/// How an allocation has a CSI volume. It holds what it takes to give the volume back when node and allocation are known no
/// more.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct CsiClaim {
    pub node: NodeId,
    pub read_only: bool,
    pub access_mode: String,
    pub attachment_mode: String,
    pub plugin: String,
    /// What the plugin calls the volume.
    pub external_volume: String,
    /// What the plugin calls the node.
    pub external_node: String,
    /// A controller attaches the volume to the node, and has to detach it.
    pub attached: bool,
}

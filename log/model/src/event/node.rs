//! What happened to nodes.

use base::{Duration, Index, Time};
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::document::NodeEvent;
use crate::object::{DrainStatus, Eligibility, NodeId, NodeStatus};

/// A new node registered.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeRegistered {
    pub node: NodeId,
    pub document: Doc,
    pub computed_class: String,
    /// BLAKE3 of the node's secret: the secret itself never stands in the log.
    pub secret_hash: [u8; 32],
}

/// A known node sent a changed description of itself. Its status does not move.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeUpdated {
    pub node: NodeId,
    pub document: Doc,
    pub computed_class: String,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeStatusChanged {
    pub node: NodeId,
    pub from: NodeStatus,
    pub to: NodeStatus,
    pub message: Option<NodeMessage>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeEligibilityChanged {
    pub node: NodeId,
    pub to: Eligibility,
    pub message: NodeMessage,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeMessagesEmitted {
    pub node: NodeId,
    pub messages: Vec<NodeMessage>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeDeregistered {
    pub node: NodeId,
}

/// The node reported its allocations: what it reports from here on is newer than its silence.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeAllocsReported {
    pub node: NodeId,
}

/// A node is to be drained, and takes nothing new.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeDrainStarted {
    pub node: NodeId,
    pub order: DrainOrder,
    pub message: NodeMessage,
}

/// The drain was changed.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeDrainUpdated {
    pub node: NodeId,
    pub order: DrainOrder,
    pub message: NodeMessage,
}

/// The drain is complete, or was canceled.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeDrainEnded {
    pub node: NodeId,
    pub status: DrainStatus,
    /// It takes work again.
    pub eligible: bool,
    /// What is said about it from here on; if empty, what was said before.
    pub meta: Vec<(String, String)>,
    pub accessor: String,
    pub message: NodeMessage,
}

/// How a node is to be drained.
#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct DrainOrder {
    /// Zero: no limit. Below zero: everything goes at once.
    pub deadline: Duration,
    /// When what still runs is stopped; zero without a limit.
    pub force_at: Time,
    pub ignore_system_jobs: bool,
    pub meta: Vec<(String, String)>,
    /// Who asked.
    pub accessor: String,
}

/// An entry of a node's own event list.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeMessage {
    pub text: String,
    pub subsystem: String,
    pub details: Vec<(String, String)>,
    /// When it happened by the reporter's clock; kept as data, never used for order.
    pub time: Time,
}

impl NodeMessage {
    pub fn new(subsystem: &str, text: &str, time: Time) -> NodeMessage {
        NodeMessage { text: text.to_string(), subsystem: subsystem.to_string(), details: Vec::new(), time }
    }

    pub fn document(&self, created: Index) -> NodeEvent {
        NodeEvent {
            message: self.text.clone(),
            subsystem: self.subsystem.clone(),
            details: self.details.iter().cloned().collect(),
            timestamp: self.time.into(),
            create_index: created.0,
        }
    }
}

//! What operators ask and set: the raft cluster, its autopilot, and how servers join.

use model::document::shape::is_zero;
use model::document::{List, Map, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `RaftConfiguration` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RaftConfiguration {
    pub servers: List<RaftServer>,
    pub index: u64,
}

/// `RaftServer` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RaftServer {
    #[serde(rename = "ID")]
    pub id: String,
    pub node: String,
    pub address: String,
    pub leader: bool,
    pub voter: bool,
    pub raft_protocol: String,
}

/// How far an upgrade of the servers has come. Ours alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpgradeStatus {
    /// What the cluster writes: servers that do not know this epoch cannot follow.
    pub epoch: u64,
    /// What it can be raised to: every server knows it. 0 while the release of one is not known.
    pub next: u64,
    /// What the newest release among the servers knows.
    pub newest: u64,
    /// All servers know the newest epoch, and the cluster is there.
    pub finished: bool,
    /// Which servers are behind.
    pub problems: Vec<String>,
    pub servers: Vec<UpgradeServer>,
}

/// A server of the raft cluster, and its release. Ours alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpgradeServer {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub address: String,
    pub version: String,
    /// The newest one that it knows; 0 if that is not known.
    pub epoch: u64,
    pub status: String,
    pub voter: bool,
}

/// The cluster's epoch after an upgrade was finished. Ours alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpgradeRaised {
    pub epoch: u64,
    /// False if it was there already.
    pub raised: bool,
    pub index: u64,
}

/// `LeadershipTransferResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LeadershipTransferResponse {
    pub from: RaftServer,
    pub to: RaftServer,
    pub noop: bool,
    /// Always null.
    pub err: Value,
}

/// `AutopilotConfiguration` of Nomad's API. Durations are written like `10s`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AutopilotConfiguration {
    pub cleanup_dead_servers: bool,
    pub last_contact_threshold: String,
    pub max_trailing_logs: u64,
    pub min_quorum: u32,
    pub server_stabilization_time: String,
    pub enable_redundancy_zones: bool,
    pub disable_upgrade_migration: bool,
    pub enable_custom_upgrades: bool,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `OperatorHealthReply` of Nomad's API, without what only enterprise releases have.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OperatorHealthReply {
    pub healthy: bool,
    pub failure_tolerance: i64,
    pub servers: List<ServerHealth>,
    pub leader: String,
    pub voters: List<String>,
}

/// `ServerHealth` of Nomad's API. `LastContact` is a duration, like `50ms`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServerHealth {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub address: String,
    pub serf_status: String,
    pub version: String,
    pub leader: bool,
    pub last_contact: String,
    pub last_term: u64,
    pub last_index: u64,
    pub healthy: bool,
    pub voter: bool,
    pub stable_since: Timestamp,
}

/// The answer of `PUT /v1/agent/join`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinResponse {
    #[serde(rename = "num_joined")]
    pub joined: u64,
    pub error: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub warning: String,
}

/// `KeyringRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyringRequest {
    /// A key of gossip, in base64.
    pub key: String,
}

/// `KeyringResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyringResponse {
    /// What went wrong, by the server's name.
    pub messages: Map<String, String>,
    /// How many servers have each key.
    pub keys: Map<String, i64>,
    /// Servers that were asked.
    pub num_nodes: i64,
}

/// `VaultWorkloadIdentityUpgradeCheck` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct VaultWorkloadIdentityUpgradeCheck {
    pub jobs_without_vault_identity: Vec<crate::JobListStub>,
    pub outdated_nodes: Vec<crate::NodeListStub>,
    /// Tokens that servers of older releases made for tasks. There are none here.
    pub vault_tokens: Vec<Value>,
}

use serde::{Deserialize, Serialize};

use super::shape::{Bytes, Duration, Map, duration_or_empty};
use crate::codec::compiled_once;

compiled_once! { NodePool }

/// `NodePool` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct NodePool {
    pub name: String,
    pub description: String,
    pub meta: Map<String, String>,
    /// Clients send text like `24h`, those written in Go empty text when it is unset; the answer is in nanoseconds.
    #[serde(rename = "NodeIdentityTTL", deserialize_with = "duration_or_empty")]
    pub node_identity_ttl: Duration,
    pub scheduler_configuration: Option<NodePoolSchedulerConfiguration>,
    pub create_index: u64,
    pub modify_index: u64,
    pub hash: Bytes,
}

/// `NodePoolSchedulerConfiguration` of Nomad's API: what differs in this pool from the cluster's own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodePoolSchedulerConfiguration {
    /// Empty: as in the cluster.
    pub scheduler_algorithm: String,
    pub memory_oversubscription_enabled: Option<bool>,
}

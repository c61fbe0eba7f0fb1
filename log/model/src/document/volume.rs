use std::fmt;

use serde::{Deserialize, Serialize};

use super::node::CSITopology;
use super::shape::{List, Map, is_zero};
use super::task::{CSIMountOptions, Constraint};
use crate::codec::compiled_once;

compiled_once! { CSIVolume HostVolume }

/// `CSIVolume` of Nomad's API, as it is registered. What follows from nodes and allocations (plugins, claims) is
/// not a part of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct CSIVolume {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "ExternalID")]
    pub external_id: String,
    pub namespace: String,
    pub requested_topologies: Option<CSITopologyRequest>,
    pub topologies: List<CSITopology>,
    pub access_mode: String,
    pub attachment_mode: String,
    pub mount_options: Option<CSIMountOptions>,
    pub secrets: CsiSecrets,
    pub parameters: Map<String, String>,
    pub context: Map<String, String>,
    pub capacity: i64,
    pub requested_capacity_min: i64,
    pub requested_capacity_max: i64,
    pub requested_capabilities: List<CSIVolumeCapability>,
    #[serde(rename = "CloneID")]
    pub clone_id: String,
    #[serde(rename = "SnapshotID")]
    pub snapshot_id: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
}

/// Secrets on their way to a plugin. They must not get into a log.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CsiSecrets(pub Map<String, String>);

impl fmt::Debug for CsiSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CsiSecrets({} hidden)", self.0.len())
    }
}

/// `CSITopologyRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSITopologyRequest {
    pub required: List<CSITopology>,
    pub preferred: List<CSITopology>,
}

/// `CSIVolumeCapability` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeCapability {
    pub access_mode: String,
    pub attachment_mode: String,
}

/// `HostVolume` of Nomad's API: one that was made on a node, not one of its configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct HostVolume {
    pub namespace: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub node_pool: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub constraints: List<Constraint>,
    pub requested_capacity_min_bytes: i64,
    pub requested_capacity_max_bytes: i64,
    pub capacity_bytes: i64,
    pub requested_capabilities: List<HostVolumeCapability>,
    #[serde(skip_serializing_if = "is_zero")]
    pub parameters: Map<String, String>,
    pub host_path: String,
    pub state: String,
}

/// `HostVolumeCapability` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeCapability {
    pub attachment_mode: String,
    pub access_mode: String,
}

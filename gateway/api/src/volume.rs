//! Volumes and the plugins that mount them.

use model::document::{
    AllocationListStub, CSIInfo, CSITopology, CSIVolume, HostVolume, List, Map, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use model::document::shape::{is_zero, object};

/// `CSIVolumeListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeListStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    pub name: String,
    #[serde(rename = "ExternalID")]
    pub external_id: String,
    pub topologies: List<CSITopology>,
    pub access_mode: String,
    pub attachment_mode: String,
    pub current_readers: i64,
    pub current_writers: i64,
    pub schedulable: bool,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub provider: String,
    pub controller_required: bool,
    pub controllers_healthy: i64,
    pub controllers_expected: i64,
    pub nodes_healthy: i64,
    pub nodes_expected: i64,
    pub resource_exhausted: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// `CSIVolume` of Nomad's API, with what follows from nodes and allocations.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CSIVolumeDetail {
    #[serde(flatten)]
    pub volume: CSIVolume,
    /// Each id with null: the allocations stand in the list below.
    #[serde(serialize_with = "object")]
    pub read_allocs: Map<String, Value>,
    #[serde(serialize_with = "object")]
    pub write_allocs: Map<String, Value>,
    pub allocations: Vec<AllocationListStub>,
    pub schedulable: bool,
    pub provider: String,
    pub provider_version: String,
    pub controller_required: bool,
    pub controllers_healthy: i64,
    pub controllers_expected: i64,
    pub nodes_healthy: i64,
    pub nodes_expected: i64,
    pub resource_exhausted: Timestamp,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// `CSIVolumeRegisterRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeRegisterRequest {
    pub volumes: List<CSIVolume>,
    pub policy_override: bool,
}

/// `CSIVolumeRegisterResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeRegisterResponse {
    pub volumes: List<CSIVolume>,
    pub warnings: String,
    pub index: u64,
    pub last_contact: i64,
    pub known_leader: bool,
    pub next_token: String,
}

/// `CSIVolumeCreateRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeCreateRequest {
    pub volumes: List<CSIVolume>,
    pub policy_override: bool,
}

/// `CSIVolumeCreateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeCreateResponse {
    pub volumes: List<CSIVolume>,
    pub warnings: String,
    pub index: u64,
    pub last_contact: i64,
    pub known_leader: bool,
    pub next_token: String,
}

/// `CSIVolumeExternalStub` of Nomad's API: a volume as its plugin knows it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeExternalStub {
    #[serde(rename = "ExternalID")]
    pub external_id: String,
    pub capacity_bytes: i64,
    pub volume_context: Map<String, String>,
    #[serde(rename = "CloneID")]
    pub clone_id: String,
    #[serde(rename = "SnapshotID")]
    pub snapshot_id: String,
    #[serde(rename = "PublishedExternalNodeIDs")]
    pub published_external_node_ids: List<String>,
    pub is_abnormal: bool,
    pub status: String,
}

/// `CSIVolumeListExternalResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIVolumeListExternalResponse {
    pub volumes: List<CSIVolumeExternalStub>,
    pub next_token: String,
}

/// `CSISnapshot` of Nomad's API.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSISnapshot {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "ExternalSourceVolumeID")]
    pub external_source_volume_id: String,
    pub size_bytes: i64,
    /// Seconds since 1970.
    pub create_time: i64,
    pub is_ready: bool,
    #[serde(rename = "SourceVolumeID")]
    pub source_volume_id: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub name: String,
    pub secrets: Map<String, String>,
    pub parameters: Map<String, String>,
}

/// Without its secrets, which must not get into a log.
impl std::fmt::Debug for CSISnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CSISnapshot").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// `CSISnapshotCreateRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSISnapshotCreateRequest {
    pub snapshots: List<CSISnapshot>,
}

/// `CSISnapshotCreateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSISnapshotCreateResponse {
    pub snapshots: List<CSISnapshot>,
    pub index: u64,
    pub last_contact: i64,
    pub known_leader: bool,
    pub next_token: String,
}

/// `CSISnapshotListResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSISnapshotListResponse {
    pub snapshots: List<CSISnapshot>,
    pub next_token: String,
    pub index: u64,
    pub last_contact: i64,
    pub known_leader: bool,
}

/// `HostVolumeStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeStub {
    pub namespace: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    pub node_pool: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub capacity_bytes: i64,
    pub state: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// `HostVolume` of Nomad's API, with who uses it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostVolumeDetail {
    #[serde(flatten)]
    pub volume: HostVolume,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub allocations: Vec<AllocationListStub>,
}

/// `HostVolumeRegisterRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeRegisterRequest {
    pub volume: Option<HostVolume>,
    pub policy_override: bool,
}

/// `HostVolumeRegisterResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostVolumeRegisterResponse {
    pub volume: Option<HostVolumeDetail>,
    pub warnings: String,
    pub index: u64,
}

/// `HostVolumeDeleteResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeDeleteResponse {
    pub index: u64,
}

/// `CSIPluginListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIPluginListStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub provider: String,
    pub controller_required: bool,
    pub controllers_healthy: i64,
    pub controllers_expected: i64,
    pub nodes_healthy: i64,
    pub nodes_expected: i64,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `CSIPlugin` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIPlugin {
    #[serde(rename = "ID")]
    pub id: String,
    pub provider: String,
    pub version: String,
    pub controller_required: bool,
    /// By the id of the node.
    #[serde(serialize_with = "object")]
    pub controllers: Map<String, CSIInfo>,
    #[serde(serialize_with = "object")]
    pub nodes: Map<String, CSIInfo>,
    pub allocations: Vec<AllocationListStub>,
    pub controllers_healthy: i64,
    pub controllers_expected: i64,
    pub nodes_healthy: i64,
    pub nodes_expected: i64,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    /// Jobs that run it; not distinguished here.
    pub controller_jobs: Map<String, Map<String, Value>>,
    pub node_jobs: Map<String, Map<String, Value>>,
}

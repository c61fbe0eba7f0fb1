//! Volumes of storage plugins: what nodes ask of servers, and servers of the nodes that have such plugins.

use std::fmt;

use serde::{Deserialize, Serialize};

use model::document::{
    CSIMountOptions, CSITopology, CSITopologyRequest, CSIVolume, CSIVolumeCapability, List, Map,
};

pub use model::document::CsiSecrets;

use super::{QueryMeta, WriteRequest};

/// `CSIVolume.Claim`. How the volume is used follows from the job; what the node says about it is not believed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiVolumeClaimRequest {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    #[serde(rename = "AllocationID")]
    pub allocation_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "ExternalNodeID")]
    pub external_node_id: String,
    /// 0 reads, 1 writes.
    pub claim: i64,
    pub access_mode: String,
    pub attachment_mode: String,
    pub state: i64,
    #[serde(flatten)]
    pub write: WriteRequest,
}

/// Its answer: the volume, secrets included, and what its controller plugin has to say to the node plugin.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiVolumeClaimResponse {
    pub publish_context: Map<String, String>,
    pub volume: Option<CSIVolume>,
    /// The volume has grown since a node mounted it, and has to be expanded. Our own: Nomad's servers say nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<CsiCapacityRange>,
    #[serde(flatten)]
    pub meta: QueryMeta,
}

impl fmt::Debug for CsiVolumeClaimResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.volume.as_ref().map(|volume| &volume.id);
        f.debug_struct("CsiVolumeClaimResponse").field("volume", &id).finish_non_exhaustive()
    }
}

/// `CSIVolume.Unpublish`: the node has given the volume back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiVolumeUnpublishRequest {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub claim: Option<CsiVolumeClaim>,
    #[serde(flatten)]
    pub write: WriteRequest,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiVolumeClaim {
    #[serde(rename = "AllocationID")]
    pub allocation_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "ExternalNodeID")]
    pub external_node_id: String,
    pub mode: i64,
    pub access_mode: String,
    pub attachment_mode: String,
    /// See [`NODE_DETACHED`].
    pub state: i64,
}

/// The state of a claim whose node has unmounted the volume.
pub const NODE_DETACHED: i64 = 1;

/// `CSIVolume.Expanded`, our own: the node has expanded the volume, as [`CsiVolumeClaimResponse::expansion`] asked for.
/// Answered with nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiVolumeExpandedRequest {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub required_bytes: i64,
    #[serde(flatten)]
    pub write: WriteRequest,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CsiVolumeUnpublishResponse {
    #[serde(flatten)]
    pub meta: QueryMeta,
}

/// Which plugin of which node is asked; part of every `CSI.Controller…` call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiControllerQuery {
    #[serde(rename = "ControllerNodeID")]
    pub controller_node_id: String,
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
}

/// `CSI.ControllerAttachVolume`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiAttachRequest {
    /// As the plugin calls it.
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    #[serde(rename = "ClientCSINodeID")]
    pub client_csi_node_id: String,
    pub attachment_mode: String,
    pub access_mode: String,
    pub mount_options: Option<CSIMountOptions>,
    pub read_only: bool,
    pub secrets: CsiSecrets,
    pub volume_context: Map<String, String>,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiAttachResponse {
    pub publish_context: Map<String, String>,
}

/// `CSI.ControllerDetachVolume`. Answered with nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiDetachRequest {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    #[serde(rename = "ClientCSINodeID")]
    pub client_csi_node_id: String,
    pub secrets: CsiSecrets,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// `CSI.ControllerValidateVolume`. Answered with nothing; an error says why not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiValidateRequest {
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub volume_capabilities: List<CSIVolumeCapability>,
    pub mount_options: Option<CSIMountOptions>,
    pub secrets: CsiSecrets,
    pub parameters: Map<String, String>,
    pub context: Map<String, String>,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// `CSI.ControllerCreateVolume`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiCreateRequest {
    pub name: String,
    pub volume_capabilities: List<CSIVolumeCapability>,
    pub mount_options: Option<CSIMountOptions>,
    pub parameters: Map<String, String>,
    pub secrets: CsiSecrets,
    pub capacity_min: i64,
    pub capacity_max: i64,
    #[serde(rename = "SnapshotID")]
    pub snapshot_id: String,
    #[serde(rename = "CloneID")]
    pub clone_id: String,
    pub requested_topologies: Option<CSITopologyRequest>,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiCreateResponse {
    #[serde(rename = "ExternalVolumeID")]
    pub external_volume_id: String,
    pub capacity_bytes: i64,
    pub volume_context: Map<String, String>,
    pub topologies: List<CSITopology>,
}

/// `CSI.ControllerDeleteVolume`. Answered with nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiDeleteRequest {
    #[serde(rename = "ExternalVolumeID")]
    pub external_volume_id: String,
    pub secrets: CsiSecrets,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// `CSI.ControllerExpandVolume`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiExpandRequest {
    #[serde(rename = "ExternalVolumeID")]
    pub external_volume_id: String,
    pub capacity_range: CsiCapacityRange,
    pub secrets: CsiSecrets,
    pub volume_capability: Option<CSIVolumeCapability>,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// In bytes; 0 says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiCapacityRange {
    pub required_bytes: i64,
    pub limit_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiExpandResponse {
    pub capacity_bytes: i64,
    pub node_expansion_required: bool,
}

/// `CSI.ControllerListVolumes` and `CSI.ControllerListSnapshots`, which alone has secrets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiListRequest {
    pub max_entries: i32,
    pub starting_token: String,
    pub secrets: CsiSecrets,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// Its answer. `E` is Nomad's `CSIVolumeExternalStub` or `CSISnapshot`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CsiListResponse<E> {
    #[serde(default)]
    pub entries: List<E>,
    #[serde(default)]
    pub next_token: String,
}

/// `CSI.ControllerCreateSnapshot`. Answered with Nomad's `CSISnapshot`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiSnapshotRequest {
    #[serde(rename = "ExternalSourceVolumeID")]
    pub external_source_volume_id: String,
    pub name: String,
    pub secrets: CsiSecrets,
    pub parameters: Map<String, String>,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// `CSI.ControllerDeleteSnapshot`. Answered with nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiDeleteSnapshotRequest {
    #[serde(rename = "ID")]
    pub id: String,
    pub secrets: CsiSecrets,
    #[serde(flatten)]
    pub query: CsiControllerQuery,
}

/// `CSI.NodeDetachVolume`: the node is to unmount what an allocation has left. Answered with nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiNodeDetachRequest {
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub volume_namespace: String,
    #[serde(rename = "ExternalID")]
    pub external_id: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub attachment_mode: String,
    pub access_mode: String,
    pub read_only: bool,
}

/// `CSI.NodeExpandVolume`: the file system on a volume is to follow the volume that has grown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiNodeExpandRequest {
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    #[serde(rename = "VolumeID")]
    pub volume_id: String,
    pub volume_namespace: String,
    #[serde(rename = "ExternalID")]
    pub external_id: String,
    pub capacity: CsiCapacityRange,
    pub secrets: CsiSecrets,
    pub claim: Option<CsiVolumeClaim>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CsiNodeExpandResponse {
    pub capacity_bytes: i64,
}

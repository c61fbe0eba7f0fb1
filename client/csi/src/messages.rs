//! The messages of the Container Storage Interface, version 1, with the numbers of its public description. Fields that
//! nobody here reads or sends are left out: what is not known is skipped.
//!
//! Messages that carry secrets show none of their fields: they must not get into a log.

use std::collections::BTreeMap;
use std::fmt;

/// Keys and values that only the plugin may see.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(pub BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} hidden)", self.0.len())
    }
}

impl Secrets {
    /// The text without any of the values.
    pub(crate) fn hide_in(&self, mut text: String) -> String {
        for secret in self.0.values().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret.as_str(), "<hidden>");
        }
        text
    }
}

macro_rules! hidden {
    ($($name:ident)+) => {
        $(impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), " { .. }"))
            }
        })+
    };
}

hidden! {
    CreateVolumeRequest DeleteVolumeRequest ControllerPublishVolumeRequest ControllerUnpublishVolumeRequest
    ValidateVolumeCapabilitiesRequest ControllerExpandVolumeRequest CreateSnapshotRequest DeleteSnapshotRequest
    ListSnapshotsRequest NodeStageVolumeRequest NodePublishVolumeRequest NodeExpandVolumeRequest
}

/// A request or an answer without fields.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetPluginInfoResponse {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub vendor_version: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetPluginCapabilitiesResponse {
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<PluginCapability>,
}

/// A plugin that can expand volumes says so beside its services.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PluginCapability {
    #[prost(message, optional, tag = "1")]
    pub service: Option<CapabilityType>,
}

/// The `Service` of a plugin's capability, and the `RPC` of those of a controller or a node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CapabilityType {
    #[prost(int32, tag = "1")]
    pub kind: i32,
}

/// Of a controller or of a node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct GetCapabilitiesResponse {
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<RpcCapability>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RpcCapability {
    #[prost(message, optional, tag = "1")]
    pub rpc: Option<CapabilityType>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ProbeResponse {
    /// Without it the plugin is ready.
    #[prost(message, optional, tag = "1")]
    pub ready: Option<BoolValue>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BoolValue {
    #[prost(bool, tag = "1")]
    pub value: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeCapability {
    #[prost(oneof = "AccessType", tags = "1, 2")]
    pub access_type: Option<AccessType>,
    #[prost(message, optional, tag = "3")]
    pub access_mode: Option<AccessMode>,
}

#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum AccessType {
    #[prost(message, tag = "1")]
    Block(Nothing),
    #[prost(message, tag = "2")]
    Mount(MountVolume),
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MountVolume {
    #[prost(string, tag = "1")]
    pub fs_type: String,
    #[prost(string, repeated, tag = "2")]
    pub mount_flags: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct AccessMode {
    #[prost(int32, tag = "1")]
    pub mode: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CapacityRange {
    #[prost(int64, tag = "1")]
    pub required_bytes: i64,
    #[prost(int64, tag = "2")]
    pub limit_bytes: i64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Topology {
    #[prost(btree_map = "string, string", tag = "1")]
    pub segments: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TopologyRequirement {
    #[prost(message, repeated, tag = "1")]
    pub requisite: Vec<Topology>,
    #[prost(message, repeated, tag = "2")]
    pub preferred: Vec<Topology>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeContentSource {
    #[prost(oneof = "SourceType", tags = "1, 2")]
    pub source: Option<SourceType>,
}

#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum SourceType {
    #[prost(message, tag = "1")]
    Snapshot(SourceId),
    #[prost(message, tag = "2")]
    Volume(SourceId),
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SourceId {
    #[prost(string, tag = "1")]
    pub id: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Volume {
    #[prost(int64, tag = "1")]
    pub capacity_bytes: i64,
    #[prost(string, tag = "2")]
    pub volume_id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub volume_context: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub content_source: Option<VolumeContentSource>,
    #[prost(message, repeated, tag = "5")]
    pub accessible_topology: Vec<Topology>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct CreateVolumeRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub capacity_range: Option<CapacityRange>,
    #[prost(message, repeated, tag = "3")]
    pub volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub parameters: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    #[prost(message, optional, tag = "6")]
    pub volume_content_source: Option<VolumeContentSource>,
    #[prost(message, optional, tag = "7")]
    pub accessibility_requirements: Option<TopologyRequirement>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CreateVolumeResponse {
    #[prost(message, optional, tag = "1")]
    pub volume: Option<Volume>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct DeleteVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ControllerPublishVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(string, tag = "2")]
    pub node_id: String,
    #[prost(message, optional, tag = "3")]
    pub volume_capability: Option<VolumeCapability>,
    #[prost(bool, tag = "4")]
    pub readonly: bool,
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub volume_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ControllerPublishVolumeResponse {
    #[prost(btree_map = "string, string", tag = "1")]
    pub publish_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ControllerUnpublishVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(string, tag = "2")]
    pub node_id: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ValidateVolumeCapabilitiesRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub volume_context: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "3")]
    pub volume_capabilities: Vec<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub parameters: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ValidateVolumeCapabilitiesResponse {
    /// Without it the volume cannot be used in that way.
    #[prost(message, optional, tag = "1")]
    pub confirmed: Option<Confirmed>,
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Confirmed {
    #[prost(message, repeated, tag = "2")]
    pub volume_capabilities: Vec<VolumeCapability>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListVolumesRequest {
    #[prost(int32, tag = "1")]
    pub max_entries: i32,
    #[prost(string, tag = "2")]
    pub starting_token: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListVolumesResponse {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<VolumeEntry>,
    #[prost(string, tag = "2")]
    pub next_token: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeEntry {
    #[prost(message, optional, tag = "1")]
    pub volume: Option<Volume>,
    #[prost(message, optional, tag = "2")]
    pub status: Option<VolumeStatus>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeStatus {
    #[prost(string, repeated, tag = "1")]
    pub published_node_ids: Vec<String>,
    #[prost(message, optional, tag = "2")]
    pub volume_condition: Option<VolumeCondition>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeCondition {
    #[prost(bool, tag = "1")]
    pub abnormal: bool,
    #[prost(string, tag = "2")]
    pub message: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ControllerExpandVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(message, optional, tag = "2")]
    pub capacity_range: Option<CapacityRange>,
    #[prost(btree_map = "string, string", tag = "3")]
    pub secrets: BTreeMap<String, String>,
    #[prost(message, optional, tag = "4")]
    pub volume_capability: Option<VolumeCapability>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ControllerExpandVolumeResponse {
    #[prost(int64, tag = "1")]
    pub capacity_bytes: i64,
    #[prost(bool, tag = "2")]
    pub node_expansion_required: bool,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct CreateSnapshotRequest {
    #[prost(string, tag = "1")]
    pub source_volume_id: String,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub parameters: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CreateSnapshotResponse {
    #[prost(message, optional, tag = "1")]
    pub snapshot: Option<Snapshot>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Snapshot {
    #[prost(int64, tag = "1")]
    pub size_bytes: i64,
    #[prost(string, tag = "2")]
    pub snapshot_id: String,
    #[prost(string, tag = "3")]
    pub source_volume_id: String,
    #[prost(message, optional, tag = "4")]
    pub creation_time: Option<Timestamp>,
    #[prost(bool, tag = "5")]
    pub ready_to_use: bool,
}

/// Since 1970.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct DeleteSnapshotRequest {
    #[prost(string, tag = "1")]
    pub snapshot_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct ListSnapshotsRequest {
    #[prost(int32, tag = "1")]
    pub max_entries: i32,
    #[prost(string, tag = "2")]
    pub starting_token: String,
    #[prost(string, tag = "3")]
    pub source_volume_id: String,
    #[prost(string, tag = "4")]
    pub snapshot_id: String,
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListSnapshotsResponse {
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<SnapshotEntry>,
    #[prost(string, tag = "2")]
    pub next_token: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SnapshotEntry {
    #[prost(message, optional, tag = "1")]
    pub snapshot: Option<Snapshot>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeGetInfoResponse {
    #[prost(string, tag = "1")]
    pub node_id: String,
    /// 0 for as many as there are.
    #[prost(int64, tag = "2")]
    pub max_volumes_per_node: i64,
    #[prost(message, optional, tag = "3")]
    pub accessible_topology: Option<Topology>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct NodeStageVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub publish_context: BTreeMap<String, String>,
    #[prost(string, tag = "3")]
    pub staging_target_path: String,
    #[prost(message, optional, tag = "4")]
    pub volume_capability: Option<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub volume_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeUnstageVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(string, tag = "2")]
    pub staging_target_path: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct NodePublishVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(btree_map = "string, string", tag = "2")]
    pub publish_context: BTreeMap<String, String>,
    /// Empty where the plugin stages nothing.
    #[prost(string, tag = "3")]
    pub staging_target_path: String,
    #[prost(string, tag = "4")]
    pub target_path: String,
    #[prost(message, optional, tag = "5")]
    pub volume_capability: Option<VolumeCapability>,
    #[prost(bool, tag = "6")]
    pub readonly: bool,
    #[prost(btree_map = "string, string", tag = "7")]
    pub secrets: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "8")]
    pub volume_context: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeUnpublishVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(string, tag = "2")]
    pub target_path: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct NodeExpandVolumeRequest {
    #[prost(string, tag = "1")]
    pub volume_id: String,
    #[prost(string, tag = "2")]
    pub volume_path: String,
    #[prost(message, optional, tag = "3")]
    pub capacity_range: Option<CapacityRange>,
    #[prost(string, tag = "4")]
    pub staging_target_path: String,
    #[prost(message, optional, tag = "5")]
    pub volume_capability: Option<VolumeCapability>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeExpandVolumeResponse {
    #[prost(int64, tag = "1")]
    pub capacity_bytes: i64,
}

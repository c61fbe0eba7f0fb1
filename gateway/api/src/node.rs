//! Nodes: lists, drain, eligibility, host statistics.

use model::document::shape::{is_zero, object};
use model::document::{
    DrainMetadata, DriverInfo, Duration, HostVolumeInfo, List, Map, NodeReservedResources, NodeResources,
    Timestamp,
};
use serde::{Deserialize, Serialize};

/// `NodeListStub` of Nomad's API.
///
/// The resources are there with `?resources=true`, the attributes (only `os.name`) with `?os=true`; otherwise
/// both are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeListStub {
    pub address: String,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub attributes: Map<String, String>,
    pub datacenter: String,
    pub name: String,
    pub node_class: String,
    pub node_pool: String,
    pub version: String,
    pub drain: bool,
    pub scheduling_eligibility: String,
    pub status: String,
    pub status_description: String,
    pub drivers: Map<String, DriverInfo>,
    #[serde(skip_serializing_if = "is_zero")]
    pub node_resources: Option<NodeResources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved_resources: Option<NodeReservedResources>,
    pub last_drain: Option<DrainMetadata>,
    pub create_index: u64,
    pub modify_index: u64,
    #[serde(serialize_with = "object")]
    pub host_volumes: Map<String, HostVolumeInfo>,
}

/// `NodeUpdateDrainRequest` of Nomad's API.
///
/// Without a `drain_spec` the drain is stopped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateDrainRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub drain_spec: Option<DrainSpec>,
    pub mark_eligible: bool,
    pub meta: Map<String, String>,
}

/// `DrainSpec` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DrainSpec {
    /// Above 0: stop what still runs after this long. 0: wait for ever. Below 0: stop it now.
    pub deadline: Duration,
    pub ignore_system_jobs: bool,
}

/// `NodeDrainUpdateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeDrainUpdateResponse {
    pub node_modify_index: u64,
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub eval_create_index: u64,
    pub index: u64,
}

/// `NodeUpdateEligibilityRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeUpdateEligibilityRequest {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub eligibility: String,
}

/// `NodeEligibilityUpdateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeEligibilityUpdateResponse {
    pub node_modify_index: u64,
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub eval_create_index: u64,
    pub index: u64,
}

/// `NodePurgeResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodePurgeResponse {
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub eval_create_index: u64,
    pub node_modify_index: u64,
    #[serde(rename = "HeartbeatTTL")]
    pub heartbeat_ttl: Duration,
    pub features: u64,
    #[serde(rename = "LeaderRPCAddr")]
    pub leader_rpc_addr: String,
    pub num_nodes: i32,
    pub servers: List<NodeServerInfo>,
    pub scheduling_eligibility: String,
    pub signed_identity: Option<String>,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `HostStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostStats {
    pub memory: Option<HostMemoryStats>,
    #[serde(rename = "CPU")]
    pub cpu: List<HostCPUStats>,
    pub disk_stats: List<HostDiskStats>,
    pub alloc_dir_stats: Option<HostDiskStats>,
    pub device_stats: List<DeviceGroupStats>,
    pub uptime: u64,
    #[serde(rename = "CPUTicksConsumed")]
    pub cpu_ticks_consumed: f64,
    pub timestamp: i64,
}

/// `HostMemoryStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostMemoryStats {
    pub total: u64,
    pub available: u64,
    pub used: u64,
    pub free: u64,
}

/// `HostCPUStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostCPUStats {
    #[serde(rename = "CPU")]
    pub cpu: String,
    pub user: f64,
    pub system: f64,
    pub idle: f64,
}

/// `HostDiskStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostDiskStats {
    pub device: String,
    pub mountpoint: String,
    pub size: u64,
    pub used: u64,
    pub available: u64,
    pub used_percent: f64,
    pub inodes_used_percent: f64,
}

/// `DeviceGroupStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeviceGroupStats {
    pub vendor: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub instance_stats: Map<String, DeviceStats>,
}

/// `DeviceStats` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeviceStats {
    pub summary: Option<StatValue>,
    pub stats: Option<StatObject>,
    pub timestamp: Timestamp,
}

/// `StatObject` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct StatObject {
    pub nested: Map<String, StatObject>,
    pub attributes: Map<String, StatValue>,
}

/// `StatValue` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct StatValue {
    #[serde(skip_serializing_if = "is_zero")]
    pub float_numerator_val: Option<f64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub float_denominator_val: Option<f64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub int_numerator_val: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub int_denominator_val: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub string_val: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub bool_val: Option<bool>,
    #[serde(skip_serializing_if = "is_zero")]
    pub unit: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub desc: String,
}

/// `NodeServerInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeServerInfo {
    #[serde(rename = "RPCAdvertiseAddr")]
    pub rpc_advertise_addr: String,
    #[serde(rename = "RPCMajorVersion")]
    pub rpc_major_version: i32,
    #[serde(rename = "RPCMinorVersion")]
    pub rpc_minor_version: i32,
    pub datacenter: String,
}

use serde::{Deserialize, Serialize};

use super::resource::{NetworkResource, NodeDeviceResource, Resources};
use super::shape::{Duration, List, Map, Timestamp, is_zero, object};
use crate::codec::compiled_once;

compiled_once! { Node }

/// `Node` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Node {
    #[serde(rename = "ID")]
    pub id: String,
    pub datacenter: String,
    pub name: String,
    #[serde(rename = "HTTPAddr")]
    pub http_addr: String,
    #[serde(rename = "TLSEnabled")]
    pub tls_enabled: bool,
    pub attributes: Map<String, String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub resources: Option<Resources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved: Option<Resources>,
    pub node_resources: Option<NodeResources>,
    pub reserved_resources: Option<NodeReservedResources>,
    #[serde(serialize_with = "object")]
    pub links: Map<String, String>,
    pub meta: Map<String, String>,
    pub node_class: String,
    pub node_pool: String,
    pub cgroup_parent: String,
    pub drain: bool,
    pub drain_strategy: Option<DrainStrategy>,
    pub scheduling_eligibility: String,
    pub status: String,
    pub status_description: String,
    pub status_updated_at: i64,
    pub events: List<NodeEvent>,
    pub drivers: Map<String, DriverInfo>,
    #[serde(serialize_with = "object")]
    pub host_volumes: Map<String, HostVolumeInfo>,
    #[serde(rename = "GCVolumesOnNodeGC")]
    pub gc_volumes_on_node_gc: bool,
    pub host_networks: Map<String, HostNetworkInfo>,
    #[serde(rename = "CSIControllerPlugins")]
    pub csi_controller_plugins: Map<String, CSIInfo>,
    #[serde(rename = "CSINodePlugins")]
    pub csi_node_plugins: Map<String, CSIInfo>,
    pub last_drain: Option<DrainMetadata>,
    pub create_index: u64,
    pub modify_index: u64,
    pub node_max_allocs: i64,
    #[serde(rename = "SecretID")]
    pub secret_id: String,
    pub computed_class: String,
    #[serde(rename = "IdentitySigningKeyID")]
    pub identity_signing_key_id: String,
    pub last_missed_heartbeat_index: u64,
    pub last_alloc_update_index: u64,
}

/// `NodeResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeResources {
    pub cpu: NodeCpuResources,
    pub memory: NodeMemoryResources,
    pub disk: NodeDiskResources,
    pub networks: List<NetworkResource>,
    pub devices: List<NodeDeviceResource>,
    pub min_dynamic_port: i64,
    pub max_dynamic_port: i64,
    pub processors: NodeProcessorResources,
    pub node_networks: List<NodeNetworkResource>,
}

/// `NodeCpuResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeCpuResources {
    pub cpu_shares: i64,
    pub total_cpu_cores: u16,
    pub reservable_cpu_cores: List<u16>,
}

/// `NodeMemoryResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeMemoryResources {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
}

/// `NodeDiskResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeDiskResources {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
}

/// `NodeProcessorResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeProcessorResources {
    pub topology: Option<NumaTopology>,
}

/// `NumaTopology` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NumaTopology {
    pub nodes: List<i64>,
    pub distances: List<List<u8>>,
    pub cores: List<NumaCore>,
    pub override_total_compute: u64,
    pub override_withold_compute: u64,
}

/// `NumaCore` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NumaCore {
    #[serde(rename = "SocketID")]
    pub socket_id: u8,
    #[serde(rename = "NodeID")]
    pub node_id: u8,
    #[serde(rename = "ID")]
    pub id: u16,
    pub grade: bool,
    pub disable: bool,
    pub base_speed: u64,
    pub max_speed: u64,
    pub guess_speed: u64,
}

/// `NodeNetworkResource` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeNetworkResource {
    pub mode: String,
    pub device: String,
    pub mac_address: String,
    pub speed: i64,
    pub addresses: List<NodeNetworkAddress>,
}

/// `NodeNetworkAddress` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeNetworkAddress {
    pub family: String,
    pub alias: String,
    pub address: String,
    pub reserved_ports: String,
    pub gateway: String,
}

/// `NodeReservedResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeReservedResources {
    pub cpu: NodeReservedCpuResources,
    pub memory: NodeReservedMemoryResources,
    pub disk: NodeReservedDiskResources,
    pub networks: NodeReservedNetworkResources,
}

/// `NodeReservedCpuResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeReservedCpuResources {
    pub cpu_shares: u64,
    pub reserved_cpu_cores: List<u16>,
}

/// `NodeReservedMemoryResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeReservedMemoryResources {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: u64,
}

/// `NodeReservedDiskResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeReservedDiskResources {
    #[serde(rename = "DiskMB")]
    pub disk_mb: u64,
}

/// `NodeReservedNetworkResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeReservedNetworkResources {
    pub reserved_host_ports: String,
}

/// `DrainStrategy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DrainStrategy {
    pub deadline: Duration,
    pub ignore_system_jobs: bool,
    pub force_deadline: Timestamp,
    pub started_at: Timestamp,
}

/// `NodeEvent` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeEvent {
    pub message: String,
    pub subsystem: String,
    #[serde(serialize_with = "object")]
    pub details: Map<String, String>,
    pub timestamp: Timestamp,
    pub create_index: u64,
}

/// `DriverInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DriverInfo {
    pub attributes: Map<String, String>,
    pub detected: bool,
    pub healthy: bool,
    pub health_description: String,
    pub update_time: Timestamp,
}

/// `HostVolumeInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeInfo {
    pub path: String,
    pub read_only: bool,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
}

/// `HostNetworkInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostNetworkInfo {
    pub name: String,
    #[serde(rename = "CIDR")]
    pub cidr: String,
    pub interface: String,
    pub reserved_ports: String,
}

/// `CSIInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIInfo {
    #[serde(rename = "PluginID")]
    pub plugin_id: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub healthy: bool,
    pub health_description: String,
    pub update_time: Timestamp,
    pub requires_controller_plugin: bool,
    pub requires_topologies: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub controller_info: Option<CSIControllerInfo>,
    #[serde(skip_serializing_if = "is_zero")]
    pub node_info: Option<CSINodeInfo>,
    pub provider: String,
    pub provider_version: String,
}

/// `CSIControllerInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIControllerInfo {
    pub supports_create_delete: bool,
    pub supports_attach_detach: bool,
    pub supports_list_volumes: bool,
    pub supports_get_capacity: bool,
    pub supports_create_delete_snapshot: bool,
    pub supports_list_snapshots: bool,
    pub supports_clone: bool,
    pub supports_read_only_attach: bool,
    pub supports_expand: bool,
    pub supports_list_volumes_attached_nodes: bool,
    pub supports_condition: bool,
    pub supports_get: bool,
}

/// `CSINodeInfo` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSINodeInfo {
    #[serde(rename = "ID")]
    pub id: String,
    pub max_volumes: i64,
    pub accessible_topology: Option<CSITopology>,
    pub requires_node_stage_volume: bool,
    pub supports_stats: bool,
    pub supports_expand: bool,
    pub supports_condition: bool,
}

/// `CSITopology` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSITopology {
    pub segments: Map<String, String>,
}

/// `DrainMetadata` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DrainMetadata {
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub status: String,
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub meta: Map<String, String>,
}

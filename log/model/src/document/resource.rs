use serde::{Deserialize, Serialize};

use super::shape::{List, Map, is_zero};
use super::task::{Affinity, Constraint};

/// `Resources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Resources {
    #[serde(rename = "CPU")]
    pub cpu: Option<i64>,
    pub cores: Option<i64>,
    #[serde(rename = "MemoryMB")]
    pub memory_mb: Option<i64>,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: Option<i64>,
    #[serde(rename = "DiskMB")]
    pub disk_mb: Option<i64>,
    pub networks: List<NetworkResource>,
    pub devices: List<RequestedDevice>,
    #[serde(rename = "NUMA")]
    pub numa: Option<NUMAResource>,
    #[serde(rename = "SecretsMB")]
    pub secrets_mb: Option<i64>,
    #[serde(rename = "IOPS")]
    pub iops: Option<i64>,
}

/// `NetworkResource` of Nomad's API. Zero fields are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NetworkResource {
    #[serde(skip_serializing_if = "is_zero")]
    pub mode: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub device: String,
    #[serde(rename = "CIDR", skip_serializing_if = "is_zero")]
    pub cidr: String,
    #[serde(rename = "IP", skip_serializing_if = "is_zero")]
    pub ip: String,
    #[serde(rename = "DNS", skip_serializing_if = "is_zero")]
    pub dns: Option<DNSConfig>,
    #[serde(skip_serializing_if = "is_zero")]
    pub reserved_ports: List<Port>,
    #[serde(skip_serializing_if = "is_zero")]
    pub dynamic_ports: List<Port>,
    #[serde(skip_serializing_if = "is_zero")]
    pub hostname: String,
    #[serde(rename = "MBits", skip_serializing_if = "is_zero")]
    pub mbits: Option<i64>,
    #[serde(rename = "CNI", skip_serializing_if = "is_zero")]
    pub cni: Option<CNIConfig>,
    /// `job`: only allocations of the same job reach each other on the bridge. Nomad has no such key.
    #[serde(skip_serializing_if = "is_zero")]
    pub isolation: String,
}

/// `DNSConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DNSConfig {
    pub servers: List<String>,
    pub searches: List<String>,
    pub options: List<String>,
}

/// `Port` of Nomad's API. Zero fields are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Port {
    #[serde(skip_serializing_if = "is_zero")]
    pub label: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub value: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub to: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub host_network: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub ignore_collision: bool,
}

/// `CNIConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CNIConfig {
    pub args: Map<String, String>,
}

/// `RequestedDevice` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RequestedDevice {
    pub name: String,
    pub count: Option<u64>,
    pub constraints: List<Constraint>,
    pub affinities: List<Affinity>,
}

/// `NUMAResource` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NUMAResource {
    pub affinity: String,
    pub devices: List<String>,
}

/// `NodeDeviceResource` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeDeviceResource {
    pub vendor: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub instances: List<NodeDevice>,
    pub attributes: Map<String, Attribute>,
}

/// `NodeDevice` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeDevice {
    #[serde(rename = "ID")]
    pub id: String,
    pub healthy: bool,
    pub health_description: String,
    pub locality: Option<NodeDeviceLocality>,
}

/// `NodeDeviceLocality` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeDeviceLocality {
    #[serde(rename = "PciBusID")]
    pub pci_bus_id: String,
}

/// `Attribute` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Attribute {
    pub float: Option<f64>,
    pub int: Option<i64>,
    pub string: Option<String>,
    pub bool: Option<bool>,
    pub unit: String,
}

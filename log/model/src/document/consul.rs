use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::resource::Resources;
use super::shape::{Duration, List, Map, is_zero};
use super::task::{LogConfig, VolumeMount, WorkloadIdentity};

/// `ConsulConnect` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulConnect {
    pub native: bool,
    pub gateway: Option<ConsulGateway>,
    pub sidecar_service: Option<ConsulSidecarService>,
    pub sidecar_task: Option<SidecarTask>,
}

/// `ConsulGateway` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulGateway {
    pub proxy: Option<ConsulGatewayProxy>,
    pub ingress: Option<ConsulIngressConfigEntry>,
    pub terminating: Option<ConsulTerminatingConfigEntry>,
    pub mesh: Option<ConsulMeshConfigEntry>,
}

/// `ConsulGatewayProxy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulGatewayProxy {
    pub connect_timeout: Option<Duration>,
    pub envoy_gateway_bind_tagged_addresses: bool,
    pub envoy_gateway_bind_addresses: Map<String, ConsulGatewayBindAddress>,
    pub envoy_gateway_no_default_bind: bool,
    #[serde(rename = "EnvoyDNSDiscoveryType")]
    pub envoy_dns_discovery_type: String,
    pub config: Map<String, Value>,
}

/// `ConsulGatewayBindAddress` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulGatewayBindAddress {
    #[serde(skip_serializing_if = "is_zero")]
    pub name: String,
    pub address: String,
    pub port: i64,
}

/// `ConsulIngressConfigEntry` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulIngressConfigEntry {
    #[serde(rename = "TLS")]
    pub tls: Option<ConsulGatewayTLSConfig>,
    pub listeners: List<ConsulIngressListener>,
}

/// `ConsulGatewayTLSConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulGatewayTLSConfig {
    pub enabled: bool,
    #[serde(rename = "TLSMinVersion")]
    pub tls_min_version: String,
    #[serde(rename = "TLSMaxVersion")]
    pub tls_max_version: String,
    pub cipher_suites: List<String>,
    #[serde(rename = "SDS")]
    pub sds: Option<ConsulGatewayTLSSDSConfig>,
}

/// `ConsulGatewayTLSSDSConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulGatewayTLSSDSConfig {
    pub cluster_name: String,
    pub cert_resource: String,
}

/// `ConsulIngressListener` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulIngressListener {
    pub port: i64,
    pub protocol: String,
    pub services: List<ConsulIngressService>,
}

/// `ConsulIngressService` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulIngressService {
    pub name: String,
    pub hosts: List<String>,
    #[serde(rename = "TLS")]
    pub tls: Option<ConsulGatewayTLSConfig>,
    pub request_headers: Option<ConsulHTTPHeaderModifiers>,
    pub response_headers: Option<ConsulHTTPHeaderModifiers>,
    pub max_connections: Option<u32>,
    pub max_pending_requests: Option<u32>,
    pub max_concurrent_requests: Option<u32>,
}

/// `ConsulHTTPHeaderModifiers` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulHTTPHeaderModifiers {
    pub add: Map<String, String>,
    pub set: Map<String, String>,
    pub remove: List<String>,
}

/// `ConsulTerminatingConfigEntry` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulTerminatingConfigEntry {
    pub services: List<ConsulLinkedService>,
}

/// `ConsulLinkedService` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulLinkedService {
    pub name: String,
    #[serde(rename = "CAFile")]
    pub ca_file: String,
    pub cert_file: String,
    pub key_file: String,
    #[serde(rename = "SNI")]
    pub sni: String,
}

/// `ConsulMeshConfigEntry` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulMeshConfigEntry {}

/// `ConsulSidecarService` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulSidecarService {
    pub tags: List<String>,
    pub port: String,
    pub proxy: Option<ConsulProxy>,
    #[serde(rename = "DisableDefaultTCPCheck")]
    pub disable_default_tcp_check: bool,
    pub meta: Map<String, String>,
}

/// `ConsulProxy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulProxy {
    pub local_service_address: String,
    pub local_service_port: i64,
    pub expose: Option<ConsulExposeConfig>,
    #[serde(skip_serializing_if = "is_zero")]
    pub expose_config: Option<ConsulExposeConfig>,
    pub upstreams: List<ConsulUpstream>,
    pub transparent_proxy: Option<ConsulTransparentProxy>,
    pub config: Map<String, Value>,
}

/// `ConsulExposeConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulExposeConfig {
    pub paths: List<ConsulExposePath>,
    #[serde(skip_serializing_if = "is_zero")]
    pub path: List<ConsulExposePath>,
}

/// `ConsulExposePath` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulExposePath {
    pub path: String,
    pub protocol: String,
    pub local_path_port: i64,
    pub listener_port: String,
}

/// `ConsulUpstream` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulUpstream {
    pub destination_name: String,
    pub destination_namespace: String,
    pub destination_peer: String,
    pub destination_partition: String,
    pub destination_type: String,
    pub local_bind_port: i64,
    pub datacenter: String,
    pub local_bind_address: String,
    pub local_bind_socket_path: String,
    pub local_bind_socket_mode: String,
    pub mesh_gateway: Option<ConsulMeshGateway>,
    pub config: Map<String, Value>,
}

/// `ConsulMeshGateway` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulMeshGateway {
    pub mode: String,
}

/// `ConsulTransparentProxy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConsulTransparentProxy {
    #[serde(rename = "UID")]
    pub uid: String,
    pub outbound_port: u16,
    pub exclude_inbound_ports: List<String>,
    pub exclude_outbound_ports: List<u16>,
    #[serde(rename = "ExcludeOutboundCIDRs")]
    pub exclude_outbound_cid_rs: List<String>,
    #[serde(rename = "ExcludeUIDs")]
    pub exclude_uids: List<String>,
    #[serde(rename = "NoDNS")]
    pub no_dns: bool,
}

/// `SidecarTask` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SidecarTask {
    pub name: String,
    pub driver: String,
    pub user: String,
    pub config: Map<String, Value>,
    pub env: Map<String, String>,
    pub resources: Option<Resources>,
    pub meta: Map<String, String>,
    pub kill_timeout: Option<Duration>,
    pub log_config: Option<LogConfig>,
    pub shutdown_delay: Option<Duration>,
    pub kill_signal: String,
    pub volume_mounts: List<VolumeMount>,
    pub identities: List<WorkloadIdentity>,
}

/// `Consul` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Consul {
    pub namespace: String,
    pub cluster: String,
    pub partition: String,
}

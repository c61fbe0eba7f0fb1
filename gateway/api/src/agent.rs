//! What an agent says about itself, its members and the cluster.

use model::document::shape::{is_zero, object};
use model::document::{Duration, List, Map};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// `AgentSelf` of Nomad's API.
///
/// `config` is the agent's configuration by its in-process field names (`Region`, `ACL.Enabled`, …), with secrets
/// replaced by `<redacted>`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentSelf {
    #[serde(rename = "config")]
    pub config: Map<String, Value>,
    #[serde(rename = "member")]
    pub member: AgentMember,
    #[serde(rename = "stats")]
    pub stats: Map<String, Map<String, String>>,
}

/// `AgentMember` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentMember {
    pub name: String,
    pub addr: String,
    pub port: u16,
    pub tags: Map<String, String>,
    pub status: String,
    pub protocol_min: u8,
    pub protocol_max: u8,
    pub protocol_cur: u8,
    pub delegate_min: u8,
    pub delegate_max: u8,
    pub delegate_cur: u8,
}

/// `ServerMembers` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServerMembers {
    pub server_name: String,
    pub server_region: String,
    #[serde(rename = "ServerDC")]
    pub server_dc: String,
    pub members: List<AgentMember>,
}

/// `AgentHealthResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentHealthResponse {
    #[serde(rename = "client", skip_serializing_if = "is_zero")]
    pub client: Option<AgentHealth>,
    #[serde(rename = "server", skip_serializing_if = "is_zero")]
    pub server: Option<AgentHealth>,
}

/// `AgentHealth` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AgentHealth {
    #[serde(rename = "ok")]
    pub ok: bool,
    #[serde(rename = "message")]
    pub message: String,
}

/// `AgentSchedulerWorkerConfigRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSchedulerWorkerConfigRequest {
    pub num_schedulers: i64,
    /// Types of jobs, and `_core`.
    pub enabled_schedulers: List<String>,
}

/// `AgentSchedulerWorkerConfigResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSchedulerWorkerConfigResponse {
    pub server_id: String,
    pub num_schedulers: i64,
    pub enabled_schedulers: List<String>,
}

/// `SchedulerConfigurationResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SchedulerConfigurationResponse {
    pub scheduler_config: Option<SchedulerConfiguration>,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `SchedulerConfiguration` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SchedulerConfiguration {
    pub scheduler_algorithm: String,
    pub preemption_config: PreemptionConfig,
    pub memory_oversubscription_enabled: bool,
    pub reject_job_registration: bool,
    pub pause_eval_broker: bool,
    pub node_limit_for_feasibility_checks: u64,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `PreemptionConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PreemptionConfig {
    pub system_scheduler_enabled: bool,
    pub sys_batch_scheduler_enabled: bool,
    pub batch_scheduler_enabled: bool,
    pub service_scheduler_enabled: bool,
}

/// `SchedulerSetConfigurationResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SchedulerSetConfigurationResponse {
    pub updated: bool,
    pub index: u64,
}

/// Which nodes the scheduler looks at: `all` of them, or a `sample` as Nomad does. Not in Nomad's API. Only with
/// `sample` has `NodeLimitForFeasibilityChecks` an effect.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SchedulerScan {
    pub scan: String,
}

/// `MetricsSummary` of Nomad's API.
///
/// The answer of `GET /v1/metrics` without a format.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MetricsSummary {
    pub timestamp: String,
    #[serde(serialize_with = "array")]
    pub gauges: List<GaugeValue>,
    #[serde(serialize_with = "array")]
    pub points: List<PointValue>,
    #[serde(serialize_with = "array")]
    pub counters: List<SampledValue>,
    #[serde(serialize_with = "array")]
    pub samples: List<SampledValue>,
}

/// A list that is there also when it is empty.
fn array<T: Serialize, S: Serializer>(list: &List<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(list)
}

/// `GaugeValue` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GaugeValue {
    pub name: String,
    pub value: f32,
    #[serde(serialize_with = "object")]
    pub labels: Map<String, String>,
}

/// `PointValue` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PointValue {
    pub name: String,
    pub points: List<f32>,
}

/// `SampledValue` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SampledValue {
    pub name: String,
    pub count: i64,
    pub rate: f64,
    pub sum: f64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub stddev: f64,
    #[serde(serialize_with = "object")]
    pub labels: Map<String, String>,
}

/// `HostDataResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostDataResponse {
    #[serde(rename = "AgentID")]
    pub agent_id: String,
    pub host_data: Option<HostData>,
}

/// `HostData` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostData {
    #[serde(rename = "OS")]
    pub os: String,
    pub network: List<Map<String, String>>,
    pub resolv_conf: String,
    pub hosts: String,
    /// What may be a secret is blanked.
    pub environment: Map<String, String>,
    pub disk: Map<String, DiskUsage>,
}

/// `DiskUsage` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DiskUsage {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    #[serde(rename = "UsedMB")]
    pub used_mb: i64,
}

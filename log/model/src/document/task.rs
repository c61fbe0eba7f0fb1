use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape::{Duration, List, Map, is_zero};

/// `Constraint` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Constraint {
    pub l_target: String,
    pub r_target: String,
    pub operand: String,
}

/// `Affinity` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Affinity {
    pub l_target: String,
    pub r_target: String,
    pub operand: String,
    pub weight: Option<i8>,
}

/// `TaskLifecycle` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskLifecycle {
    pub hook: String,
    pub sidecar: bool,
}

/// `LogConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LogConfig {
    pub max_files: Option<i64>,
    #[serde(rename = "MaxFileSizeMB")]
    pub max_file_size_mb: Option<i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub enabled: Option<bool>,
    pub disabled: Option<bool>,
}

/// `VolumeMount` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeMount {
    pub volume: Option<String>,
    pub destination: Option<String>,
    pub read_only: Option<bool>,
    pub propagation_mode: Option<String>,
    #[serde(rename = "SELinuxLabel")]
    pub se_linux_label: Option<String>,
}

/// `WorkloadIdentity` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WorkloadIdentity {
    pub name: String,
    pub audience: List<String>,
    pub change_mode: String,
    pub change_signal: String,
    pub env: bool,
    pub file: bool,
    pub filepath: String,
    pub service_name: String,
    #[serde(rename = "TTL")]
    pub ttl: Duration,
    pub extra_claims: List<String>,
}

/// `RestartPolicy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RestartPolicy {
    pub interval: Option<Duration>,
    pub attempts: Option<i64>,
    pub delay: Option<Duration>,
    pub mode: Option<String>,
    pub render_templates: Option<bool>,
}

/// `TaskArtifact` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskArtifact {
    pub getter_source: Option<String>,
    pub getter_options: Map<String, String>,
    pub getter_headers: Map<String, String>,
    pub getter_mode: Option<String>,
    pub getter_insecure: Option<bool>,
    pub relative_dest: Option<String>,
    pub chown: bool,
}

/// `Vault` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Vault {
    #[serde(skip_serializing_if = "is_zero")]
    pub policies: List<String>,
    pub role: String,
    pub namespace: Option<String>,
    pub cluster: String,
    pub env: Option<bool>,
    pub disable_file: Option<bool>,
    pub change_mode: Option<String>,
    pub change_signal: Option<String>,
    pub allow_token_expiration: Option<bool>,
}

/// `Template` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Template {
    pub source_path: Option<String>,
    pub dest_path: Option<String>,
    pub embedded_tmpl: Option<String>,
    pub change_mode: Option<String>,
    pub change_script: Option<ChangeScript>,
    pub change_signal: Option<String>,
    pub once: Option<bool>,
    pub splay: Option<Duration>,
    pub perms: Option<String>,
    pub uid: Option<i64>,
    pub gid: Option<i64>,
    pub left_delim: Option<String>,
    pub right_delim: Option<String>,
    pub envvars: Option<bool>,
    pub vault_grace: Option<Duration>,
    pub wait: Option<WaitConfig>,
    pub err_missing_key: Option<bool>,
}

/// `ChangeScript` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ChangeScript {
    pub command: Option<String>,
    pub args: List<String>,
    pub timeout: Option<Duration>,
    pub fail_on_error: Option<bool>,
    pub run_on_first_render: Option<bool>,
}

/// `WaitConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WaitConfig {
    pub min: Option<Duration>,
    pub max: Option<Duration>,
}

/// `DispatchPayloadConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DispatchPayloadConfig {
    pub file: String,
}

/// `TaskCSIPluginConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskCSIPluginConfig {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub mount_dir: String,
    pub stage_publish_base_dir: String,
    pub health_timeout: Duration,
}

/// `Secret` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Secret {
    pub name: String,
    pub provider: String,
    pub path: String,
    pub config: Map<String, Value>,
    pub env: Map<String, String>,
}

/// `Action` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Action {
    pub name: String,
    pub command: String,
    pub args: List<String>,
}

/// `Spread` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Spread {
    pub attribute: String,
    pub weight: Option<i8>,
    pub spread_target: List<SpreadTarget>,
}

/// `SpreadTarget` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpreadTarget {
    pub value: String,
    pub percent: u8,
}

/// `VolumeRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeRequest {
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub source: String,
    pub read_only: bool,
    pub sticky: bool,
    pub access_mode: String,
    pub attachment_mode: String,
    pub mount_options: Option<CSIMountOptions>,
    pub per_alloc: bool,
}

/// `CSIMountOptions` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CSIMountOptions {
    #[serde(rename = "FSType")]
    pub fs_type: String,
    pub mount_flags: List<String>,
}

/// `DisconnectStrategy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DisconnectStrategy {
    pub lost_after: Option<Duration>,
    pub stop_on_client_after: Option<Duration>,
    pub replace: Option<bool>,
    pub reconcile: Option<String>,
}

/// `ReschedulePolicy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ReschedulePolicy {
    pub attempts: Option<i64>,
    pub interval: Option<Duration>,
    pub delay: Option<Duration>,
    pub delay_function: Option<String>,
    pub max_delay: Option<Duration>,
    pub unlimited: Option<bool>,
}

/// `EphemeralDisk` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EphemeralDisk {
    pub sticky: Option<bool>,
    pub migrate: Option<bool>,
    #[serde(rename = "SizeMB")]
    pub size_mb: Option<i64>,
}

/// `MigrateStrategy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MigrateStrategy {
    pub max_parallel: Option<i64>,
    pub health_check: Option<String>,
    pub min_healthy_time: Option<Duration>,
    pub healthy_deadline: Option<Duration>,
}

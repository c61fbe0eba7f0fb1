use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::consul::Consul;
use super::resource::{NetworkResource, Resources};
use super::scaling::ScalingPolicy;
use super::service::Service;
use super::shape::{Bytes, Duration, List, Map, is_zero};
use super::task::{
    Action, Affinity, Constraint, DisconnectStrategy, DispatchPayloadConfig, EphemeralDisk, LogConfig,
    MigrateStrategy, ReschedulePolicy, RestartPolicy, Secret, Spread, TaskArtifact, TaskCSIPluginConfig,
    TaskLifecycle, Template, Vault, VolumeMount, VolumeRequest, WorkloadIdentity,
};
use crate::codec::compiled_once;

compiled_once! { Job }

/// `Job` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Job {
    pub region: Option<String>,
    pub namespace: Option<String>,
    #[serde(rename = "ID")]
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(rename = "Type")]
    pub kind: Option<String>,
    pub priority: Option<i64>,
    pub all_at_once: Option<bool>,
    pub datacenters: List<String>,
    pub node_pool: Option<String>,
    pub constraints: List<Constraint>,
    pub affinities: List<Affinity>,
    pub task_groups: List<TaskGroup>,
    pub update: Option<UpdateStrategy>,
    pub multiregion: Option<Multiregion>,
    pub spreads: List<Spread>,
    pub periodic: Option<PeriodicConfig>,
    pub parameterized_job: Option<ParameterizedJobConfig>,
    #[serde(skip_serializing_if = "is_zero")]
    pub reschedule: Option<ReschedulePolicy>,
    #[serde(skip_serializing_if = "is_zero")]
    pub migrate: Option<MigrateStrategy>,
    pub meta: Map<String, String>,
    #[serde(rename = "UI")]
    pub ui: Option<JobUIConfig>,
    pub stop: Option<bool>,
    #[serde(rename = "ParentID")]
    pub parent_id: Option<String>,
    pub dispatched: bool,
    pub dispatch_idempotency_token: Option<String>,
    pub payload: Bytes,
    pub consul_namespace: Option<String>,
    pub vault_namespace: Option<String>,
    #[serde(rename = "NomadTokenID")]
    pub nomad_token_id: Option<String>,
    pub status: Option<String>,
    pub status_description: Option<String>,
    pub stable: Option<bool>,
    pub version: Option<u64>,
    pub submit_time: Option<i64>,
    pub create_index: Option<u64>,
    pub modify_index: Option<u64>,
    pub job_modify_index: Option<u64>,
    pub version_tag: Option<JobVersionTag>,
}

/// `TaskGroup` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroup {
    pub name: Option<String>,
    pub count: Option<i64>,
    pub constraints: List<Constraint>,
    pub affinities: List<Affinity>,
    pub tasks: List<Task>,
    pub spreads: List<Spread>,
    pub volumes: Map<String, VolumeRequest>,
    pub restart_policy: Option<RestartPolicy>,
    pub disconnect: Option<DisconnectStrategy>,
    pub reschedule_policy: Option<ReschedulePolicy>,
    pub ephemeral_disk: Option<EphemeralDisk>,
    pub update: Option<UpdateStrategy>,
    pub migrate: Option<MigrateStrategy>,
    pub networks: List<NetworkResource>,
    pub meta: Map<String, String>,
    pub services: List<Service>,
    pub shutdown_delay: Option<Duration>,
    pub max_run_duration: Option<Duration>,
    pub stop_after_client_disconnect: Option<Duration>,
    pub max_client_disconnect: Option<Duration>,
    pub scaling: Option<ScalingPolicy>,
    pub consul: Option<Consul>,
    pub prevent_reschedule_on_lost: Option<bool>,
}

/// `Task` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Task {
    pub name: String,
    pub driver: String,
    pub user: String,
    pub lifecycle: Option<TaskLifecycle>,
    pub config: Map<String, Value>,
    pub constraints: List<Constraint>,
    pub affinities: List<Affinity>,
    pub env: Map<String, String>,
    pub services: List<Service>,
    pub resources: Option<Resources>,
    pub restart_policy: Option<RestartPolicy>,
    pub meta: Map<String, String>,
    pub kill_timeout: Option<Duration>,
    pub log_config: Option<LogConfig>,
    pub artifacts: List<TaskArtifact>,
    pub vault: Option<Vault>,
    pub consul: Option<Consul>,
    pub templates: List<Template>,
    pub dispatch_payload: Option<DispatchPayloadConfig>,
    pub volume_mounts: List<VolumeMount>,
    #[serde(rename = "CSIPluginConfig")]
    pub csi_plugin_config: Option<TaskCSIPluginConfig>,
    pub leader: bool,
    pub shutdown_delay: Duration,
    pub kill_signal: String,
    pub kind: String,
    pub scaling_policies: List<ScalingPolicy>,
    pub secrets: List<Secret>,
    pub identity: Option<WorkloadIdentity>,
    pub identities: List<WorkloadIdentity>,
    pub actions: List<Action>,
    pub schedule: Option<TaskSchedule>,
}

/// `TaskSchedule` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskSchedule {
    pub cron: Option<TaskScheduleCron>,
}

/// `TaskScheduleCron` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskScheduleCron {
    pub start: String,
    pub end: String,
    pub timezone: String,
}

/// `UpdateStrategy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UpdateStrategy {
    pub stagger: Option<Duration>,
    pub max_parallel: Option<i64>,
    pub health_check: Option<String>,
    pub min_healthy_time: Option<Duration>,
    pub healthy_deadline: Option<Duration>,
    pub progress_deadline: Option<Duration>,
    pub canary: Option<i64>,
    pub auto_revert: Option<bool>,
    pub auto_promote: Option<bool>,
}

/// `Multiregion` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Multiregion {
    pub strategy: Option<MultiregionStrategy>,
    pub regions: List<MultiregionRegion>,
    /// Stands for the job as it was registered for all regions: by it they find out how far the others are with it. Nothing of
    /// Nomad's, and empty in what callers send.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rollout: String,
}

/// `MultiregionStrategy` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MultiregionStrategy {
    pub max_parallel: Option<i64>,
    pub on_failure: Option<String>,
}

impl Job {
    /// Its regions, if this is the part of one of them: it was registered in each.
    pub fn rollout(&self) -> Option<&Multiregion> {
        self.multiregion.as_ref().filter(|regions| !regions.rollout.is_empty())
    }
}

impl MultiregionStrategy {
    /// One region that fails has all fail.
    pub const FAIL_ALL: &str = "fail_all";
    /// It fails alone. Without a word those that come after it fail too.
    pub const FAIL_LOCAL: &str = "fail_local";
}

/// `MultiregionRegion` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MultiregionRegion {
    pub name: String,
    pub count: Option<i64>,
    pub datacenters: List<String>,
    pub node_pool: String,
    pub meta: Map<String, String>,
}

/// `PeriodicConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeriodicConfig {
    pub enabled: Option<bool>,
    pub spec: Option<String>,
    pub specs: List<String>,
    pub spec_type: Option<String>,
    pub prohibit_overlap: Option<bool>,
    pub time_zone: Option<String>,
}

/// `ParameterizedJobConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ParameterizedJobConfig {
    pub payload: String,
    pub meta_required: List<String>,
    pub meta_optional: List<String>,
}

/// `JobUIConfig` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobUIConfig {
    pub description: String,
    pub links: List<JobUILink>,
}

/// `JobUILink` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobUILink {
    pub label: String,
    #[serde(rename = "URL")]
    pub url: String,
}

/// `JobVersionTag` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobVersionTag {
    pub name: String,
    pub description: String,
    pub tagged_time: i64,
}

/// `JobSubmission` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobSubmission {
    pub source: String,
    pub format: String,
    pub variable_flags: Map<String, String>,
    pub variables: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub version: u64,
    pub job_modify_index: u64,
}

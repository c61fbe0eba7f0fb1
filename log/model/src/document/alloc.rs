use serde::{Deserialize, Serialize};

use super::job::Job;
use super::resource::{DNSConfig, NetworkResource, Resources};
use super::shape::{Duration, List, Map, Timestamp, is_zero, object, object_of_options};
use super::task::TaskLifecycle;
use super::timestamp::null_if_zero;
use crate::codec::compiled_once;

compiled_once! { Allocation AllocationMetric }

/// `Allocation` of Nomad's API. Zero fields are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Allocation {
    #[serde(rename = "ID", skip_serializing_if = "is_zero")]
    pub id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub namespace: String,
    #[serde(rename = "EvalID", skip_serializing_if = "is_zero")]
    pub eval_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub name: String,
    #[serde(rename = "NodeID", skip_serializing_if = "is_zero")]
    pub node_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub node_name: String,
    #[serde(rename = "JobID", skip_serializing_if = "is_zero")]
    pub job_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub job: Option<Job>,
    #[serde(skip_serializing_if = "is_zero")]
    pub task_group: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub resources: Option<Resources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub task_resources: Map<String, Resources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub allocated_resources: Option<AllocatedResources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub services: Map<String, String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub metrics: Option<AllocationMetric>,
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_status: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_description: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_transition: DesiredTransition,
    #[serde(skip_serializing_if = "is_zero")]
    pub client_status: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub client_description: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub task_states: Map<String, TaskState>,
    #[serde(rename = "DeploymentID", skip_serializing_if = "is_zero")]
    pub deployment_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub deployment_status: Option<AllocDeploymentStatus>,
    #[serde(rename = "FollowupEvalID", skip_serializing_if = "is_zero")]
    pub followup_eval_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub previous_allocation: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub next_allocation: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub reschedule_tracker: Option<RescheduleTracker>,
    #[serde(skip_serializing_if = "is_zero")]
    pub network_status: Option<AllocNetworkStatus>,
    #[serde(skip_serializing_if = "is_zero")]
    pub preempted_allocations: List<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub preempted_by_allocation: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub create_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub modify_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub alloc_modify_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub create_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub modify_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub shared_resources: Option<Resources>,
    #[serde(skip_serializing_if = "is_zero")]
    pub alloc_states: List<AllocState>,
    #[serde(rename = "SigningKeyID", skip_serializing_if = "is_zero")]
    pub signing_key_id: String,
}

/// `AllocatedResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedResources {
    pub tasks: Map<String, AllocatedTaskResources>,
    pub shared: AllocatedSharedResources,
    #[serde(serialize_with = "object_of_options")]
    pub task_lifecycles: Map<String, TaskLifecycle>,
}

/// `AllocatedTaskResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedTaskResources {
    pub cpu: AllocatedCpuResources,
    pub memory: AllocatedMemoryResources,
    pub networks: List<NetworkResource>,
    pub devices: List<AllocatedDeviceResource>,
}

/// `AllocatedCpuResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedCpuResources {
    pub cpu_shares: i64,
    pub reserved_cores: List<u16>,
}

/// `AllocatedMemoryResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedMemoryResources {
    #[serde(rename = "MemoryMB")]
    pub memory_mb: i64,
    #[serde(rename = "MemoryMaxMB")]
    pub memory_max_mb: i64,
}

/// `AllocatedDeviceResource` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedDeviceResource {
    pub vendor: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    #[serde(rename = "DeviceIDs")]
    pub device_ids: List<String>,
}

/// `AllocatedSharedResources` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocatedSharedResources {
    #[serde(rename = "DiskMB")]
    pub disk_mb: i64,
    pub networks: List<NetworkResource>,
    pub ports: List<PortMapping>,
}

/// `PortMapping` of Nomad's API. Zero fields are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PortMapping {
    #[serde(skip_serializing_if = "is_zero")]
    pub label: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub value: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub to: i64,
    #[serde(rename = "HostIP", skip_serializing_if = "is_zero")]
    pub host_ip: String,
}

/// `AllocationMetric` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct AllocationMetric {
    pub nodes_evaluated: i64,
    pub nodes_filtered: i64,
    pub nodes_in_pool: i64,
    pub node_pool: String,
    pub nodes_available: Map<String, i64>,
    pub class_filtered: Map<String, i64>,
    pub constraint_filtered: Map<String, i64>,
    pub nodes_exhausted: i64,
    pub class_exhausted: Map<String, i64>,
    pub dimension_exhausted: Map<String, i64>,
    pub quota_exhausted: List<String>,
    #[serde(serialize_with = "object")]
    pub resources_exhausted: Map<String, Resources>,
    pub scores: Map<String, f64>,
    pub allocation_time: Duration,
    pub coalesced_failures: i64,
    pub score_meta_data: List<NodeScoreMeta>,
}

/// `NodeScoreMeta` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeScoreMeta {
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub scores: Map<String, f64>,
    pub norm_score: f64,
}

/// `DesiredTransition` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DesiredTransition {
    pub migrate: Option<bool>,
    pub reschedule: Option<bool>,
    pub force_reschedule: Option<bool>,
    pub no_shutdown_delay: Option<bool>,
    pub migrate_disable_placement: Option<bool>,
}

/// `TaskState` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskState {
    pub state: String,
    pub failed: bool,
    pub restarts: u64,
    #[serde(serialize_with = "null_if_zero")]
    pub last_restart: Timestamp,
    #[serde(serialize_with = "null_if_zero")]
    pub started_at: Timestamp,
    #[serde(serialize_with = "null_if_zero")]
    pub finished_at: Timestamp,
    pub events: List<TaskEvent>,
    pub paused: String,
}

/// `TaskEvent` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskEvent {
    #[serde(rename = "Type")]
    pub kind: String,
    pub time: i64,
    pub display_message: String,
    #[serde(serialize_with = "object")]
    pub details: Map<String, String>,
    pub message: String,
    pub fails_task: bool,
    pub restart_reason: String,
    pub setup_error: String,
    pub driver_error: String,
    pub driver_message: String,
    pub exit_code: i64,
    pub signal: i64,
    pub kill_reason: String,
    pub kill_timeout: Duration,
    pub kill_error: String,
    pub start_delay: i64,
    pub download_error: String,
    pub validation_error: String,
    pub disk_limit: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub disk_size: i64,
    pub failed_sibling: String,
    pub vault_error: String,
    pub task_signal_reason: String,
    pub task_signal: String,
    pub generic_source: String,
}

/// `AllocDeploymentStatus` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocDeploymentStatus {
    pub healthy: Option<bool>,
    pub timestamp: Timestamp,
    pub canary: bool,
    pub modify_index: u64,
}

/// `RescheduleTracker` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RescheduleTracker {
    pub events: List<RescheduleEvent>,
    pub last_reschedule: String,
}

/// `RescheduleEvent` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RescheduleEvent {
    pub reschedule_time: i64,
    #[serde(rename = "PrevAllocID")]
    pub prev_alloc_id: String,
    #[serde(rename = "PrevNodeID")]
    pub prev_node_id: String,
    pub delay: Duration,
}

/// `AllocNetworkStatus` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocNetworkStatus {
    pub interface_name: String,
    pub address: String,
    pub address_i_pv6: String,
    #[serde(rename = "DNS")]
    pub dns: Option<DNSConfig>,
}

/// `AllocState` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocState {
    pub field: u8,
    pub value: String,
    pub time: Timestamp,
}

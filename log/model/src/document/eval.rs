use serde::{Deserialize, Serialize};

use super::alloc::{
    AllocDeploymentStatus, AllocatedResources, AllocationMetric, DesiredTransition, RescheduleTracker,
    TaskState,
};
use super::shape::{Duration, List, Map, Timestamp, is_zero};
use crate::codec::compiled_once;

compiled_once! { Evaluation AllocationListStub Deployment }

/// `Evaluation` of Nomad's API. Zero fields are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Evaluation {
    #[serde(rename = "ID", skip_serializing_if = "is_zero")]
    pub id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: i64,
    #[serde(rename = "Type", skip_serializing_if = "is_zero")]
    pub kind: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub triggered_by: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub namespace: String,
    #[serde(rename = "JobID", skip_serializing_if = "is_zero")]
    pub job_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub job_modify_index: u64,
    #[serde(rename = "NodeID", skip_serializing_if = "is_zero")]
    pub node_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub node_modify_index: u64,
    #[serde(rename = "DeploymentID", skip_serializing_if = "is_zero")]
    pub deployment_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub status: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub status_description: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub wait: Duration,
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_until: Timestamp,
    #[serde(skip_serializing_if = "is_zero")]
    pub next_eval: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub previous_eval: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub blocked_eval: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub related_evals: List<EvaluationStub>,
    #[serde(rename = "FailedTGAllocs", skip_serializing_if = "is_zero")]
    pub failed_tg_allocs: Map<String, AllocationMetric>,
    #[serde(skip_serializing_if = "is_zero")]
    pub plan_annotations: Option<PlanAnnotations>,
    #[serde(skip_serializing_if = "is_zero")]
    pub class_eligibility: Map<String, bool>,
    #[serde(skip_serializing_if = "is_zero")]
    pub escaped_computed_class: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub quota_limit_reached: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub missing_non_node_resources: List<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub annotate_plan: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub queued_allocations: Map<String, i64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub snapshot_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub create_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub modify_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub create_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub modify_time: i64,
    #[serde(rename = "LeaderACL", skip_serializing_if = "is_zero")]
    pub leader_acl: String,
}

/// `EvaluationStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvaluationStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub priority: i64,
    #[serde(rename = "Type")]
    pub kind: String,
    pub triggered_by: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    pub status: String,
    pub status_description: String,
    pub wait_until: Timestamp,
    pub next_eval: String,
    pub previous_eval: String,
    pub blocked_eval: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
}

/// `PlanAnnotations` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PlanAnnotations {
    #[serde(rename = "DesiredTGUpdates")]
    pub desired_tg_updates: Map<String, DesiredUpdates>,
    pub preempted_allocs: List<AllocationListStub>,
}

/// `DesiredUpdates` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DesiredUpdates {
    pub ignore: u64,
    pub place: u64,
    pub migrate: u64,
    pub stop: u64,
    pub in_place_update: u64,
    pub destructive_update: u64,
    pub canary: u64,
    pub preemptions: u64,
    pub disconnect: u64,
    pub reconnect: u64,
    pub reschedule_now: u64,
    pub reschedule_later: u64,
}

/// `AllocationListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct AllocationListStub {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_type: String,
    pub job_version: u64,
    pub task_group: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub allocated_resources: Option<AllocatedResources>,
    pub desired_status: String,
    pub desired_description: String,
    pub client_status: String,
    pub client_description: String,
    pub task_states: Map<String, TaskState>,
    pub deployment_status: Option<AllocDeploymentStatus>,
    #[serde(rename = "FollowupEvalID")]
    pub followup_eval_id: String,
    pub next_allocation: String,
    pub reschedule_tracker: Option<RescheduleTracker>,
    pub preempted_allocations: List<String>,
    pub preempted_by_allocation: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    pub desired_transition: DesiredTransition,
}

/// `Deployment` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase", remote = "Self")]
pub struct Deployment {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_version: u64,
    pub job_modify_index: u64,
    pub job_spec_modify_index: u64,
    pub job_create_index: u64,
    pub is_multiregion: bool,
    pub task_groups: Map<String, DeploymentState>,
    pub status: String,
    pub status_description: String,
    pub create_index: u64,
    pub modify_index: u64,
    pub create_time: i64,
    pub modify_time: i64,
    pub eval_priority: i64,
}

/// `DeploymentState` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentState {
    pub placed_canaries: List<String>,
    pub auto_revert: bool,
    pub progress_deadline: Duration,
    pub require_progress_by: Timestamp,
    pub promoted: bool,
    pub desired_canaries: i64,
    pub desired_total: i64,
    pub placed_allocs: i64,
    pub healthy_allocs: i64,
    pub unhealthy_allocs: i64,
    pub auto_promote: bool,
}

//! Dry runs and what would change: `PUT /v1/job/:id/plan`, and the differences between versions.

use model::document::{AllocationMetric, Evaluation, Job, List, Map, PlanAnnotations, Timestamp};
use serde::{Deserialize, Serialize};

/// `JobPlanRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobPlanRequest {
    pub job: Option<Job>,
    pub diff: bool,
    pub policy_override: bool,
}

/// `JobPlanResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobPlanResponse {
    pub job_modify_index: u64,
    pub created_evals: List<Evaluation>,
    pub diff: Option<JobDiff>,
    pub annotations: Option<PlanAnnotations>,
    #[serde(rename = "FailedTGAllocs")]
    pub failed_tg_allocs: Map<String, AllocationMetric>,
    pub next_periodic_launch: Timestamp,
    pub warnings: String,
    pub index: u64,
}

/// `JobDiff` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobDiff {
    #[serde(rename = "Type")]
    pub kind: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub fields: List<FieldDiff>,
    pub objects: List<ObjectDiff>,
    pub task_groups: List<TaskGroupDiff>,
}

/// `TaskGroupDiff` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroupDiff {
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub fields: List<FieldDiff>,
    pub objects: List<ObjectDiff>,
    pub tasks: List<TaskDiff>,
    pub updates: Map<String, u64>,
}

/// `TaskDiff` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskDiff {
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub fields: List<FieldDiff>,
    pub objects: List<ObjectDiff>,
    pub annotations: List<String>,
}

/// `ObjectDiff` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ObjectDiff {
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub fields: List<FieldDiff>,
    pub objects: List<ObjectDiff>,
}

/// `FieldDiff` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FieldDiff {
    #[serde(rename = "Type")]
    pub kind: String,
    pub name: String,
    pub old: String,
    pub new: String,
    pub annotations: List<String>,
}

/// The answer of `PUT /v1/jobs/doctor`. Ours alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobDoctor {
    /// Nodes that the cluster has.
    pub nodes: u64,
    /// Why the job could not be registered, besides what the findings say.
    pub errors: List<String>,
    pub warnings: List<String>,
    /// Blocks and attributes that this release does not do.
    pub findings: List<DoctorFinding>,
    /// Groups that could not be placed completely now.
    pub groups: Map<String, DoctorGroup>,
}

/// A block or an attribute of a job that this release does not do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DoctorFinding {
    /// Empty outside of a group.
    pub group: String,
    /// Empty outside of a task.
    pub task: String,
    /// As a job file calls it, like `template` or `network mode "bridge"`.
    pub what: String,
    /// `ignored`, `fails`, `may fail`, `never placed` or `works`.
    pub effect: String,
    /// What becomes of it, in words.
    pub text: String,
}

/// Why a group could not be placed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DoctorGroup {
    /// No node may run it, however much room there is.
    pub never_placed: bool,
    pub failed: AllocationMetric,
}

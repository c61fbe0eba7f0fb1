//! Dispatches and launches by hand, tags of versions, and actions of a job.

use model::document::shape::is_zero;
use model::document::{Bytes, Duration, List, Map};
use serde::{Deserialize, Serialize};

/// `JobDispatchRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobDispatchRequest {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub payload: Bytes,
    pub meta: Map<String, String>,
    /// A part of the child's id.
    pub id_prefix_template: String,
    /// Zero for the parent's.
    pub priority: i64,
}

/// `JobDispatchResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobDispatchResponse {
    #[serde(rename = "DispatchedJobID")]
    pub dispatched_job_id: String,
    /// Empty when there was a child for this token already.
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_create_index: u64,
    pub index: u64,
}

/// The answer to a launch by hand.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeriodicForceResponse {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub index: u64,
}

/// `TagVersionRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagVersionRequest {
    /// `None` for the newest.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    pub latest: bool,
    pub description: String,
}

/// `JobTagResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobTagResponse {
    pub name: String,
    pub description: String,
    /// Unix nanoseconds.
    pub tagged_time: i64,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `JobAction` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobAction {
    pub name: String,
    pub command: String,
    pub args: List<String>,
    pub task_name: String,
    pub task_group_name: String,
}

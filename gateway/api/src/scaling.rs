//! Scaling: counts that are set from outside, and the policies they go by.

use std::collections::BTreeMap;

use model::document::{List, Map};
pub use model::document::{ScalingEvent, ScalingPolicy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `ScalingRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingRequest {
    /// Without one only a line of the group's history is written.
    pub count: Option<i64>,
    /// `Group` names the group.
    pub target: Map<String, String>,
    pub message: String,
    pub error: bool,
    pub meta: Map<String, Value>,
    pub policy_override: bool,
    /// Zero for whatever the job is at.
    pub job_modify_index: u64,
}

/// `JobScaleStatusResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobScaleStatusResponse {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub job_create_index: u64,
    pub job_modify_index: u64,
    pub job_stopped: bool,
    pub task_groups: BTreeMap<String, TaskGroupScaleStatus>,
}

/// `TaskGroupScaleStatus` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroupScaleStatus {
    pub desired: i64,
    pub placed: i64,
    pub running: i64,
    pub healthy: i64,
    pub unhealthy: i64,
    pub events: List<ScalingEvent>,
}

/// `ScalingPolicyListStub` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingPolicyListStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub enabled: bool,
    #[serde(rename = "Type")]
    pub kind: String,
    pub target: Map<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
}

//! Jobs: lists, registration, validation, stopping, versions.

use std::collections::BTreeMap;

use model::document::shape::is_zero;
use model::document::{Duration, Job, JobSubmission, List, Map, Multiregion};
use serde::{Deserialize, Serialize};

use crate::plan::JobDiff;

/// `JobListStub` of Nomad's API.
///
/// `meta` only when asked for with `?meta=true`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobListStub {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "ParentID")]
    pub parent_id: String,
    pub name: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub namespace: String,
    pub datacenters: List<String>,
    #[serde(rename = "Type")]
    pub kind: String,
    pub priority: i64,
    pub periodic: bool,
    pub parameterized_job: bool,
    pub stop: bool,
    pub status: String,
    pub status_description: String,
    pub job_summary: JobSummary,
    pub create_index: u64,
    pub modify_index: u64,
    pub job_modify_index: u64,
    pub submit_time: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub meta: Map<String, String>,
    pub node_pool: String,
    pub multiregion: Option<Multiregion>,
}

/// `JobSummary` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobSummary {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    /// By task group. Never null: clients index into it without asking.
    pub summary: BTreeMap<String, TaskGroupSummary>,
    pub children: Option<JobChildrenSummary>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// `TaskGroupSummary` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskGroupSummary {
    pub queued: i64,
    pub complete: i64,
    pub failed: i64,
    pub running: i64,
    pub starting: i64,
    pub lost: i64,
    pub unknown: i64,
}

/// `JobChildrenSummary` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobChildrenSummary {
    pub pending: i64,
    pub running: i64,
    pub dead: i64,
}

/// `JobRegisterRequest` of Nomad's API.
///
/// The query string wins over the namespace and region given here, and these over the job's own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobRegisterRequest {
    pub submission: Option<JobSubmission>,
    pub job: Option<Job>,
    #[serde(skip_serializing_if = "is_zero")]
    pub region: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub namespace: String,
    /// Refuse unless the job's current `JobModifyIndex` is the given one; 0 means that it must not exist.
    #[serde(skip_serializing_if = "is_zero")]
    pub enforce_index: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub job_modify_index: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub policy_override: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub preserve_counts: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub preserve_resources: bool,
    /// 1 to 100; 0 means the priority of the job.
    #[serde(skip_serializing_if = "is_zero")]
    pub eval_priority: i64,
}

/// `JobRegisterResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobRegisterResponse {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_modify_index: u64,
    pub warnings: String,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `JobValidateRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobValidateRequest {
    pub job: Option<Job>,
}

/// `JobValidateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobValidateResponse {
    pub driver_config_validated: bool,
    pub validation_errors: List<String>,
    pub error: String,
    pub warnings: String,
}

/// `JobsParseRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobsParseRequest {
    #[serde(rename = "JobHCL")]
    pub job_hcl: String,
    pub variables: String,
    pub canonicalize: bool,
}

/// `JobDeregisterResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobDeregisterResponse {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub job_modify_index: u64,
    #[serde(rename = "VolumeEvalID")]
    pub volume_eval_id: String,
    pub volume_eval_index: u64,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `JobVersionsResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobVersionsResponse {
    pub versions: List<Job>,
    pub diffs: List<JobDiff>,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `JobEvaluateRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobEvaluateRequest {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub eval_options: EvalOptions,
}

/// `EvalOptions` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvalOptions {
    pub force_reschedule: bool,
}

/// `JobRevertRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobRevertRequest {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_version: u64,
    pub enforce_prior_version: Option<u64>,
}

/// `JobStabilityRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStabilityRequest {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_version: u64,
    pub stable: bool,
}

/// `JobStabilityResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStabilityResponse {
    #[serde(skip_serializing_if = "is_zero")]
    pub job_modify_index: u64,
    pub index: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_without_groups_still_has_a_summary_map() {
        let stub = serde_json::to_value(JobListStub::default()).unwrap();
        assert_eq!(stub["JobSummary"]["Summary"], json!({}));
        assert_eq!(stub.get("Meta"), None);
        assert_eq!(stub["Datacenters"], json!(null));
    }

    #[test]
    fn a_registration_has_only_the_given_fields() {
        let request = serde_json::to_value(JobRegisterRequest::default()).unwrap();
        assert_eq!(request, json!({"Submission": null, "Job": null}));
    }
}

//! The job table of the web interface: `/v1/jobs/statuses`.

use model::document::List;
use serde::{Deserialize, Serialize};

/// `JobStatusesRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStatusesRequest {
    pub jobs: List<NamespacedID>,
    pub include_children: bool,
}

/// `JobStatusesJob` of Nomad's API.
///
/// `modify_index` is the largest of the job, its allocations, its deployment and its children.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStatusesJob {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    pub name: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub node_pool: String,
    pub datacenters: List<String>,
    pub priority: i64,
    pub version: u64,
    pub submit_time: i64,
    pub modify_index: u64,
    pub allocs: List<JobStatusesAlloc>,
    pub group_count_sum: i64,
    /// Null when the job has no children.
    pub child_statuses: List<String>,
    #[serde(rename = "ParentID")]
    pub parent_id: String,
    pub latest_deployment: Option<JobStatusesLatestDeployment>,
    pub stop: bool,
    /// True when a meta key of the job starts with `pack.`.
    pub is_pack: bool,
    pub status: String,
}

/// `JobStatusesAlloc` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStatusesAlloc {
    #[serde(rename = "ID")]
    pub id: String,
    pub group: String,
    pub client_status: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub deployment_status: JobStatusesDeployment,
    pub job_version: u64,
    #[serde(rename = "FollowupEvalID")]
    pub followup_eval_id: String,
    pub has_paused_task: bool,
}

/// `JobStatusesDeployment` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStatusesDeployment {
    pub canary: bool,
    pub healthy: Option<bool>,
}

/// `JobStatusesLatestDeployment` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobStatusesLatestDeployment {
    #[serde(rename = "ID")]
    pub id: String,
    pub is_active: bool,
    pub job_version: u64,
    pub status: String,
    pub status_description: String,
    pub all_auto_promote: bool,
    pub requires_promotion: bool,
}

/// `NamespacedID` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespacedID {
    pub namespace: String,
    #[serde(rename = "ID")]
    pub id: String,
}

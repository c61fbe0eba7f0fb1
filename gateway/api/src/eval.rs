//! Evaluations and deployments.

use model::document::{Duration, List};
use serde::{Deserialize, Serialize};

/// `EvalCountResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvalCountResponse {
    pub count: i64,
    pub index: u64,
    pub last_contact: Duration,
    pub known_leader: bool,
    pub next_token: String,
}

/// `EvalDeleteRequest` of Nomad's API: by id or by expression, not both.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvalDeleteRequest {
    #[serde(rename = "EvalIDs")]
    pub eval_ids: List<String>,
    pub filter: String,
}

/// `EvalDeleteResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvalDeleteResponse {
    pub count: i64,
    pub index: u64,
}

/// `DeploymentUpdateResponse` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentUpdateResponse {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub deployment_modify_index: u64,
    pub reverted_job_version: Option<u64>,
    pub index: u64,
}

/// `DeploymentPauseRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentPauseRequest {
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    pub pause: bool,
}

/// `DeploymentPromoteRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentPromoteRequest {
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    pub all: bool,
    pub groups: List<String>,
    pub promoted_at: i64,
}

/// `DeploymentFailRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentFailRequest {
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
}

/// `DeploymentAllocHealthRequest` of Nomad's API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentAllocHealthRequest {
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    #[serde(rename = "HealthyAllocationIDs")]
    pub healthy_allocation_ids: List<String>,
    #[serde(rename = "UnhealthyAllocationIDs")]
    pub unhealthy_allocation_ids: List<String>,
}

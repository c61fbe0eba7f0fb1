use api::JobRegisterResponse;
use model::document::{List, Map};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Another count for a group: `ScalingRequest` of the v1 contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScalingRequest {
    pub count: Option<i64>,
    /// `Group` names the group.
    pub target: Map<String, String>,
    pub message: String,
    pub error: bool,
    pub policy_override: bool,
    /// The index the job is to be at; 0 if it does not matter.
    pub job_modify_index: u64,
}

/// How the groups of a job are scaled: `JobScaleStatusResponse` of the v1 contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobScaleStatus {
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub job_create_index: u64,
    pub job_modify_index: u64,
    pub job_stopped: bool,
    pub task_groups: Map<String, GroupScaleStatus>,
}

/// How one group is scaled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GroupScaleStatus {
    pub desired: i64,
    pub placed: i64,
    pub running: i64,
    pub healthy: i64,
    pub unhealthy: i64,
    /// Newest first.
    pub events: List<ScalingEvent>,
}

/// One change of a count, or a try.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingEvent {
    pub count: Option<i64>,
    pub previous_count: i64,
    pub error: bool,
    pub message: String,
    pub meta: Map<String, Value>,
    #[serde(rename = "EvalID")]
    pub eval_id: Option<String>,
    /// Unix nanoseconds.
    pub time: u64,
    pub create_index: u64,
}

/// A scaling policy in a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingPolicyStub {
    #[serde(rename = "ID")]
    pub id: String,
    pub enabled: bool,
    #[serde(rename = "Type")]
    pub kind: String,
    pub target: Map<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// A scaling policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingPolicy {
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub policy: Map<String, Value>,
    pub enabled: Option<bool>,
    #[serde(rename = "Type")]
    pub kind: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub target: Map<String, String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// Counts of groups, and the policies autoscalers read.
impl Client {
    /// `PUT /v1/job/:id/scale`.
    pub async fn scale(
        &self,
        id: &str,
        request: &ScalingRequest,
        query: Query,
    ) -> Result<JobRegisterResponse, Error> {
        Ok(self.put(&format!("/v1/job/{}/scale", segment(id)), query, request).await?.value)
    }

    /// `GET /v1/job/:id/scale`.
    pub async fn scale_status(&self, id: &str, query: Query) -> Result<JobScaleStatus, Error> {
        Ok(self.get(&format!("/v1/job/{}/scale", segment(id)), query).await?.value)
    }

    /// `GET /v1/scaling/policies`: takes `prefix`, `job` and `type`.
    pub async fn scaling_policies(&self, query: Query) -> Result<Answer<Vec<ScalingPolicyStub>>, Error> {
        self.get("/v1/scaling/policies", query).await
    }

    /// `GET /v1/scaling/policy/:id`.
    pub async fn scaling_policy(&self, id: &str) -> Result<ScalingPolicy, Error> {
        Ok(self.get(&format!("/v1/scaling/policy/{}", segment(id)), Query::new()).await?.value)
    }
}

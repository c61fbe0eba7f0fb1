//! Why things are as they are: recomputed from the log, at the index of the decision itself. Ours alone.

use model::document::{AllocationMetric, GroupReasons, List, Map, Timestamp};
use serde::{Deserialize, Serialize};

use crate::AllocationTransition;

/// The answer of `GET /v1/job/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobWhy {
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub status: String,
    pub stopped: bool,
    pub groups: Map<String, GroupNow>,
    pub waits_for: List<Wait>,
    /// The newest decision about the job; none while no scheduler has looked at it.
    pub evaluation: Option<EvalWhy>,
}

/// How a group's allocations are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GroupNow {
    /// Zero for jobs that run on every node.
    pub wanted: u64,
    pub running: u64,
    pub starting: u64,
    pub queued: u64,
    pub unknown: u64,
    pub failed: u64,
    pub lost: u64,
    pub complete: u64,
}

/// Something that has to happen before the job goes on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Wait {
    pub what: String,
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    /// When it ends by itself; null when it does not.
    pub until: Option<Timestamp>,
}

/// The answer of `GET /v1/evaluation/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EvalWhy {
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub triggered_by: String,
    pub status: String,
    pub status_description: String,
    pub decision: Decision,
    pub groups: Map<String, GroupReasons>,
    pub waits_for: List<Wait>,
}

/// What a decision was made of, and whether it could be made again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Decision {
    /// The evaluation it was made for; another one where this evaluation only waits for what that one left over.
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    /// The state that was looked at.
    pub snapshot: u64,
    pub time: Timestamp,
    /// What chance was drawn from: a whole number, as text because clients round large ones.
    pub seed: String,
    pub recomputed: bool,
    /// The plan came out as it stands in the log; null where there is nothing to compare with.
    pub as_logged: Option<bool>,
    /// Why it was not made again, or what to know about it.
    pub note: String,
}

/// The answer of `GET /v1/allocation/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AllocWhy {
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub job_version: u64,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    pub desired_status: String,
    pub desired_description: String,
    pub client_status: String,
    pub client_description: String,
    pub decision: Decision,
    /// What the group's first placement of that plan saw: the node that won, and those after it.
    pub placed: Option<AllocationMetric>,
    /// From the first one to the last, this one among them.
    pub chain: List<Link>,
    pub transitions: List<AllocationTransition>,
    pub waits_for: List<Wait>,
}

/// One of a row of allocations that took each other's place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Link {
    #[serde(rename = "ID")]
    pub id: String,
    pub node_name: String,
    pub desired_status: String,
    pub client_status: String,
    pub desired_description: String,
}

//! Why things are as they are: recomputed from the log, at the index of the decision itself. Ours alone.

use model::document::{AllocationMetric, Duration, GroupReasons, Lack, List, Map, NodeEvent, Timestamp};
use serde::{Deserialize, Serialize};

use crate::AllocationTransition;

/// The answer of `GET /v1/job/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct JobWhy {
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub namespace: String,
    #[serde(rename = "Type")]
    pub kind: String,
    pub status: String,
    pub stopped: bool,
    pub groups: Map<String, GroupNow>,
    pub waits_for: List<Wait>,
    /// The newest deployment of the version that is current.
    pub deployment: Option<DeploymentWhy>,
    /// When a periodic job is launched next; null for others, and for one that is stopped or not enabled.
    pub next_launch: Option<Timestamp>,
    /// How a parameterized job is dispatched; null for others.
    pub dispatch: Option<DispatchNow>,
    /// The newest decision about the job; none while no scheduler has looked at it.
    pub evaluation: Option<EvalWhy>,
}

/// How a group's allocations are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// Names of the group that no allocation holds, the first of them.
    pub missing: List<MissingSlot>,
}

/// A name of a group that no allocation holds now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MissingSlot {
    pub name: String,
    /// The last allocation that held it; null when there was none.
    pub last: Option<Link>,
    /// Why nothing has taken its place.
    pub why: String,
    /// When it is replaced, if that waits for a time.
    pub until: Option<Timestamp>,
}

/// What a dispatch of a parameterized job takes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DispatchNow {
    /// `required`, `optional` or `forbidden`.
    pub payload: String,
    pub meta_required: List<String>,
    pub meta_optional: List<String>,
}

/// The answer of `GET /v1/deployment/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentWhy {
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub namespace: String,
    pub job_version: u64,
    pub status: String,
    pub status_description: String,
    pub groups: Map<String, DeploymentGroup>,
    /// Allocations of it that are unhealthy, the first of them.
    pub unhealthy: List<Link>,
    pub waits_for: List<Wait>,
}

/// How far a deployment is with one group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeploymentGroup {
    pub desired_canaries: u64,
    pub healthy_canaries: u64,
    pub desired_total: u64,
    pub placed: u64,
    pub healthy: u64,
    pub unhealthy: u64,
    pub promoted: bool,
    pub auto_promote: bool,
    pub auto_revert: bool,
    /// The deployment fails unless something becomes healthy by then; null without a limit.
    pub require_progress_by: Option<Timestamp>,
}

/// The answer of `GET /v1/node/:id/explain`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NodeWhy {
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub status: String,
    pub eligibility: String,
    /// It may be given new work.
    pub takes_work: bool,
    /// Why it takes no work, as statements about the node.
    pub obstacles: List<String>,
    pub room: List<Room>,
    pub running: u64,
    pub starting: u64,
    pub stopping: u64,
    pub unknown: u64,
    pub waits_for: List<Wait>,
    /// What the node and the servers said about it, the newest first.
    pub messages: List<NodeEvent>,
}

/// The answer of `GET /v1/node/:id/explain/:job`: why none of it is placed on a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct WhyNot {
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    /// The job was stopped, so nothing of it is placed anywhere.
    pub stopped: bool,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub node_name: String,
    pub groups: List<GroupOnNode>,
}

/// A group of a job, and what stands in the way of one more allocation of it on a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GroupOnNode {
    pub group: String,
    /// Allocations of it that are there.
    pub there: u64,
    /// Allocations of it that take room anywhere.
    pub everywhere: u64,
    /// Empty when it could go there.
    pub lacks: List<Lack>,
}

/// How much of one resource a node has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Room {
    pub what: String,
    pub unit: String,
    pub capacity: u64,
    pub used: u64,
    /// How much of what is used belongs to allocations that are being stopped.
    pub stopping: u64,
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
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
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
    /// Why it is only approximate; left out where it is not, and inside of other answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub approximate: String,
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
    /// Names of the nodes that have scores.
    pub node_names: Map<String, String>,
    /// What its node says about its tasks, by name.
    pub tasks: Map<String, TaskNow>,
    /// Null for an allocation that is never rescheduled.
    pub reschedule: Option<RescheduleNow>,
    /// Null for a group without a disconnect block.
    pub disconnect: Option<DisconnectNow>,
    #[serde(rename = "DeploymentID")]
    pub deployment_id: String,
    /// Null while it is not known.
    pub healthy: Option<bool>,
    /// Allocations that were stopped to make room for it.
    pub preempted: List<Link>,
    /// The allocation that it was stopped for.
    pub preempted_by: Option<Link>,
    /// It has been forgotten: this is read from the log, as far back as that is kept.
    pub collected: bool,
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
    /// What its tasks ended with, if they did not end well.
    pub trouble: String,
}

/// What a node says about a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TaskNow {
    pub state: String,
    pub failed: bool,
    pub restarts: u64,
    /// Of the last time that it ended; null when it has not.
    pub exit_code: Option<i64>,
    /// The newest event that says what went wrong: an exit code, a failed hook, a driver's error.
    pub trouble: String,
}

/// How an allocation is replaced when it fails.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RescheduleNow {
    /// In words.
    pub policy: String,
    pub attempts: u64,
    /// Within the interval of the policy; null without a limit.
    pub attempts_max: Option<u64>,
    /// When it is replaced; null when nothing is to be replaced.
    pub next: Option<Timestamp>,
    /// Why it is not replaced although it failed; empty otherwise.
    pub why_not: String,
}

/// What happens when an allocation's node disconnects.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DisconnectNow {
    /// It is given up then; zero when at once.
    pub lost_after: Duration,
    /// A replacement is placed meanwhile.
    pub replace: bool,
    /// How to choose between it and its replacement.
    pub reconcile: String,
    /// When it is given up, if its node is disconnected now.
    pub lost_at: Option<Timestamp>,
}

//! What happened to evaluations, and the verdicts on their plans.

use base::{Index, Time};
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::object::{DeploymentId, EvalId, EvalStatus, JobKey, JobType, NodeId, Trigger};

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EvalCreated {
    pub eval: NewEval,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EvalUpdated {
    pub eval: EvalId,
    pub status: EvalStatus,
    pub description: String,
    pub outcome: EvalOutcome,
    /// What was to become of each group, as a map to [`DesiredUpdates`](crate::document::DesiredUpdates); empty when
    /// no scheduler looked at it, and in logs of earlier releases.
    pub desired: Doc,
}

/// A worker is done with the evaluation; the next one of its job may go.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EvalAcked {
    pub eval: EvalId,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EvalsCanceled {
    pub evals: Vec<EvalId>,
    pub cause: String,
}

/// Evaluations that are over are forgotten, because somebody asked for it or they ended long ago.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct EvalsDeleted {
    pub evals: Vec<EvalId>,
}

/// The verdict on a plan. What it changed follows in the same batch.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct PlanCommitted {
    pub eval: EvalId,
    pub snapshot: Index,
    /// What chance was drawn from, and what time it was taken to be: with the snapshot, all that the plan follows
    /// from.
    pub seed: u64,
    pub now: Time,
    pub refresh: Index,
    pub rejected: Vec<RejectedNode>,
}

/// An evaluation as it was created.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NewEval {
    pub id: EvalId,
    pub key: JobKey,
    pub kind: JobType,
    pub priority: u32,
    pub trigger: Trigger,
    pub status: EvalStatus,
    pub description: String,
    pub node: Option<NodeId>,
    /// The job's modify index this is about; zero when it is about no particular version.
    pub job_modify: Index,
    pub node_modify: Index,
    pub previous: Option<EvalId>,
    /// Not before this moment; zero means now.
    pub wait_until: Time,
    pub outcome: EvalOutcome,
}

/// What the scheduler found out while working on an evaluation.
#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct EvalOutcome {
    /// The state it looked at.
    pub snapshot: Index,
    /// What chance was drawn from, and what time it was taken to be: with the snapshot, all that the decision follows
    /// from.
    pub seed: u64,
    pub now: Time,
    /// Allocations still wanted, per group.
    pub queued: Vec<(String, u32)>,
    /// Groups that could not be placed, as a map to their metrics.
    pub failed_groups: Doc,
    /// Node classes that were found eligible or not.
    pub classes: Vec<(String, bool)>,
    /// A check looked beyond the class, so any new capacity may matter.
    pub escaped: bool,
    /// What is missing that is no room on a node, as [`VolumeKey::resource`] names it.
    pub missing: Vec<String>,
    pub next: Option<EvalId>,
    pub blocked: Option<EvalId>,
    /// The deployment it was about.
    pub deployment: Option<DeploymentId>,
}

/// A node the commit check did not accept placements for.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RejectedNode {
    pub node: NodeId,
    pub reason: String,
}

/// Groups that could not be placed, by name.
pub type FailedGroups = std::collections::BTreeMap<String, crate::document::AllocationMetric>;

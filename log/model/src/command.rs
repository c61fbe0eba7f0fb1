//! What somebody asks. It may be refused; what it leads to is a list of events.

use base::{Index, Time, Uuid};
use serde::{Deserialize, Serialize};

use crate::document::{Allocation, CSIVolume, HostVolume, Job, JobSubmission, Node};
use crate::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped,
    AllocsUpdatedInPlace, EvalOutcome, FailedGroups, NewEval, NodeMessage, RejectedNode,
};
use crate::noun::{
    Actor, AllocId, Eligibility, EvalId, EvalStatus, JobKey, NodeId, NodeStatus, RequestId, VolumeKey,
};
use crate::operator::Autopilot;

/// A command with who asks and under which name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    pub id: RequestId,
    pub actor: Actor,
    pub command: Command,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    FoundCluster,
    RegisterNode {
        document: Box<Node>,
    },
    UpdateNodeStatus {
        node: NodeId,
        claimed: NodeStatus,
    },
    /// The leader heard nothing from the node for its whole time to live.
    MissHeartbeat {
        node: NodeId,
    },
    EmitNodeMessages {
        node: NodeId,
        messages: Vec<NodeMessage>,
    },
    SetNodeEligibility {
        node: NodeId,
        to: Eligibility,
    },
    DeregisterNode {
        node: NodeId,
    },
    /// What a node says about its allocations: only the fields a node may set are looked at.
    UpdateAllocs {
        node: NodeId,
        updates: Vec<Allocation>,
    },
    RegisterJob(Box<RegisterJob>),
    DeregisterJob {
        key: JobKey,
        purge: bool,
        eval_priority: Option<u32>,
        no_shutdown_delay: bool,
    },
    EvaluateJob {
        key: JobKey,
    },
    EvaluateNode {
        node: NodeId,
    },
    StopAlloc {
        alloc: AllocId,
        no_shutdown_delay: bool,
        reschedule: bool,
    },
    /// A worker's result: the plan, and once it is final the evaluation's end and its acknowledgement.
    SettleEval(Box<Settlement>),
    /// The broker delivered the evaluation as often as it may, in vain.
    FailEval {
        eval: EvalId,
        deliveries: u32,
        follow_up_at: Time,
    },
    RegisterCsiVolume {
        volume: Box<CSIVolume>,
    },
    /// One that was made on a node.
    RegisterHostVolume {
        volume: Box<HostVolume>,
    },
    DeregisterVolume {
        volume: VolumeKey,
        /// Also while somebody uses it.
        force: bool,
    },
    /// How the leader looks after the servers; only if this was last set at that index, zero for never.
    SetAutopilot {
        rules: Autopilot,
        only_at: Option<Index>,
    },
    /// A piece of a saved state, in order; the first one begins anew.
    GiveStateChunk {
        restore: Uuid,
        number: u32,
        bytes: Vec<u8>,
    },
    /// Puts the state in the pieces in place of what is there. `image` is the index it was saved at.
    RestoreState {
        restore: Uuid,
        chunks: u32,
        image: Index,
    },
}

impl Command {
    /// The command's number in a batch. Numbers are never reused.
    pub const fn kind(&self) -> u16 {
        match self {
            Command::FoundCluster => 1,
            Command::RegisterNode { .. } => 10,
            Command::UpdateNodeStatus { .. } => 11,
            Command::MissHeartbeat { .. } => 12,
            Command::EmitNodeMessages { .. } => 13,
            Command::SetNodeEligibility { .. } => 14,
            Command::DeregisterNode { .. } => 15,
            Command::UpdateAllocs { .. } => 16,
            Command::RegisterJob(_) => 20,
            Command::DeregisterJob { .. } => 21,
            Command::EvaluateJob { .. } => 22,
            Command::EvaluateNode { .. } => 23,
            Command::StopAlloc { .. } => 30,
            Command::SettleEval(_) => 40,
            Command::FailEval { .. } => 41,
            Command::SetAutopilot { .. } => 50,
            Command::GiveStateChunk { .. } => 51,
            Command::RestoreState { .. } => 52,
            Command::RegisterCsiVolume { .. } => 60,
            Command::RegisterHostVolume { .. } => 61,
            Command::DeregisterVolume { .. } => 62,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterJob {
    /// Canonical and valid.
    pub job: Job,
    pub submission: Option<JobSubmission>,
    /// Only if the job's modify index is this one; zero: only if there is no such job.
    pub enforce_index: Option<u64>,
    pub eval_priority: Option<u32>,
    /// Keep the counts of groups that the stored job already has.
    pub preserve_counts: bool,
}

/// Changes a scheduler wants, decided on the state at `snapshot`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub snapshot: Index,
    /// All placements or none.
    pub all_at_once: bool,
    pub stopped: Vec<AllocsStopped>,
    pub placed: Vec<AllocsPlaced>,
    /// Who makes room for what is placed: one entry for each placement that needs it.
    pub preempted: Vec<AllocsPreempted>,
    pub updated: Vec<AllocsUpdatedInPlace>,
    pub unknown: Vec<AllocsMarkedUnknown>,
    pub reconnected: Vec<AllocsReconnected>,
    /// Stored with the allocations that name them, or not at all.
    pub follow_ups: Vec<NewEval>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.stopped.is_empty()
            && self.placed.is_empty()
            && self.preempted.is_empty()
            && self.updated.is_empty()
            && self.unknown.is_empty()
            && self.reconnected.is_empty()
            && self.follow_ups.is_empty()
    }
}

/// What a worker brings back for an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settlement {
    pub eval: EvalId,
    pub plan: Plan,
    /// How the evaluation ends if the whole plan is accepted; `None` while more attempts follow.
    pub end: Option<EvalEnd>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalEnd {
    /// `Blocked` puts a blocked evaluation back to wait.
    pub status: EvalStatus,
    pub description: String,
    pub outcome: EvalOutcome,
    /// A blocked evaluation for what could not be placed.
    pub blocked: Option<NewEval>,
}

/// What a command led to. Index and order come from the batch that carries it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Evaluations that were created.
    pub evals: Vec<EvalId>,
    /// The verdict on a plan.
    pub verdict: Option<Verdict>,
}

/// What was accepted of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Everything was; if the settlement named an end, the evaluation has ended.
    pub full: bool,
    pub placed: u32,
    pub rejected: Vec<RejectedNode>,
}

/// Groups that could not be placed, read from an outcome.
pub fn failed_groups(outcome: &EvalOutcome) -> FailedGroups {
    if outcome.failed_groups.is_empty() { FailedGroups::new() } else { outcome.failed_groups.read() }
}

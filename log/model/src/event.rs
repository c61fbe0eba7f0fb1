//! What can have happened: facts in the past tense, decided once, folded by everyone for ever.
//!
//! Each payload is frozen the moment it is logged: a change is a new version beside the old one, with an
//! upcast in the journal. Documents travel as [`Doc`], whose fields may grow.

use base::{Duration, Index, Time, Uuid};
use rkyv::{Archive, Deserialize, Serialize};
use serde::de::DeserializeOwned;

use crate::document::{List, NodeEvent};
use crate::noun::{
    AllocId, ClientStatus, DeploymentId, DeploymentStatus, Desired, DrainStatus, Eligibility, EvalId,
    EvalStatus, JobKey, JobType, NodeId, NodeStatus, Trigger, VolumeKey,
};
use crate::operator::{Autopilot, SchedulerRules};
use crate::sparse;

/// A document as self-describing msgpack: unknown fields are skipped, missing ones take their zero value, and those
/// that have it are left out.
#[derive(
    Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct Doc(pub Vec<u8>);

impl Doc {
    pub fn of<T: serde::Serialize>(document: &T) -> Doc {
        Doc(sparse::to_vec(document).expect("documents hold only what msgpack can write"))
    }

    /// # Panics
    /// If the bytes are not such a document: the log is damaged, or an event of another kind was taken for this one.
    pub fn read<T: DeserializeOwned>(&self) -> T {
        Doc::read_from(&self.0)
    }

    /// [`Doc::read`] of bytes that stand elsewhere.
    pub fn read_from<T: DeserializeOwned>(bytes: &[u8]) -> T {
        rmp_serde::from_slice(bytes).expect("a logged document reads back as what it was written as")
    }

    /// [`Doc::read_from`] of bytes that may be anything.
    pub fn try_read_from<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        rmp_serde::from_slice(bytes).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Doc({} bytes)", self.0.len())
    }
}

/// Declares the payloads and the [`Event`] over them. The number is the kind on disk and is never reused.
macro_rules! events {
    ($($(#[$doc:meta])* $kind:literal $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })+) => {
        $($(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* })+

        /// Something that happened.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event { $($(#[$doc])* $name($name),)+ }

        impl Event {
            /// The kind's number on disk.
            pub const fn kind(&self) -> u16 {
                match self { $(Event::$name(_) => $kind,)+ }
            }

            /// The kind's name, as histories show it.
            pub const fn name(&self) -> &'static str {
                match self { $(Event::$name(_) => stringify!($name),)+ }
            }
        }

        $(impl From<$name> for Event {
            fn from(payload: $name) -> Event {
                Event::$name(payload)
            }
        })+

        /// Calls `$with!` with every kind and its payload's name, for tables that must not miss one.
        #[macro_export]
        macro_rules! for_each_event {
            ($with:ident) => { $with! { $($kind $name)+ } };
        }
    };
}

events! {
    /// The cluster began.
    1 ClusterFounded { cluster: Uuid, }

    /// A node nobody knew introduced itself.
    10 NodeRegistered {
        node: NodeId,
        document: Doc,
        computed_class: String,
        /// BLAKE3 of the node's secret: the secret itself never stands in the log.
        secret_hash: [u8; 32],
    }
    /// A known node sent a changed description of itself. Its status does not move.
    11 NodeUpdated { node: NodeId, document: Doc, computed_class: String, }
    12 NodeStatusChanged { node: NodeId, from: NodeStatus, to: NodeStatus, message: Option<NodeMessage>, }
    13 NodeEligibilityChanged { node: NodeId, to: Eligibility, message: NodeMessage, }
    14 NodeMessagesEmitted { node: NodeId, messages: Vec<NodeMessage>, }
    15 NodeDeregistered { node: NodeId, }
    /// The node told how its allocations are: what it says from here on is newer than its silence.
    16 NodeAllocsReported { node: NodeId, }

    /// A node is to be emptied, and takes nothing new.
    80 NodeDrainStarted { node: NodeId, order: DrainOrder, message: NodeMessage, }
    /// How it is to be emptied is another now.
    81 NodeDrainUpdated { node: NodeId, order: DrainOrder, message: NodeMessage, }
    /// The node is empty, or is not to be emptied any more.
    82 NodeDrainEnded {
        node: NodeId,
        status: DrainStatus,
        /// It takes work again.
        eligible: bool,
        /// What is said about it from here on; if empty, what was said before.
        meta: Vec<(String, String)>,
        accessor: String,
        message: NodeMessage,
    }

    /// A pool of nodes was made or changed, by an operator or by the first node in it.
    18 NodePoolUpserted { name: String, document: Doc, }
    19 NodePoolDeleted { name: String, }

    20 JobRegistered { key: JobKey, version: u64, document: Doc, submission: Doc, }
    21 JobStopped { key: JobKey, version: u64, }
    /// The job and everything it owned is forgotten.
    22 JobPurged { key: JobKey, }
    /// Whether a version is one to go back to.
    23 JobStabilityChanged { key: JobKey, version: u64, stable: bool, }
    /// The periodic job was launched for that moment of its schedule, or by hand: the child is registered beside it.
    24 JobLaunched { key: JobKey, at: Time, child: String, forced: bool, }
    /// Somebody set the count of a group, or told why it stays: a line of the group's history.
    25 JobScaled { key: JobKey, group: String, scaling: Doc, }
    /// A version got a name to be found by. It is kept as long as it has one.
    26 JobVersionTagged { key: JobKey, version: u64, name: String, description: String, }
    27 JobVersionUntagged { key: JobKey, name: String, }

    28 NamespaceUpserted { name: String, document: Doc, }
    29 NamespaceDeleted { name: String, }

    30 EvalCreated { eval: NewEval, }
    31 EvalUpdated { eval: EvalId, status: EvalStatus, description: String, outcome: EvalOutcome, }
    /// A worker is done with the evaluation; the next one of its job may go.
    32 EvalAcked { eval: EvalId, }
    33 EvalsCanceled { evals: Vec<EvalId>, cause: String, }

    /// The verdict on a plan. What it changed follows in the same batch.
    40 PlanCommitted {
        eval: EvalId,
        snapshot: Index,
        /// What chance was drawn from, and what time it was taken to be: with the snapshot, all that the plan follows
        /// from.
        seed: u64,
        now: Time,
        refresh: Index,
        rejected: Vec<RejectedNode>,
    }
    /// Placements of one group by one plan, as columns.
    41 AllocsPlaced {
        eval: EvalId,
        key: JobKey,
        version: u64,
        group: String,
        template: Doc,
        metrics: Doc,
        ids: Vec<AllocId>,
        nodes: Vec<NodeId>,
        names: Vec<u32>,
        /// The allocation each one replaces; nil where it replaces none, empty where none does.
        previous: Vec<AllocId>,
        /// What they are a part of.
        deployment: Option<DeploymentId>,
        /// They try out the version before the others follow.
        canary: bool,
        /// Host ports: as many per allocation as the template names, in its order.
        ports: Vec<u16>,
        /// The [`Given`](crate::Given) of each, empty bytes where there is nothing to say, empty where nobody has one.
        given: Vec<Doc>,
    }
    /// Running allocations were moved to a newer version of their job without a restart.
    42 AllocsUpdatedInPlace {
        eval: EvalId,
        version: u64,
        template: Doc,
        allocs: Vec<AllocId>,
        /// What they are a part of from here on. Those that were not yet have to prove their health again.
        deployment: Option<DeploymentId>,
    }
    43 AllocsStopped {
        allocs: Vec<AllocId>,
        desired: Desired,
        description: String,
        /// What the servers conclude about the client side, such as `lost`.
        client: Option<ClientStatus>,
        follow_up: Option<EvalId>,
    }
    /// The node is cut off; what runs there may still run.
    44 AllocsMarkedUnknown { allocs: Vec<AllocId>, follow_up: Option<EvalId>, }
    /// The node came back and the allocation stays.
    45 AllocsReconnected { allocs: Vec<AllocId>, }
    46 AllocReported {
        alloc: AllocId,
        node: NodeId,
        from: ClientStatus,
        to: ClientStatus,
        description: String,
        report: Doc,
        /// What is new about its health.
        health: Option<HealthVerdict>,
    }
    47 AllocTransitionRequested {
        allocs: Vec<AllocId>,
        migrate: bool,
        reschedule: bool,
        no_shutdown_delay: bool,
        /// Replace what failed, whatever its policy says.
        force_reschedule: bool,
        /// Nothing is to take its place.
        disable_placement: bool,
        cause: String,
    }
    /// Allocations have to make room for one of a job with a higher priority, which is placed in the same batch.
    48 AllocsPreempted { allocs: Vec<AllocId>, by: AllocId, }

    /// A volume became known, or is described anew.
    70 VolumeRegistered { volume: VolumeKey, document: Doc, }
    /// The volume is forgotten.
    71 VolumeDeregistered { volume: VolumeKey, }

    /// How the leader looks after the servers from here on.
    50 AutopilotConfigured { rules: Autopilot, }
    /// How the scheduler works from here on.
    53 SchedulerConfigured { rules: SchedulerRules, }
    /// A piece of a state that an operator puts in place of what is there. Number 0 begins anew.
    51 StateChunkGiven { restore: Uuid, number: u32, bytes: Vec<u8>, }
    /// The pieces are complete: from here on their state is what is true. `image` is the index it was saved at.
    52 StateRestored { restore: Uuid, chunks: u32, image: Index, }

    /// A plan began to bring the version into being. Its placements follow in the same batch.
    60 DeploymentCreated {
        deployment: DeploymentId,
        key: JobKey,
        version: u64,
        /// Of the evaluations it leads to.
        priority: u32,
        is_multiregion: bool,
        status: DeploymentStatus,
        description: String,
        groups: Vec<DeploymentGoal>,
    }
    /// A plan changed what is wanted of groups, or took in more of them. What was counted stays.
    61 DeploymentGoalsChanged { deployment: DeploymentId, groups: Vec<DeploymentGoal>, }
    62 DeploymentStatusChanged { deployment: DeploymentId, status: DeploymentStatus, description: String, }
    /// The canaries of these groups have proved themselves: the others may follow.
    63 DeploymentPromoted { deployment: DeploymentId, groups: Vec<String>, }
    /// Somebody who knows said how allocations of a deployment are.
    64 AllocHealthSet { deployment: DeploymentId, healthy: bool, allocs: Vec<AllocId>, }
}

/// How a node is to be emptied.
#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct DrainOrder {
    /// Zero: no limit. Below zero: everything goes at once.
    pub deadline: Duration,
    /// When what still runs is stopped; zero without a limit.
    pub force_at: Time,
    pub ignore_system_jobs: bool,
    pub meta: Vec<(String, String)>,
    /// Who asked.
    pub accessor: String,
}

/// What a node found out about an allocation's health.
#[derive(
    Clone, Copy, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct HealthVerdict {
    pub healthy: bool,
    /// By the node's clock.
    pub time: Time,
}

/// What a deployment wants of one group.
#[derive(
    Clone, Debug, PartialEq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
#[serde(default)]
pub struct DeploymentGoal {
    pub group: String,
    /// On failure, go back to the last version that was stable.
    pub auto_revert: bool,
    pub auto_promote: bool,
    /// Within this time from one success to the next; zero for no limit.
    pub progress_deadline: Duration,
    pub desired_canaries: u32,
    /// Healthy allocations that make it complete.
    pub desired_total: u32,
}

/// An entry of a node's own event list.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct NodeMessage {
    pub text: String,
    pub subsystem: String,
    pub details: Vec<(String, String)>,
    /// When it happened by the reporter's clock; kept as data, never used for order.
    pub time: Time,
}

impl NodeMessage {
    pub fn new(subsystem: &str, text: &str, time: Time) -> NodeMessage {
        NodeMessage { text: text.to_string(), subsystem: subsystem.to_string(), details: Vec::new(), time }
    }

    pub fn document(&self, created: Index) -> NodeEvent {
        NodeEvent {
            message: self.text.clone(),
            subsystem: self.subsystem.clone(),
            details: self.details.iter().cloned().collect(),
            timestamp: self.time.into(),
            create_index: created.0,
        }
    }
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

/// Node events in the contract's order: oldest first.
pub type NodeEvents = List<NodeEvent>;

//! What a caller asks for. It may be rejected; what it leads to is a list of events.

use std::collections::BTreeMap;

use base::{Duration, Index, Time, Uuid};
use serde::{Deserialize, Serialize};

use crate::codec::compiled_once;

use crate::cursor::{EventPosition, SetEventCursor};
use crate::document::{
    ACLAuthMethod, ACLBindingRule, ACLPolicy, ACLRole, ACLToken, Allocation, AuthMethodRecord, CSIVolume,
    HostVolume, Job, JobSubmission, Map, Namespace, Node, NodePool,
};
use crate::erasure::KeyTreeCommand;
use crate::event::{
    AllocsMarkedUnknown, AllocsPlaced, AllocsPreempted, AllocsReconnected, AllocsStopped,
    AllocsUpdatedInPlace, DeploymentCreated, DeploymentGoalsChanged, DeploymentStatusChanged, Doc,
    EvalOutcome, FailedGroups, NewEval, NodeMessage, ObservationGap, RejectedNode,
};
pub use crate::keyring::ActivateRootKey;
use crate::keyring::SealedKey;
pub use crate::leftovers::{LeftoverAges, Leftovers};
pub use crate::login::CreateAclToken;
use crate::login::IssueLoginToken;
use crate::object::{
    Actor, AllocId, DeploymentId, Eligibility, EvalId, EvalStatus, JobKey, NodeId, NodeStatus, RequestId,
    VolumeKey,
};
use crate::operator::{Autopilot, SchedulerRules};
use crate::recording::Observe;
pub use crate::rollout::{ObserveRollout, RegionProgress};
use crate::service::{RegisterService, ServiceKey};
use crate::sink::{ParkEventSink, SetEventSink};
use crate::variable::VariableKey;
pub use crate::variable::{AcquireVariableLock, RESEALED_MAX, ResealVersion, SetVariable};

compiled_once! { Command Request Settlement Reply }

/// A command with who asks and under which name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Request {
    pub id: RequestId,
    /// Stands for the name together with what is asked for: who uses the name again must ask for the same. Nil is not
    /// compared.
    #[serde(default)]
    pub said: RequestId,
    pub actor: Actor,
    pub command: Command,
}

impl Request {
    /// Takes effect each time it comes.
    pub fn unnamed(actor: Actor, command: Command) -> Request {
        Request::named(RequestId::default(), actor, command)
    }

    /// Takes effect once.
    pub fn named(id: RequestId, actor: Actor, command: Command) -> Request {
        Request { id, said: RequestId::default(), actor, command }
    }
}

/// Declares [`Command`] and its kinds. The number stands in batches and is never reused.
macro_rules! commands {
    ($($(#[$doc:meta])* $kind:literal $name:ident $(($content:ty))? $({ $($fields:tt)* })?,)+) => {
        /// What a caller asks for.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(remote = "Self")]
        pub enum Command { $($(#[$doc])* $name $(($content))? $({ $($fields)* })?,)+ }

        /// A command without its content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum CommandKind { $($name = $kind,)+ }

        impl Command {
            /// The command's number in a batch.
            pub const fn kind(&self) -> u16 {
                match self { $(Command::$name { .. } => $kind,)+ }
            }
        }

        impl CommandKind {
            /// `None` for a command that a newer release added.
            pub const fn from_number(number: u16) -> Option<CommandKind> {
                match number { $($kind => Some(CommandKind::$name),)+ _ => None }
            }

            pub const fn name(self) -> &'static str {
                match self { $(CommandKind::$name => stringify!($name),)+ }
            }
        }
    };
}

commands! {
    1 FoundCluster { scheduler: SchedulerRules },
    /// Every server knows this epoch: the cluster may write what came with it.
    2 RaiseEpoch { epoch: u16 },
    10 RegisterNode { document: Box<Node> },
    11 UpdateNodeStatus {
        node: NodeId,
        claimed: NodeStatus,
    },
    /// The leader got no heartbeat from the node within its TTL.
    12 MissHeartbeat { node: NodeId },
    13 EmitNodeMessages {
        node: NodeId,
        messages: Vec<NodeMessage>,
    },
    14 SetNodeEligibility {
        node: NodeId,
        to: Eligibility,
    },
    /// Drains a node, or stops its drain.
    80 SetNodeDrain {
        node: NodeId,
        drain: Option<DrainWish>,
        /// Without a drain: it takes work again.
        mark_eligible: bool,
        meta: BTreeMap<String, String>,
    },
    /// Does what is due for a node that is being emptied: has allocations moved, or ends the drain. The leader asks when
    /// something changed, or the deadline is over; if nothing is due nothing happens.
    81 AdvanceDrain { node: NodeId },
    15 DeregisterNode { node: NodeId },
    /// What a node says about its allocations: only the fields a node may set are looked at.
    16 UpdateAllocs {
        node: NodeId,
        updates: Vec<Allocation>,
    },
    18 UpsertNodePool(Box<NodePool>),
    19 DeleteNodePool { name: String },
    20 RegisterJob(Box<RegisterJob>),
    21 DeregisterJob {
        key: JobKey,
        purge: bool,
        eval_priority: Option<u32>,
        no_shutdown_delay: bool,
    },
    22 EvaluateJob {
        key: JobKey,
        /// Replace failed allocations now, whatever their policy says.
        force_reschedule: bool,
    },
    /// Registers an earlier version of the job again, as its newest.
    24 RevertJob {
        key: JobKey,
        version: u64,
        /// Only if this is the version that is wanted now.
        only_from: Option<u64>,
    },
    /// Whether a version of the job is one to go back to.
    25 SetJobStability {
        key: JobKey,
        version: u64,
        stable: bool,
    },
    /// Registers a child of a parameterized job.
    26 DispatchJob(Box<DispatchJob>),
    /// Registers a child of a periodic job for the moment `at`, unless that moment is over or the schedule does not let
    /// children overlap.
    27 LaunchJob {
        key: JobKey,
        at: Time,
        /// An operator asked for it, whatever the schedule says.
        forced: bool,
    },
    28 ScaleJob(Box<ScaleJob>),
    /// Names a version of the job, the newest if none is given.
    29 TagJobVersion {
        key: JobKey,
        version: Option<u64>,
        name: String,
        description: String,
    },
    31 UntagJobVersion {
        key: JobKey,
        name: String,
    },
    32 UpsertNamespace(Box<Namespace>),
    33 DeleteNamespace { name: String },
    23 EvaluateNode { node: NodeId },
    30 StopAlloc {
        alloc: AllocId,
        no_shutdown_delay: bool,
        reschedule: bool,
    },
    /// A worker's result: the plan, and once it is final the evaluation's end and its acknowledgement.
    40 SettleEval(Box<Settlement>),
    /// The broker delivered the evaluation as often as it may, in vain.
    41 FailEval {
        eval: EvalId,
        deliveries: u32,
        follow_up_at: Time,
    },
    /// Forgets evaluations that are over; all of them, or none if one of them is not.
    42 DeleteEvals { evals: Vec<EvalId> },
    /// Forgets jobs that ended for good and nodes that left, some at a time.
    34 CollectGarbage {
        /// Nothing happened to the job for so long.
        jobs_after: Duration,
        /// The node has been down for so long.
        nodes_after: Duration,
    },
    /// What is due of garbage, as the leader found it: the cost follows from what is named, not from how much there is.
    36 CollectDue {
        /// Jobs that have ended, if nothing happened to them for so long.
        jobs: Vec<JobKey>,
        jobs_after: Duration,
        /// Nodes that have been down for so long; none if it is not their turn.
        nodes_after: Option<Duration>,
    },
    /// Forgets evaluations, allocations and deployments that are over, of jobs that live on too.
    35 CollectLeftovers {
        /// Only these, if they may go; without them whatever may, some at a time.
        named: Option<Leftovers>,
        ages: LeftoverAges,
    },
    70 RegisterCsiVolume { volume: Box<CSIVolume> },
    /// One that was made on a node.
    71 RegisterHostVolume { volume: Box<HostVolume> },
    /// One that a plugin has just made on a node.
    140 CreateHostVolume { volume: Box<HostVolume> },
    72 DeregisterVolume {
        volume: VolumeKey,
        /// Also while an allocation uses it.
        force: bool,
    },
    /// A node wants a CSI volume for one of its allocations, as the job asks for it.
    145 ClaimCsiVolume { volume: VolumeKey, alloc: AllocId, node: NodeId },
    /// The node has unmounted it again; or, if none is named, nobody can ask the node.
    146 DetachCsiClaim { volume: VolumeKey, alloc: AllocId, node: Option<NodeId> },
    /// Nothing is left to be detached.
    147 ReleaseCsiClaim { volume: VolumeKey, alloc: AllocId },
    /// A CSI volume has grown, and a node has to see to what is on it; then, that a node which has it has done so for that much.
    255 AwaitCsiExpansion { volume: VolumeKey, required_bytes: i64, limit_bytes: i64 },
    256 EndCsiExpansion { volume: VolumeKey, node: NodeId, required_bytes: i64 },
    148 SetEventCursor(Box<SetEventCursor>),
    /// Its reader has done with everything up to there. An older position changes nothing.
    149 AckEventCursor { name: String, after: EventPosition },
    /// `None`: to what comes next.
    150 ResetEventCursor { name: String, to: Option<EventPosition> },
    151 DeleteEventCursor { name: String },
    /// Deletes those that nobody has used for too long.
    152 ExpireEventCursors,
    /// One of the readers that it is split among has done with everything of its own up to there.
    230 AckEventCursorMember { name: String, member: u32, after: EventPosition },
    /// Splits it among so many readers, who all begin there; `None`: with what comes next. One joins it again.
    231 SplitEventCursor { name: String, members: u32, to: Option<EventPosition> },
    /// Makes a sink of the event stream with its cursor, or changes them.
    200 SetEventSink(Box<SetEventSink>),
    201 DeleteEventSink { name: String },
    202 PauseEventSink { name: String },
    /// Sends again what was paused or parked.
    203 ResumeEventSink { name: String },
    /// Gives up the event that a sink is parked at, and goes on behind it.
    204 SkipEventSink { name: String },
    /// The leader gave up for now.
    205 ParkEventSink(Box<ParkEventSink>),
    /// How the leader looks after the servers; only if this was last set at that index, zero for never.
    50 SetAutopilot {
        rules: Autopilot,
        only_at: Option<Index>,
    },
    /// How the scheduler works; only if this was last set at that index. Whether it samples stays as it is.
    53 SetScheduler {
        rules: SchedulerRules,
        only_at: Option<Index>,
    },
    /// Does what is due for an active deployment: replaces, goes on, promotes or fails. The leader asks when something
    /// changed, or a deadline is over; if nothing is due nothing happens.
    60 AdvanceDeployment { deployment: DeploymentId },
    /// Canaries of these groups have proved themselves; of all groups, if none is named.
    61 PromoteDeployment {
        deployment: DeploymentId,
        groups: Vec<String>,
    },
    62 FailDeployment { deployment: DeploymentId },
    63 PauseDeployment { deployment: DeploymentId },
    64 ResumeDeployment { deployment: DeploymentId },
    /// Goes on with a deployment, or gives it up, by how far other regions are with the same job.
    247 ObserveRollout(Box<ObserveRollout>),
    /// Goes on with a deployment whatever other regions do.
    248 UnblockDeployment { deployment: DeploymentId },
    /// An operator sets the health of allocations of a deployment, instead of their nodes.
    65 SetAllocHealth {
        deployment: DeploymentId,
        healthy: Vec<AllocId>,
        unhealthy: Vec<AllocId>,
    },
    /// Whether nodes are sampled, or all of them are looked at.
    54 SetSampling { sampled: bool },
    /// For which key secrets of the cluster are to be sealed so that this server can read them.
    90 AnnounceServerKey {
        server: Uuid,
        /// X25519.
        public: [u8; 32],
    },
    91 ActivateRootKey(Box<ActivateRootKey>),
    92 SealRootKey {
        key: Uuid,
        sealed: SealedKey,
    },
    93 RemoveRootKey { key: Uuid },
    100 UpsertAclPolicy(Box<ACLPolicy>),
    101 DeleteAclPolicy { name: String },
    /// Who asks has drawn its id.
    102 CreateAclRole(Box<ACLRole>),
    103 UpdateAclRole(Box<ACLRole>),
    111 DeleteAclRole { role: Uuid },
    104 CreateAclToken(Box<CreateAclToken>),
    /// The first token of the cluster; again only if `reset` is the index of the first one.
    105 BootstrapAcl {
        token: Box<CreateAclToken>,
        reset: Option<Index>,
    },
    106 UpdateAclToken(Box<ACLToken>),
    107 DeleteAclTokens { accessors: Vec<Uuid> },
    /// Forgets tokens that are worth nothing any more, some at a time.
    108 CollectExpiredTokens,
    109 CreateOneTimeToken {
        accessor: Uuid,
        /// BLAKE3 of its secret.
        digest: [u8; 32],
    },
    110 ExchangeOneTimeToken { digest: [u8; 32] },
    170 SetVariable(Box<SetVariable>),
    171 DeleteVariable {
        key: VariableKey,
        only_at: Option<Index>,
        /// Its lock, while it has one.
        lock: Option<Uuid>,
    },
    172 AcquireVariableLock(Box<AcquireVariableLock>),
    173 ReleaseVariableLock {
        key: VariableKey,
        lock: Uuid,
    },
    /// Nobody renewed the lock, and nobody else may have waited for too long.
    174 ExpireVariableLock {
        key: VariableKey,
        lock: Uuid,
    },
    /// Puts the same items, sealed with the active root key, in place of what an older one seals.
    175 ResealVariables { versions: Vec<ResealVersion> },
    /// Takes note of keys that seal no variable any more.
    176 FinishRekey,
    210 ForgetVariable { key: VariableKey, lock: Option<Uuid> },
    211 KeyTree(Box<KeyTreeCommand>),
    /// Deletes a token, and has its secret erased.
    250 ForgetAclToken { accessor: Uuid },
    /// The same for an auth method and its secrets.
    251 ForgetAuthMethod { name: String },
    180 CreateAuthMethod(Box<AuthMethodRecord>),
    /// What is empty stays as it is, secrets too.
    181 UpdateAuthMethod(Box<AuthMethodRecord>),
    182 DeleteAuthMethod { name: String },
    183 CreateBindingRule(Box<ACLBindingRule>),
    184 UpdateBindingRule(Box<ACLBindingRule>),
    185 DeleteBindingRule { rule: Uuid },
    /// An auth method for tokens of all regions, as the authoritative region has it.
    245 CopyAuthMethod(Box<ACLAuthMethod>),
    /// A binding rule of such a method, as it is there.
    246 CopyBindingRule(Box<ACLBindingRule>),
    186 IssueLoginToken(Box<IssueLoginToken>),
    /// A node makes instances known, or known as others than they were; those that it does not name stay.
    190 RegisterServices {
        node: NodeId,
        services: Vec<RegisterService>,
    },
    191 DeregisterService {
        key: ServiceKey,
        /// Only if the service is called so.
        name: Option<String>,
        /// Only one of this node: it is the node that asks.
        node: Option<NodeId>,
    },
    192 DeregisterServicesOfNode { node: NodeId },
    /// A piece of a saved state, in order; the first one begins anew.
    51 GiveStateChunk {
        restore: Uuid,
        number: u32,
        bytes: Vec<u8>,
    },
    /// What a recorder read of another cluster.
    220 Observe(Box<Observe>),
    /// What happened there in between it could not read.
    221 NoteObservationGap(Box<ObservationGap>),
    /// From here on a server cannot read what was before a batch.
    260 NoteDroppedHistory {
        server: String,
        /// Decided at `time`.
        oldest: Index,
        time: Time,
    },
    /// Puts the state in the pieces in place of what is there. `image` is the index it was saved at.
    52 RestoreState {
        restore: Uuid,
        chunks: u32,
        image: Index,
    },
}

/// How a node is to be drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainWish {
    /// Above zero: what still runs after this long is stopped. Zero: no limit. Below zero: everything goes at once.
    pub deadline: Duration,
    pub ignore_system_jobs: bool,
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
    /// Keep the resources of tasks that the stored job already has.
    #[serde(default)]
    pub preserve_resources: bool,
}

impl RegisterJob {
    /// Without conditions and wishes.
    pub fn new(job: Job) -> RegisterJob {
        RegisterJob {
            job,
            submission: None,
            enforce_index: None,
            eval_priority: None,
            preserve_counts: false,
            preserve_resources: false,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DispatchJob {
    pub key: JobKey,
    pub payload: Vec<u8>,
    pub meta: BTreeMap<String, String>,
    /// A part of the child's id; may be empty.
    pub id_prefix: String,
    /// Zero for the parent's.
    pub priority: i64,
    /// A second dispatch with it makes no second child; may be empty.
    pub idempotency_token: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScaleJob {
    pub key: JobKey,
    pub group: String,
    /// Without one, nothing is done but written down.
    pub count: Option<i64>,
    pub message: String,
    pub error: bool,
    pub meta: Map<String, serde_json::Value>,
    /// Only if the job's modify index is this one.
    pub enforce_index: Option<u64>,
}

/// Changes a scheduler wants, decided on the state at `snapshot`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub snapshot: Index,
    /// What chance was drawn from, and what time it was taken to be.
    pub seed: u64,
    pub now: Time,
    /// All placements or none.
    pub all_at_once: bool,
    pub stopped: Vec<AllocsStopped>,
    pub placed: Vec<AllocsPlaced>,
    /// Who makes room for what is placed: one entry for each placement that needs it.
    pub preempted: Vec<AllocsPreempted>,
    pub updated: Vec<AllocsUpdatedInPlace>,
    pub unknown: Vec<AllocsMarkedUnknown>,
    pub reconnected: Vec<AllocsReconnected>,
    /// Comes with the first placement or change that names it.
    pub deployment: Option<DeploymentCreated>,
    pub goals: Option<DeploymentGoalsChanged>,
    /// Deployments that are over, or another thing than they were.
    pub deployment_statuses: Vec<DeploymentStatusChanged>,
    /// Stored with the allocations that name them, or not at all.
    pub follow_ups: Vec<NewEval>,
}

impl Plan {
    /// It changes nothing: without placements nothing is preempted.
    pub fn is_empty(&self) -> bool {
        self.stopped.is_empty()
            && self.placed.is_empty()
            && self.updated.is_empty()
            && self.unknown.is_empty()
            && self.reconnected.is_empty()
            && self.deployment.is_none()
            && self.goals.is_none()
            && self.deployment_statuses.is_empty()
            && self.follow_ups.is_empty()
    }
}

/// What a worker brings back for an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Settlement {
    pub eval: EvalId,
    pub plan: Plan,
    /// How the evaluation ends if the whole plan is accepted; `None` while more attempts follow.
    pub end: Option<EvalEnd>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalEnd {
    /// `Blocked` puts a blocked evaluation back to wait.
    pub status: EvalStatus,
    pub description: String,
    pub outcome: EvalOutcome,
    /// What was to become of each group, as a map to `DesiredUpdates`.
    pub desired: Doc,
    /// A blocked evaluation for what could not be placed.
    pub blocked: Option<NewEval>,
}

impl EvalEnd {
    /// Everything that was asked for is done.
    pub fn complete(outcome: EvalOutcome) -> EvalEnd {
        EvalEnd {
            status: EvalStatus::Complete,
            description: String::new(),
            outcome,
            desired: Doc::default(),
            blocked: None,
        }
    }
}

/// What a command led to. Index and order come from the batch that carries it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Reply {
    /// Evaluations that were created.
    pub evals: Vec<EvalId>,
    /// The verdict on a plan.
    pub verdict: Option<Verdict>,
    /// The version of the job that became its newest again.
    pub reverted_to: Option<u64>,
    /// The child that was dispatched or launched, or stands for the same wish already.
    pub child: Option<String>,
    /// The modify index that the job has by this command, for check-and-set; zero without a job. The state that is read after
    /// the commit may hold a later one already.
    #[serde(default)]
    pub job_modified: Index,
}

/// What was accepted of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Everything was; if the settlement named an end, the evaluation has ended.
    pub full: bool,
    /// Something was: trying again begins from another state.
    pub progress: bool,
    pub placed: u32,
    pub rejected: Vec<RejectedNode>,
}

/// Groups that could not be placed, read from an outcome.
pub fn failed_groups(outcome: &EvalOutcome) -> FailedGroups {
    if outcome.failed_groups.is_empty() { FailedGroups::new() } else { outcome.failed_groups.read() }
}

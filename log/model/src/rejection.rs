use std::borrow::Cow;

use base::{Index, Uuid};
use serde::{Deserialize, Serialize};

use crate::codec::compiled_once;
use crate::object::{AllocId, DeploymentId, EvalId, JobKey, NodeId, NodeStatus, VolumeKey};
use crate::service::ServiceKey;
use crate::variable::VariableKey;

compiled_once! { Rejection }

/// Why a command is rejected: deterministic and final. The caller gets the message unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Rejection {
    #[error("node not found")]
    NodeUnknown(NodeId),
    #[error("node secret ID does not match")]
    NodeSecretMismatch(NodeId),
    /// A silent node reports: what it says may be older than what was decided meanwhile.
    #[error("node {0} is not allowed to update allocs while in status {1}")]
    NodeSilent(NodeId, NodeStatus),
    #[error("invalid node: {field}: expected {expected}")]
    NodeInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    #[error("allocation {alloc} does not belong to node {node}")]
    NodeForeignAlloc { node: NodeId, alloc: String },
    /// It takes no work while it is emptied.
    #[error("node {0} is draining: stop the drain before it is marked as eligible")]
    NodeDraining(NodeId),
    #[error("node pool not found")]
    PoolUnknown(String),
    #[error("invalid node pool: {field}: expected {expected}")]
    PoolInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    /// The pool came with the cluster.
    #[error("node pool {0:?} came with the cluster: it cannot be changed or deleted")]
    PoolBuiltIn(String),
    /// Nodes or jobs are still in the pool.
    #[error("{0}")]
    PoolInUse(String),
    #[error("job not found")]
    JobUnknown(JobKey),
    #[error("{0}")]
    JobInvalid(String),
    /// The scheduler's configuration forbids to register, dispatch or scale.
    #[error("Job registration, dispatch, and scale are disabled by the scheduler configuration")]
    RegistrationDisabled,
    /// The job is not at the index the caller insists on.
    #[error("Enforcing job modify index {0}")]
    JobIndexMismatch(String),
    #[error("cannot update job type: stop and purge the job first")]
    JobTypeChanged,
    /// What the job is, or has become, does not let it.
    #[error("{0}")]
    JobRefused(String),
    #[error("namespace {0:?} not found")]
    NamespaceUnknown(String),
    #[error("Invalid namespace: {field}: expected {expected}")]
    NamespaceInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    /// It came with the cluster, or something is still in it.
    #[error("{0}")]
    NamespaceInUse(String),
    #[error("alloc not found")]
    AllocUnknown(AllocId),
    #[error("invalid update of allocation {alloc}: {field}")]
    AllocInvalid { alloc: String, field: Cow<'static, str> },
    #[error("eval not found")]
    EvalUnknown(EvalId),
    /// It cannot be deleted as it is, or not now.
    #[error("{0}")]
    EvalRefused(String),
    #[error("deployment not found")]
    DeploymentUnknown(DeploymentId),
    #[error("{0}")]
    DeploymentRefused(String),
    /// It ended already: a repeated or late settlement.
    #[error("evaluation is not outstanding")]
    EvalNotOutstanding(EvalId),
    #[error("invalid plan: {0}")]
    PlanInvalid(String),
    /// The same name for something else: whoever sent it would take the outcome of one for that of the other.
    #[error("request id {0} was used for another request already")]
    RequestReused(Uuid),
    #[error("must update at least one allocation")]
    NoUpdates,
    #[error("root key {0} not found")]
    RootKeyUnknown(Uuid),
    /// What the keyring is, or has become, does not let it.
    #[error("{0}")]
    RootKeyRefused(String),
    #[error("invalid root key: {field}: expected {expected}")]
    RootKeyInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    #[error("invalid key tree: {field}: expected {expected}")]
    KeyTreeInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    #[error("ACL policy not found")]
    AclPolicyUnknown(String),
    #[error("ACL role not found")]
    AclRoleUnknown(Uuid),
    #[error("ACL token not found")]
    AclTokenUnknown(Uuid),
    #[error("ACL auth-method not found")]
    AuthMethodUnknown(String),
    #[error("ACL binding rule not found")]
    BindingRuleUnknown(Uuid),
    #[error("{0}")]
    AclInvalid(String),
    /// The one-time token is not known, was exchanged before, or has expired.
    #[error("Permission denied")]
    OneTimeTokenRefused,
    #[error("variable not found")]
    VariableUnknown(VariableKey),
    /// It is another one than the caller saw, or somebody else holds its lock. `at`: the index it was last modified at; zero
    /// if there is none.
    #[error("variable {:?} was changed at index {at} meanwhile, or is locked", .key.path)]
    VariableConflict { key: VariableKey, at: Index },
    #[error("{0}")]
    VariableInvalid(String),
    #[error("service registration not found")]
    ServiceUnknown(ServiceKey),
    #[error("invalid service registration: {0}")]
    ServiceInvalid(String),
    #[error("volume not found: {}", .0.id)]
    VolumeUnknown(VolumeKey),
    #[error("volume in use: {}", .0.id)]
    VolumeInUse(VolumeKey),
    /// Nomad's nodes ask again when they find the last words in it.
    #[error("CSI volume {}: {why}: volume max claims reached", .volume.id)]
    VolumeClaimed { volume: VolumeKey, why: String },
    #[error("invalid volume: {field}: expected {expected}")]
    VolumeInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    #[error("event cursor {0:?} not found")]
    EventCursorUnknown(String),
    /// There are as many as there may be, or it began elsewhere.
    #[error("{0}")]
    EventCursorRefused(String),
    #[error("invalid event cursor: {field}: expected {expected}")]
    EventCursorInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    #[error("event sink {0:?} not found")]
    EventSinkUnknown(String),
    /// There are as many as there may be, or there is nothing to skip.
    #[error("{0}")]
    EventSinkRefused(String),
    #[error("invalid event sink: {field}: expected {expected}")]
    EventSinkInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    /// Everything in it is read of another cluster, at this address.
    #[error("this is a recording of {0}: nothing can be changed here")]
    RecordingOf(String),
    /// The log belongs to a cluster that decides itself, or too much came at once.
    #[error("{0}")]
    RecordingRefused(String),
    #[error("the snapshot is not restored: {0}")]
    RestoreInvalid(String),
    /// Servers of another release would not understand what it leads to.
    #[error(
        "servers of an older release may be in the cluster: this needs epoch {needed}, and the cluster is at {epoch}: \
         see sojourn operator upgrade check"
    )]
    EpochTooLow { needed: u16, epoch: u16 },
    #[error("epoch {0} is not known to this release")]
    EpochUnknown(u16),
    #[error("invalid autopilot configuration: {field}: expected {expected}")]
    AutopilotInvalid { field: Cow<'static, str>, expected: Cow<'static, str> },
    /// The scheduler's configuration was set at another index than the caller saw.
    #[error("the scheduler configuration was set at index {at} meanwhile")]
    SchedulerIndexMismatch { at: Index },
    /// The autopilot's configuration was set at another index than the caller saw.
    #[error("the autopilot configuration was set at index {at} meanwhile")]
    AutopilotIndexMismatch { at: Index },
}

/// What a rejection means to a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionKind {
    NotFound,
    Conflict,
    Invalid,
    Forbidden,
}

impl Rejection {
    pub const fn kind(&self) -> RejectionKind {
        match self {
            Rejection::NodeUnknown(_)
            | Rejection::PoolUnknown(_)
            | Rejection::JobUnknown(_)
            | Rejection::NamespaceUnknown(_)
            | Rejection::AllocUnknown(_)
            | Rejection::EvalUnknown(_)
            | Rejection::DeploymentUnknown(_)
            | Rejection::RootKeyUnknown(_)
            | Rejection::AclPolicyUnknown(_)
            | Rejection::AclRoleUnknown(_)
            | Rejection::AclTokenUnknown(_)
            | Rejection::VariableUnknown(_)
            | Rejection::ServiceUnknown(_)
            | Rejection::AuthMethodUnknown(_)
            | Rejection::BindingRuleUnknown(_)
            | Rejection::EventCursorUnknown(_)
            | Rejection::EventSinkUnknown(_)
            | Rejection::VolumeUnknown(_) => RejectionKind::NotFound,
            Rejection::NodeSilent(..)
            | Rejection::NodeDraining(_)
            | Rejection::JobIndexMismatch(_)
            | Rejection::EvalNotOutstanding(_)
            | Rejection::PoolInUse(_)
            | Rejection::NamespaceInUse(_)
            | Rejection::SchedulerIndexMismatch { .. }
            | Rejection::JobRefused(_)
            | Rejection::DeploymentRefused(_)
            | Rejection::VolumeInUse(_)
            | Rejection::VolumeClaimed { .. }
            | Rejection::VariableConflict { .. }
            | Rejection::RootKeyRefused(_)
            | Rejection::EventCursorRefused(_)
            | Rejection::EventSinkRefused(_)
            | Rejection::EvalRefused(_)
            | Rejection::RequestReused(_)
            | Rejection::RecordingRefused(_)
            | Rejection::EpochTooLow { .. }
            | Rejection::AutopilotIndexMismatch { .. } => RejectionKind::Conflict,
            Rejection::NodeSecretMismatch(_)
            | Rejection::NodeForeignAlloc { .. }
            | Rejection::OneTimeTokenRefused
            | Rejection::RecordingOf(_)
            | Rejection::RegistrationDisabled => RejectionKind::Forbidden,
            Rejection::NodeInvalid { .. }
            | Rejection::PoolInvalid { .. }
            | Rejection::NamespaceInvalid { .. }
            | Rejection::PoolBuiltIn(_)
            | Rejection::JobInvalid(_)
            | Rejection::JobTypeChanged
            | Rejection::AllocInvalid { .. }
            | Rejection::PlanInvalid(_)
            | Rejection::VolumeInvalid { .. }
            | Rejection::EventCursorInvalid { .. }
            | Rejection::EventSinkInvalid { .. }
            | Rejection::RootKeyInvalid { .. }
            | Rejection::KeyTreeInvalid { .. }
            | Rejection::RestoreInvalid(_)
            | Rejection::EpochUnknown(_)
            | Rejection::AclInvalid(_)
            | Rejection::VariableInvalid(_)
            | Rejection::ServiceInvalid(_)
            | Rejection::AutopilotInvalid { .. }
            | Rejection::NoUpdates => RejectionKind::Invalid,
        }
    }
}

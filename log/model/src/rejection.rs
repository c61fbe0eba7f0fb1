use std::borrow::Cow;

use base::{Index, Uuid};
use serde::{Deserialize, Serialize};

use crate::codec::compiled_once;
use crate::object::{AllocId, DeploymentId, EvalId, JobKey, NodeId, NodeStatus, VolumeKey};

compiled_once! { Rejection }

/// Why a command is rejected: deterministic and final. The caller gets the message unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub enum Rejection {
    NodeUnknown(NodeId),
    NodeSecretMismatch(NodeId),
    /// A silent node reports: what it says may be older than what was decided meanwhile.
    NodeSilent(NodeId, NodeStatus),
    NodeInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    NodeForeignAlloc {
        node: NodeId,
        alloc: String,
    },
    /// It takes no work while it is emptied.
    NodeDraining(NodeId),
    PoolUnknown(String),
    PoolInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    /// The pool came with the cluster.
    PoolBuiltIn(String),
    /// Nodes or jobs are still in the pool.
    PoolInUse(String),
    JobUnknown(JobKey),
    JobInvalid(String),
    /// The scheduler's configuration forbids to register, dispatch or scale.
    RegistrationDisabled,
    /// The job is not at the index the caller insists on.
    JobIndexMismatch(String),
    JobTypeChanged,
    /// What the job is, or has become, does not let it.
    JobRefused(String),
    NamespaceUnknown(String),
    NamespaceInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    /// It came with the cluster, or something is still in it.
    NamespaceInUse(String),
    AllocUnknown(AllocId),
    AllocInvalid {
        alloc: String,
        field: Cow<'static, str>,
    },
    EvalUnknown(EvalId),
    /// It cannot be deleted as it is, or not now.
    EvalRefused(String),
    DeploymentUnknown(DeploymentId),
    DeploymentRefused(String),
    /// It ended already: a repeated or late settlement.
    EvalNotOutstanding(EvalId),
    PlanInvalid(String),
    NoUpdates,
    RootKeyUnknown(Uuid),
    /// What the keyring is, or has become, does not let it.
    RootKeyRefused(String),
    RootKeyInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    VolumeUnknown(VolumeKey),
    VolumeInUse(VolumeKey),
    VolumeInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    RestoreInvalid(String),
    AutopilotInvalid {
        field: Cow<'static, str>,
        expected: Cow<'static, str>,
    },
    /// The scheduler's configuration was set at another index than the caller saw.
    SchedulerIndexMismatch {
        at: Index,
    },
    /// The autopilot's configuration was set at another index than the caller saw.
    AutopilotIndexMismatch {
        at: Index,
    },
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
            | Rejection::RootKeyRefused(_)
            | Rejection::EvalRefused(_)
            | Rejection::AutopilotIndexMismatch { .. } => RejectionKind::Conflict,
            Rejection::NodeSecretMismatch(_)
            | Rejection::NodeForeignAlloc { .. }
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
            | Rejection::RootKeyInvalid { .. }
            | Rejection::RestoreInvalid(_)
            | Rejection::AutopilotInvalid { .. }
            | Rejection::NoUpdates => RejectionKind::Invalid,
        }
    }
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rejection::NodeUnknown(_) => f.write_str("node not found"),
            Rejection::NodeSecretMismatch(_) => f.write_str("node secret ID does not match"),
            Rejection::NodeSilent(node, status) => {
                write!(f, "node {node} is not allowed to update allocs while in status {status}")
            }
            Rejection::NodeInvalid { field, expected } => {
                write!(f, "invalid node: {field}: expected {expected}")
            }
            Rejection::NodeForeignAlloc { node, alloc } => {
                write!(f, "allocation {alloc} does not belong to node {node}")
            }
            Rejection::NodeDraining(node) => {
                write!(f, "node {node} is draining: stop the drain before it is marked as eligible")
            }
            Rejection::PoolUnknown(_) => f.write_str("node pool not found"),
            Rejection::PoolInvalid { field, expected } => {
                write!(f, "invalid node pool: {field}: expected {expected}")
            }
            Rejection::PoolBuiltIn(name) => {
                write!(f, "node pool {name:?} came with the cluster: it cannot be changed or deleted")
            }
            Rejection::PoolInUse(why) => f.write_str(why),
            Rejection::RegistrationDisabled => f.write_str(
                "Job registration, dispatch, and scale are disabled by the scheduler configuration",
            ),
            Rejection::NamespaceUnknown(name) => write!(f, "namespace {name:?} not found"),
            Rejection::NamespaceInvalid { field, expected } => {
                write!(f, "Invalid namespace: {field}: expected {expected}")
            }
            Rejection::NamespaceInUse(why) => f.write_str(why),
            Rejection::JobUnknown(_) => f.write_str("job not found"),
            Rejection::JobInvalid(why) => f.write_str(why),
            Rejection::JobIndexMismatch(why) => write!(f, "Enforcing job modify index {why}"),
            Rejection::JobTypeChanged => f.write_str("cannot update job type: stop and purge the job first"),
            Rejection::AllocUnknown(_) => f.write_str("alloc not found"),
            Rejection::AllocInvalid { alloc, field } => {
                write!(f, "invalid update of allocation {alloc}: {field}")
            }
            Rejection::EvalUnknown(_) => f.write_str("eval not found"),
            Rejection::EvalNotOutstanding(_) => f.write_str("evaluation is not outstanding"),
            Rejection::DeploymentUnknown(_) => f.write_str("deployment not found"),
            Rejection::DeploymentRefused(why)
            | Rejection::JobRefused(why)
            | Rejection::EvalRefused(why)
            | Rejection::RootKeyRefused(why) => f.write_str(why),
            Rejection::RootKeyUnknown(key) => write!(f, "root key {key} not found"),
            Rejection::RootKeyInvalid { field, expected } => {
                write!(f, "invalid root key: {field}: expected {expected}")
            }
            Rejection::PlanInvalid(why) => write!(f, "invalid plan: {why}"),
            Rejection::RestoreInvalid(why) => write!(f, "the snapshot is not restored: {why}"),
            Rejection::AutopilotInvalid { field, expected } => {
                write!(f, "invalid autopilot configuration: {field}: expected {expected}")
            }
            Rejection::SchedulerIndexMismatch { at } => {
                write!(f, "the scheduler configuration was set at index {at} meanwhile")
            }
            Rejection::AutopilotIndexMismatch { at } => {
                write!(f, "the autopilot configuration was set at index {at} meanwhile")
            }
            Rejection::VolumeUnknown(volume) => write!(f, "volume not found: {}", volume.id),
            Rejection::VolumeInUse(volume) => write!(f, "volume in use: {}", volume.id),
            Rejection::VolumeInvalid { field, expected } => {
                write!(f, "invalid volume: {field}: expected {expected}")
            }
            Rejection::NoUpdates => f.write_str("must update at least one allocation"),
        }
    }
}

impl std::error::Error for Rejection {}

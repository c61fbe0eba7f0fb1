//! What happened to allocations.

use base::Time;
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::object::{AllocId, ClientStatus, DeploymentId, Desired, EvalId, JobKey, NodeId};

/// Placements of one group by one plan, as columns.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsPlaced {
    pub eval: EvalId,
    pub key: JobKey,
    pub version: u64,
    pub group: String,
    pub template: Doc,
    pub metrics: Doc,
    pub ids: Vec<AllocId>,
    pub nodes: Vec<NodeId>,
    pub names: Vec<u32>,
    /// The allocation each one replaces; nil where it replaces none, empty where none does.
    pub previous: Vec<AllocId>,
    /// What they are a part of.
    pub deployment: Option<DeploymentId>,
    /// They try out the version before the others follow.
    pub canary: bool,
    /// Host ports: as many per allocation as the template names, in its order.
    pub ports: Vec<u16>,
    /// The [`Given`](crate::Given) of each, empty bytes where there is nothing to say, empty where none has one.
    pub given: Vec<Doc>,
}

/// Running allocations were moved to a newer version of their job without a restart.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsUpdatedInPlace {
    pub eval: EvalId,
    pub version: u64,
    pub template: Doc,
    pub allocs: Vec<AllocId>,
    /// What they are a part of from here on. Those that were not yet have to prove their health again.
    pub deployment: Option<DeploymentId>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsStopped {
    pub allocs: Vec<AllocId>,
    pub desired: Desired,
    pub description: String,
    /// What the servers conclude about the client side, such as `lost`.
    pub client: Option<ClientStatus>,
    pub follow_up: Option<EvalId>,
}

/// The node is cut off; what runs there may still run.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsMarkedUnknown {
    pub allocs: Vec<AllocId>,
    pub follow_up: Option<EvalId>,
}

/// The node came back and the allocation stays.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsReconnected {
    pub allocs: Vec<AllocId>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocReported {
    pub alloc: AllocId,
    pub node: NodeId,
    pub from: ClientStatus,
    pub to: ClientStatus,
    pub description: String,
    pub report: Doc,
    /// What is new about its health.
    pub health: Option<HealthVerdict>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocTransitionRequested {
    pub allocs: Vec<AllocId>,
    pub migrate: bool,
    pub reschedule: bool,
    pub no_shutdown_delay: bool,
    /// Replace what failed, whatever its policy says.
    pub force_reschedule: bool,
    /// No replacement is placed.
    pub disable_placement: bool,
    pub cause: String,
}

/// Allocations have to make room for one of a job with a higher priority, which is placed in the same batch.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsPreempted {
    pub allocs: Vec<AllocId>,
    pub by: AllocId,
}

/// An operator set the health of allocations of a deployment.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocHealthSet {
    pub deployment: DeploymentId,
    pub healthy: bool,
    pub allocs: Vec<AllocId>,
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

/// Allocations that have ended, and whose job was purged before, are forgotten.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AllocsCollected {
    pub allocs: Vec<AllocId>,
}

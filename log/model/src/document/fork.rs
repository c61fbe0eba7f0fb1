//! What would happen: the result of changes on a fork of the state. Ours alone; nothing of it is stored.

use serde::{Deserialize, Serialize};

use super::alloc::AllocationMetric;
use super::shape::{Duration, List, Timestamp};

/// How a fork ended, compared with the state that it began with.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkResult {
    /// The state that it began with, and the time that it then was on the fork.
    pub index: u64,
    pub time: Timestamp,
    /// Nothing is left to be done or waited for.
    pub quiet: bool,
    /// `quiet`, `until`, `paused`, or the bound that was reached: `steps`, `evaluations`, `allocations`, `time`, `duration`.
    pub ended_by: String,
    /// How long it took on the fork's clock: tasks start and stop in no time there.
    pub virtual_time: Duration,
    /// Commands that were decided, and evaluations that were scheduled.
    pub steps: u64,
    pub evaluations: u64,
    pub counts: ForkCounts,
    /// Allocations that run and take no other's place.
    pub placed: List<ForkAllocation>,
    /// Allocations that run on another node than before.
    pub moved: List<ForkAllocation>,
    /// Allocations of which another one took the place on the same node.
    pub replaced: List<ForkAllocation>,
    /// Allocations that were stopped, without another one in their place.
    pub stopped: List<ForkAllocation>,
    /// Allocations that their node took with it, without another one in their place.
    pub lost: List<ForkAllocation>,
    /// Allocations that had to make room for others, wherever they run then.
    pub preempted: List<ForkAllocation>,
    /// Groups that lack more allocations than before for want of a node, and those of the jobs that were changed.
    pub unplaced: List<ForkUnplaced>,
    /// Groups of which too few were running at some moment.
    pub violated: List<ForkGroup>,
    /// Deployments that failed, began, or are still under way.
    pub deployments: List<ForkDeployment>,
    /// Free resources of nodes that take work, by datacenter.
    pub free: List<ForkFree>,
    pub free_total: ForkFree,
    /// What the result does not say.
    pub notes: List<String>,
    /// A list names the first of its items only; the counts are of all.
    pub cut_short: bool,
    /// Of a fork that is kept; null for others.
    pub kept: Option<ForkKept>,
}

/// A fork that a server keeps, to be read and to go on from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkKept {
    #[serde(rename = "ID")]
    pub id: String,
    /// The token that it was made with; empty without access control.
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub created: Timestamp,
    /// When it is forgotten, and how long that is from now.
    pub expires: Timestamp,
    pub remaining: Duration,
    /// The index of the state that it began with, and that of the state it has come to.
    pub index: u64,
    pub fork_index: u64,
    /// The time on its clock, and how much of it has passed.
    pub time: Timestamp,
    pub virtual_time: Duration,
    /// Changes that were made.
    pub changes: u64,
    /// Allocations that it changed or added.
    pub allocations: u64,
    pub ended_by: String,
    pub counts: ForkCounts,
}

/// How many there are of each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkCounts {
    pub placed: u64,
    pub moved: u64,
    pub replaced: u64,
    pub updated_in_place: u64,
    pub stopped: u64,
    pub lost: u64,
    pub preempted: u64,
    /// Allocations of nodes that may still return.
    pub unknown: u64,
    /// Allocations without a node, of the groups that `Unplaced` has.
    pub unplaced: u64,
    /// Allocations that had no node before either.
    pub unplaced_before: u64,
    /// Groups that `Violated` has, and deployments that failed.
    pub violated: u64,
}

/// What became of an allocation. The ids of allocations that exist on the fork only are not shown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkAllocation {
    /// Empty for one that is new.
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    /// The node that it was on; empty for one that is new.
    #[serde(rename = "FromNodeID")]
    pub from_node_id: String,
    pub from_node_name: String,
    /// The node that it, or what took its place, is on; empty without one.
    #[serde(rename = "ToNodeID")]
    pub to_node_id: String,
    pub to_node_name: String,
    /// Why it left, in the scheduler's words.
    pub cause: String,
}

/// A group with allocations that no node takes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkUnplaced {
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub group: String,
    pub before: u64,
    pub after: u64,
    /// What the first of them saw: nodes ruled out, resources exhausted.
    pub failed: AllocationMetric,
}

/// A group of which fewer were running than its `migrate` and `update` blocks allow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkGroup {
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub group: String,
    /// As many as the group's count says, in the end.
    pub wanted: u64,
    /// Its count less `max_parallel`.
    pub allowed: u64,
    pub running_before: u64,
    /// At the worst moment.
    pub lowest: u64,
    pub running_after: u64,
}

/// A deployment as it is in the end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkDeployment {
    pub namespace: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    pub job_version: u64,
    pub status: String,
    pub status_description: String,
    /// It failed on the fork.
    pub failed: bool,
}

/// What is free in a datacenter, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkFree {
    /// Empty for all of them together.
    pub datacenter: String,
    pub before: ForkRoom,
    pub after: ForkRoom,
}

/// What nodes have that are ready, eligible and not drained.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ForkRoom {
    pub nodes: u64,
    #[serde(rename = "CPU")]
    pub cpu: u64,
    #[serde(rename = "FreeCPU")]
    pub free_cpu: u64,
    #[serde(rename = "MemoryMB")]
    pub memory_mb: u64,
    #[serde(rename = "FreeMemoryMB")]
    pub free_memory_mb: u64,
}

//! Preemption: which allocations of jobs with lower priority have to be stopped so that one more fits on a node.
//!
//! [`victims`] works on plain numbers. [`Preemptor`] collects what is on the node, with the plan in progress applied,
//! as [`NodeAlloc`]s in the order of their ids, and gets back the indexes of those to preempt. The freed node has to be
//! checked again like any other, which also decides which ports, cores and device instances the placement gets.

mod amounts;
mod devices;
mod networks;
mod preemptor;

use std::collections::BTreeSet;

use model::document::Node;
use state::node::Amount;

use crate::feasibility::devices::{DeviceId, DeviceRequests};

pub use networks::{NetworkInterface, NetworkUse};
pub use preemptor::{Preemptor, preemption_score};

/// How much lower the priority of a job has to be for its allocations to be preempted.
const GAP: u32 = 10;

/// The cost of preempting more allocations of a group than its `migrate` block allows at once.
const PENALTY: f64 = 50.0;

/// An allocation that uses resources of the node.
#[derive(Clone, Debug, Default)]
pub struct NodeAlloc {
    /// Of its job.
    pub priority: u32,
    /// It belongs to the job that preempts: it uses resources and is never preempted.
    pub is_own: bool,
    pub amount: Amount,
    /// Its reserved cores.
    pub cores: usize,
    /// Its first network.
    pub network: Option<NetworkUse>,
    pub devices: BTreeSet<DeviceId>,
    /// `max_parallel` of its group's `migrate` block; 0: not set.
    pub max_parallel: u32,
    /// How many of its group the plan preempts already.
    pub preempted: u32,
}

impl NodeAlloc {
    pub fn makes_room_for(&self, priority: u32) -> bool {
        !self.is_own && self.priority.saturating_add(GAP) <= priority
    }

    fn penalty(&self) -> f64 {
        if self.max_parallel == 0 || self.preempted < self.max_parallel {
            return 0.0;
        }
        PENALTY * f64::from(self.preempted + 1 - self.max_parallel)
    }
}

/// What one placement requires.
#[derive(Clone, Debug)]
pub struct PreemptionRequest<'a> {
    /// Of its job.
    pub priority: u32,
    pub amount: Amount,
    /// Reserved cores.
    pub cores: usize,
    /// Its network, if its ports cannot be assigned without preemption.
    pub network: Option<&'a NetworkUse>,
    pub devices: &'a DeviceRequests,
}

/// What the node has in all.
#[derive(Clone, Debug)]
pub struct NodeRoom<'a> {
    pub node: &'a Node,
    pub capacity: Amount,
    /// Cores that tasks may reserve.
    pub cores: usize,
    pub interfaces: &'a [NetworkInterface],
}

/// The indexes of the allocations to preempt, ascending; empty if the placement fits without. `None`: no preemption
/// helps.
///
/// What is preempted for the network or for devices counts as gone in the steps after it.
pub fn victims(
    wanted: &PreemptionRequest<'_>,
    node_room: &NodeRoom<'_>,
    allocs: &[NodeAlloc],
) -> Option<Vec<usize>> {
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    if let Some(network) = wanted.network {
        gone.extend(networks::victims(wanted.priority, network, node_room.interfaces, allocs)?);
    }
    gone.extend(devices::victims(wanted, node_room.node, allocs, &gone)?);
    gone.extend(amounts::victims(wanted, node_room, allocs, &gone)?);
    Some(gone.into_iter().collect())
}

/// The preemption score of a node: nearly 1 for usual priorities, falling with their sum.
pub fn score(priorities: impl IntoIterator<Item = u32>) -> f64 {
    let (highest, sum) = priorities.into_iter().fold((0, 0), |(highest, sum): (u32, u64), priority| {
        (highest.max(priority), sum + u64::from(priority))
    });
    let net = f64::from(highest) + if highest == 0 { 0.0 } else { sum as f64 / f64::from(highest) };
    1.0 / (1.0 + exp(0.0048 * (net - 2048.0)))
}

/// e to the `x`, the same bits on every machine: the standard library leaves its last bits to the platform.
fn exp(x: f64) -> f64 {
    let t = x.clamp(-500.0, 500.0) / 4096.0;
    // At most 0.123: the first term left out of the series is 0.123^9 / 9! = 2e-14, for an `x` of 500.
    let mut series = 1.0;
    for term in (1..=8).rev() {
        series = 1.0 + t / f64::from(term) * series;
    }
    (0..12).fold(series, |power, _| power * power)
}

/// The allocations that may be preempted, by priority, lowest first; equal ones in their order.
fn by_priority(allocs: &[NodeAlloc], priority: u32, gone: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut indexes: Vec<usize> = (0..allocs.len())
        .filter(|index| allocs[*index].makes_room_for(priority) && !gone.contains(index))
        .collect();
    indexes.sort_by_key(|index| allocs[*index].priority);
    indexes.chunk_by(|a, b| allocs[*a].priority == allocs[*b].priority).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests;

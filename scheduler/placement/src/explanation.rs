//! What a pass finds out on its way, beside the plan.

use std::collections::BTreeMap;

use base::Index;
use model::document::{AllocationMetric, DesiredUpdates, Reconnect};

/// Allocations without a node that are named in a group. More are only counted.
pub const UNPLACED_MAX: usize = 16;

/// What a pass found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The index of the state that was used.
    pub snapshot: Index,
    pub groups: BTreeMap<String, GroupExplanation>,
}

/// What was found out about one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupExplanation {
    /// How many of its allocations are placed, stopped, updated and so on.
    pub desired: DesiredUpdates,
    /// The metrics of the first placement: infeasible nodes by reason, best scores.
    pub placed: Option<AllocationMetric>,
    /// The metrics of the first allocation that could not be placed, and how many more there were.
    pub failed: Option<AllocationMetric>,
    /// The first [`UNPLACED_MAX`] that could not be placed.
    pub unplaced: Vec<Unplaced>,
    /// The choices between allocations that came back and their replacements.
    pub reconnects: Vec<Reconnect>,
}

/// An allocation that could not be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unplaced {
    /// The number in its name.
    pub name_index: u32,
    /// The version of the job that it would have run.
    pub version: u64,
}

impl GroupExplanation {
    pub(crate) fn add_unplaced(&mut self, name_index: u32, version: u64) {
        if self.unplaced.len() < UNPLACED_MAX {
            self.unplaced.push(Unplaced { name_index, version });
        }
    }
}

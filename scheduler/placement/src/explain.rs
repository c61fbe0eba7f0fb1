use std::collections::BTreeMap;

use base::Index;
use model::document::{AllocationMetric, DesiredUpdates};

/// Why the plan is what it is. The decision stands in the log; this can be computed again at any time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// The state that was looked at.
    pub snapshot: Index,
    pub groups: BTreeMap<String, GroupExplanation>,
}

/// What was found out about one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupExplanation {
    /// What is to become of its allocations, in numbers.
    pub desired: DesiredUpdates,
    /// What the first placement saw: nodes ruled out by reason, best scores.
    pub placed: Option<AllocationMetric>,
    /// What the first allocation saw that found no place, and how many more there were.
    pub failed: Option<AllocationMetric>,
}

//! Why a plan is what it is. The decision stands in the log; this can be computed again at any time.

use std::collections::BTreeMap;

use base::{Index, Time};
use model::document::{AllocationMetric, DesiredUpdates, GroupReasons};
use state::State;
use state::eval::Eval;

use crate::hints::{Found, hints};
use crate::nearest::nearest;
use crate::{Outcome, schedule};

/// Groups without a place that are looked at closely; of the others only the metrics are told.
pub const GROUPS_EXPLAINED_MAX: usize = 8;

/// What a pass found out.
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

/// A decision made again, and all that can be said about it.
#[derive(Clone, Debug)]
pub struct Reasons {
    pub outcome: Outcome,
    pub groups: BTreeMap<String, GroupReasons>,
}

/// Decides again what was decided on this state with this seed at this time, and says why.
pub fn explain(state: &State, eval: &Eval, seed: u64, now: Time) -> Reasons {
    let outcome = schedule(state, eval, seed, now);
    // Room is what is left beside what the plan itself places.
    let after = rules::fork::settled(state, &outcome.settlement, now).map(|(after, _)| after);
    let after = after.as_ref().unwrap_or(state);
    let mut groups = BTreeMap::new();
    let mut explained = 0;
    for (name, found) in &outcome.explanation.groups {
        let mut reasons = GroupReasons {
            desired: found.desired.clone(),
            placed: found.placed.clone(),
            failed: found.failed.clone(),
            missing: found.failed.as_ref().map_or(0, |failed| failed.coalesced_failures as u64 + 1),
            ..GroupReasons::default()
        };
        if found.failed.is_some() && explained < GROUPS_EXPLAINED_MAX {
            explained += 1;
            reasons.nearest = nearest(after, eval.job, name).into();
            let Found { changes, cut_short } = hints(state, eval, seed, now, name);
            (reasons.would_fit_if, reasons.hints_cut_short) = (changes.into(), cut_short);
        }
        groups.insert(name.clone(), reasons);
    }
    Reasons { outcome, groups }
}

//! Why a plan is what it is. The decision is in the log, so that this can be computed again at any time.

mod dry_run;
mod hints;
mod nearest;

use std::collections::BTreeMap;

use base::{Index, Time};
use model::document::{AllocationMetric, DesiredUpdates, GroupReasons};
use state::State;
use state::eval::Eval;

use crate::{Outcome, schedule};
use hints::{Found, hints};
use nearest::nearest;

pub use dry_run::{DryRun, dry_run};
pub use hints::{HINTS_MAX, TRIES_MAX};
pub use nearest::NEAREST_SHOWN;

/// Groups that could not be placed and get hints and nearest nodes. The others get their metrics only.
pub const GROUPS_EXPLAINED_MAX: usize = 8;

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
}

/// A decision made again, with the reasons for it.
#[derive(Clone, Debug)]
pub struct Reasons {
    pub outcome: Outcome,
    pub groups: BTreeMap<String, GroupReasons>,
}

/// Repeats the decision that was made on this state with this seed at this time, and explains it.
pub fn explain(state: &State, eval: &Eval, seed: u64, now: Time) -> Reasons {
    let outcome = schedule(state, eval, seed, now);
    // The nearest nodes are those that remain after the plan itself is applied.
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

//! Why a plan is what it is. The decision is in the log, so that this can be computed again at any time.

mod dry_run;
mod hints;
mod nearest;

use std::collections::BTreeMap;

use base::Time;
use model::document::{GroupReasons, Job};
use state::State;
use state::eval::Eval;

use crate::explanation::Unplaced;
use crate::{Outcome, schedule};
use hints::{Asked, Found, hints};
use nearest::{Wanted, nearest};

pub use dry_run::{DryRun, dry_run};
pub use hints::{HINTS_MAX, TRIES_MAX};
pub use nearest::{NEAREST_SHOWN, against};

/// Groups that could not be placed and get hints and nearest nodes. The others get their metrics only.
pub const GROUPS_EXPLAINED_MAX: usize = 8;

/// What the servers make of a job that is registered, such as constraints that follow from what it uses.
pub type Registers<'r> = &'r dyn Fn(&mut Job);

/// A decision made again, with the reasons for it.
#[derive(Clone, Debug)]
pub struct Reasons {
    pub outcome: Outcome,
    pub groups: BTreeMap<String, GroupReasons>,
}

/// Repeats the decision that was made on this state with this seed at this time, and explains it.
pub fn explain(state: &State, eval: &Eval, seed: u64, now: Time, registers: Registers) -> Reasons {
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
            reconnects: found.reconnects.clone().into(),
            missing: found.failed.as_ref().map_or(0, |failed| failed.coalesced_failures as u64 + 1),
            ..GroupReasons::default()
        };
        if found.failed.is_some() && explained < GROUPS_EXPLAINED_MAX {
            explained += 1;
            let current = state.jobs.get(eval.job).current().version;
            let first = found.unplaced.first().copied();
            let first = first.unwrap_or(Unplaced { name_index: 0, version: current });
            reasons.older_version = (first.version != current).then_some(first.version);
            reasons.missing_names = names(state, eval, name, &found.unplaced).into();
            reasons.nodes = state.nodes.len() as u64;
            let wanted = Wanted { job: eval.job, group: name, which: first };
            reasons.nearest = nearest(after, wanted).into();
            let asked = Asked { state, eval, seed, now, registers, group: name, version: first.version };
            let Found { changes, tried, cut_short } = hints(asked, &reasons.nearest);
            (reasons.would_fit_if, reasons.tried) = (changes.into(), tried as u64);
            reasons.hints_cut_short = cut_short;
        }
        groups.insert(name.clone(), reasons);
    }
    Reasons { outcome, groups }
}

/// The names of allocations that could not be placed, each once: a job that runs on every node gives all the same.
fn names(state: &State, eval: &Eval, group: &str, unplaced: &[Unplaced]) -> Vec<String> {
    let current = state.jobs.get(eval.job).current();
    let indexes: std::collections::BTreeSet<u32> = unplaced.iter().map(|one| one.name_index).collect();
    indexes.into_iter().map(|index| state::alloc::name(current, group, index)).collect()
}

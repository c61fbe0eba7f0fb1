//! Names of a group that no allocation holds, and why.

use std::collections::BTreeMap;

use api::MissingSlot;
use model::ClientStatus;
use state::State;
use state::alloc::Alloc;
use state::alloc::reschedule::{self, Policy};
use state::job::JobState;

use super::alloc::{link, why_not};

/// Names that are shown.
const SLOTS_MAX: usize = 8;

/// The first names of the group that nothing holds. A job that runs on every node has no such names.
pub(super) fn missing(state: &State, job: &JobState, group: &str) -> Vec<MissingSlot> {
    let current = job.current();
    if current.kind.is_per_node() || !job.is_wanted() {
        return Vec::new();
    }
    let count = current.group(group).and_then(|group| group.count).unwrap_or(0);
    let mut newest: BTreeMap<u32, &Alloc> = BTreeMap::new();
    for alloc in job.allocs.iter().map(|row| state.allocs.get(*row)).filter(|alloc| &*alloc.group == group) {
        let rank = |alloc: &Alloc| (holds(alloc), alloc.created, alloc.id);
        let known = newest.entry(alloc.name_index).or_insert(alloc);
        if rank(alloc) > rank(known) {
            *known = alloc;
        }
    }
    let free = (0..u32::try_from(count).unwrap_or(0))
        .filter(|name| newest.get(name).is_none_or(|alloc| !holds(alloc)));
    let slot = |index: u32| {
        let last = newest.get(&index).copied();
        let (why, until) =
            last.map_or_else(|| ("it has not been placed yet".to_string(), None), |last| why(state, last));
        MissingSlot {
            name: state::alloc::name(current, group, index),
            last: last.map(|last| link(state, last)),
            why,
            until: until.map(Into::into),
        }
    };
    free.take(SLOTS_MAX).map(slot).collect()
}

/// It runs, or it is finished work that is not repeated.
fn holds(alloc: &Alloc) -> bool {
    !alloc.is_terminal() || (alloc.version.kind.is_batch() && alloc.client == ClientStatus::Complete)
}

fn why(state: &State, last: &Alloc) -> (String, Option<base::Time>) {
    if last.is_stopping() {
        let text =
            if last.desired_description.is_empty() { "it was stopped" } else { &last.desired_description };
        return (format!("the last one was stopped: {text}"), None);
    }
    if !matches!(last.client, ClientStatus::Failed | ClientStatus::Lost) {
        return (format!("the last one is {}", last.client), None);
    }
    if let Some(due) = reschedule::due_after_failure(state, last) {
        return (format!("the last one is {} and is to be replaced", last.client), Some(due));
    }
    let why = Policy::of(last)
        .map_or("it has no reschedule policy".to_string(), |policy| why_not(state, last, &policy));
    (format!("the last one is {}, and {why}", last.client), None)
}

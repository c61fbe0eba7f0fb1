//! Garbage collection of what jobs leave behind while they live on: evaluations, allocations and deployments that are
//! over. Of purged jobs their evaluations.

use std::collections::BTreeSet;

use base::{Duration, Time};
use model::command::{LeftoverAges, Leftovers};
use model::event::{AllocsCollected, DeploymentCollected, EvalsDeleted};
use model::{AllocId, ClientStatus, Desired, EvalId, Event};
use state::State;
use state::alloc::{Alloc, reschedule};
use state::job::{JobRow, JobState};

use crate::decision::Decision;

/// Most evaluations, allocations and deployments that one command forgets: it bounds the pause.
pub const LEFTOVERS_MAX: usize = 4096;

/// What of a job may be forgotten, and when something else of it will be old enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub leftovers: Leftovers,
    pub next: Option<Time>,
}

/// Looks at one job. The cost is that of reading its allocations, evaluations and deployments once.
pub fn find(state: &State, row: JobRow, ages: &LeftoverAges, now: Time) -> Found {
    let job = state.jobs.get(row);
    let mut found = Found::default();
    let needed = predecessors_needed(state, job);
    for alloc in job.allocs.iter().map(|row| state.allocs.get(*row)) {
        if is_over(state, job, alloc) && !needed.contains(&alloc.id) {
            let age = age_of(ages, alloc.version.kind.is_batch());
            take(&mut found.next, alloc.modify_time.plus(age), now, || found.leftovers.allocs.push(alloc.id));
        }
    }
    let taken = without_links(state, job, &mut found.leftovers.allocs);
    let in_use = evals_in_use(state, job, &taken);
    for eval in job.evals.iter().map(|row| state.evals.get(*row)) {
        if eval.status.is_terminal() && !in_use.contains(&eval.id()) {
            let age = age_of(ages, eval.facts.kind.is_batch());
            take(&mut found.next, eval.modify_time.plus(age), now, || found.leftovers.evals.push(eval.id()));
        }
    }
    // The newest one says how the job came to be what it is.
    let older = job.deployments.split_last().map_or(&[][..], |(_, older)| older);
    for deployment in older.iter().map(|row| state.deployments.get(*row)) {
        if !deployment.is_active() && !deploys_for(state, job, deployment.id) {
            let due = deployment.modify_time.plus(ages.deployments);
            take(&mut found.next, due, now, || found.leftovers.deployments.push(deployment.id));
        }
    }
    found
}

/// Forgets what is named, as far as it may be forgotten now; without names whatever may.
pub(crate) fn collect(state: &State, now: Time, named: Option<&Leftovers>, ages: &LeftoverAges) -> Decision {
    let rows = match named {
        Some(named) => owners(state, named),
        None => state.jobs.all_rows().collect(),
    };
    let mut chosen = Leftovers::default();
    for row in rows {
        let found = find(state, row, ages, now).leftovers;
        let kept = match named {
            Some(named) => common(state, row, found, named),
            None => found,
        };
        chosen.allocs.extend(kept.allocs);
        chosen.evals.extend(kept.evals);
        chosen.deployments.extend(kept.deployments);
        if chosen.len() >= LEFTOVERS_MAX {
            break;
        }
    }
    Decision::of(events(chosen))
}

fn events(chosen: Leftovers) -> Vec<Event> {
    let Leftovers { evals, allocs, deployments } = chosen;
    let mut events: Vec<Event> = Vec::new();
    if !allocs.is_empty() {
        events.push(AllocsCollected { allocs }.into());
    }
    if !evals.is_empty() {
        events.push(EvalsDeleted { evals }.into());
    }
    events.extend(deployments.into_iter().map(|deployment| DeploymentCollected { deployment }.into()));
    events
}

/// The jobs of what is named.
fn owners(state: &State, named: &Leftovers) -> BTreeSet<JobRow> {
    let evals = named.evals.iter().filter_map(|id| state.evals.lookup(*id)).map(|eval| eval.job);
    let allocs = named.allocs.iter().filter_map(|id| state.allocs.lookup(*id)).map(|alloc| alloc.job);
    let deployments = named.deployments.iter().filter_map(|id| state.deployments.lookup(*id));
    evals.chain(allocs).chain(deployments.map(|deployment| deployment.job)).collect()
}

/// What was found and is named. An evaluation stays with an allocation of it that is not named.
fn common(state: &State, row: JobRow, found: Leftovers, named: &Leftovers) -> Leftovers {
    fn both<T: Ord + Copy>(found: Vec<T>, named: &[T]) -> Vec<T> {
        let named: BTreeSet<T> = named.iter().copied().collect();
        found.into_iter().filter(|id| named.contains(id)).collect()
    }
    let mut allocs = both(found.allocs, &named.allocs);
    let taken = without_links(state, state.jobs.get(row), &mut allocs);
    let in_use = evals_in_use(state, state.jobs.get(row), &taken);
    let mut evals = both(found.evals, &named.evals);
    evals.retain(|eval| !in_use.contains(eval));
    Leftovers { evals, allocs, deployments: both(found.deployments, &named.deployments) }
}

/// Does it now, or remembers when.
fn take(next: &mut Option<Time>, due: Time, now: Time, mut collect: impl FnMut()) {
    if due <= now {
        collect();
    } else {
        *next = Some(next.map_or(due, |next| next.min(due)));
    }
}

fn age_of(ages: &LeftoverAges, is_batch: bool) -> Duration {
    if is_batch { ages.batch_evals } else { ages.evals }
}

/// Evaluations of allocations that stay.
fn evals_in_use(state: &State, job: &JobState, taken: &BTreeSet<AllocId>) -> BTreeSet<EvalId> {
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    allocs.filter(|alloc| !taken.contains(&alloc.id)).map(|alloc| alloc.eval).collect()
}

/// Reschedule attempts are not stored with an allocation: they follow from those before it, so these stay with it.
fn predecessors_needed(state: &State, job: &JobState) -> BTreeSet<AllocId> {
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    let stays = allocs.filter(|alloc| alloc.previous.is_some() && !is_over(state, job, alloc));
    stays.flat_map(|alloc| reschedule::past(state, alloc)).map(|past| past.alloc).collect()
}

/// Leaves out what took the place of an allocation that stays: without it, that one would look as if nothing had, and be
/// replaced again. Returns the rest as a set.
fn without_links(state: &State, job: &JobState, allocs: &mut Vec<AllocId>) -> BTreeSet<AllocId> {
    let mut taken: BTreeSet<AllocId> = allocs.iter().copied().collect();
    let known = job.allocs.iter().map(|row| state.allocs.get(*row));
    let stays: Vec<&Alloc> =
        known.filter(|alloc| alloc.next.is_some() && !taken.contains(&alloc.id)).collect();
    for successor in stays.into_iter().flat_map(|alloc| reschedule::successors(state, alloc)) {
        taken.remove(&successor.id);
    }
    allocs.retain(|alloc| taken.contains(alloc));
    taken
}

/// Nobody needs the allocation: neither its node nor the scheduler.
fn is_over(state: &State, job: &JobState, alloc: &Alloc) -> bool {
    let ended = alloc.client.is_terminal() || state.nodes.hot(alloc.node).gone;
    let waits = state.evals.lookup(alloc.eval).is_some_and(|eval| !eval.status.is_terminal());
    if !ended || waits {
        return false;
    }
    if !job.is_wanted() {
        return true;
    }
    let current = job.current();
    let is_current =
        (alloc.version.job_created, alloc.version.version) == (current.job_created, current.version);
    // Without what has run, the scheduler would run it again.
    if current.kind.is_batch() {
        return !is_current;
    }
    !holds_place(alloc, is_current)
}

/// It failed and nothing took its place: without it the scheduler would place another one at once, whatever the
/// reschedule policy says.
fn holds_place(alloc: &Alloc, is_current: bool) -> bool {
    let policy = reschedule::Policy::of(alloc);
    let unlimited = policy.is_some_and(|policy| policy.is_enabled() && policy.attempts_max().is_none());
    alloc.client == ClientStatus::Failed
        && alloc.desired == Desired::Run
        && alloc.next.is_none()
        && (is_current || unlimited)
}

/// Some allocation of the deployment has not ended.
fn deploys_for(state: &State, job: &JobState, deployment: model::DeploymentId) -> bool {
    let mut allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    allocs.any(|alloc| alloc.deployment == Some(deployment) && !alloc.is_terminal())
}

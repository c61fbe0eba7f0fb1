//! Garbage collection: jobs that ended for good with all they owned, what purged jobs left running, and nodes that left.

use base::{Duration, Time};
use model::event::{AllocsCollected, EvalsDeleted, Event, JobPurged};
use model::{AllocId, JobKey, JobType, NodeStatus, Rejection};
use state::State;
use state::alloc::Alloc;
use state::job::JobState;
use state::node::NodeRow;

use crate::decision::{Context, Decision};
use crate::leftovers::LEFTOVERS_MAX;
use crate::node;

/// Most jobs, and most nodes, that one command collects: it bounds the pause. The rest waits for the next command.
pub const COLLECTED_MAX: usize = 256;

/// Most allocations of purged jobs that one command collects.
const ALLOCS_MAX: usize = 4096;

/// Forgets what can be forgotten and has been over for long enough, at most [`COLLECTED_MAX`] jobs and as many nodes. It
/// looks at every job there is.
pub(crate) fn collect(
    state: &State,
    ctx: &mut Context,
    jobs_after: Duration,
    nodes_after: Duration,
) -> Result<Decision, Rejection> {
    let jobs = state.jobs.iter().map(|(_, job)| job);
    collect_of(state, ctx, jobs, jobs_after, Some(nodes_after))
}

/// As [`collect`], for the jobs that the leader found to be due. Without `nodes_after` for these alone.
pub(crate) fn collect_due(
    state: &State,
    ctx: &mut Context,
    jobs: &[JobKey],
    jobs_after: Duration,
    nodes_after: Option<Duration>,
) -> Result<Decision, Rejection> {
    let jobs = jobs.iter().filter_map(|key| state.jobs.lookup(key));
    collect_of(state, ctx, jobs, jobs_after, nodes_after)
}

fn collect_of<'a>(
    state: &State,
    ctx: &mut Context,
    jobs: impl Iterator<Item = &'a JobState>,
    jobs_after: Duration,
    nodes_after: Option<Duration>,
) -> Result<Decision, Rejection> {
    let mut events = purged(state, ctx.time, jobs_after, jobs);
    // Neither has a deadline that the leader could name: all of them are looked at, once in an interval.
    if let Some(after) = nodes_after {
        events.extend(outlived(state));
        events.extend(left(state, ctx, after)?);
    }
    Ok(Decision::of(events))
}

/// When the job may be forgotten; `None` while it is not over.
pub fn due(state: &State, job: &JobState, after: Duration) -> Option<Time> {
    is_over(state, job).then(|| last_changed(state, job).plus(after))
}

/// Forgets those jobs that may be forgotten, with all that they own. One with more evaluations than one command forgets
/// loses some of them first.
fn purged<'a>(
    state: &State,
    now: Time,
    after: Duration,
    jobs: impl Iterator<Item = &'a JobState>,
) -> Vec<Event> {
    let mut over: Vec<&JobState> =
        jobs.filter(|job| due(state, job, after).is_some_and(|due| due <= now)).collect();
    // Jobs are kept in no order that means anything.
    over.sort_by(|a, b| a.key.cmp(&b.key));
    over.dedup_by(|a, b| a.key == b.key);
    let (mut evals, mut keys) = (Vec::new(), Vec::new());
    for job in over.into_iter().take(COLLECTED_MAX) {
        let room = LEFTOVERS_MAX - evals.len();
        let own = job.evals.iter().take(room).map(|row| state.evals.get(*row).id());
        evals.extend(own);
        if job.evals.len() > room {
            break;
        }
        keys.push(job.key.clone());
    }
    let deleted = (!evals.is_empty()).then(|| EvalsDeleted { evals }.into());
    deleted.into_iter().chain(keys.into_iter().map(|key| JobPurged { key }.into())).collect()
}

/// What purged jobs left running, once it has ended.
fn outlived(state: &State) -> Option<Event> {
    let of_purged = state.jobs.purged().flat_map(|job| job.allocs.iter().map(|row| state.allocs.get(*row)));
    let mut allocs: Vec<AllocId> =
        of_purged.filter(|alloc| has_ended(state, alloc)).map(|alloc| alloc.id).collect();
    allocs.sort_unstable();
    allocs.truncate(ALLOCS_MAX);
    (!allocs.is_empty()).then(|| AllocsCollected { allocs }.into())
}

/// Nodes that have been down for so long and hold nothing.
fn left(state: &State, ctx: &mut Context, after: Duration) -> Result<Vec<Event>, Rejection> {
    let now = ctx.time;
    let down_since = |row: &NodeRow| state.nodes.cold(*row).status_updated;
    let left = state.nodes.rows().filter(|row| has_left(state, *row));
    let left = left.filter(|row| down_since(row).plus(after) <= now).take(COLLECTED_MAX);
    let mut events = Vec::new();
    for row in left {
        events.extend(node::decide::deregister(state, ctx, state.nodes.cold(row).id)?.events);
    }
    Ok(events)
}

/// It was stopped or has ended by itself, nothing of it runs or waits, and no version of it has a tag.
fn is_over(state: &State, job: &JobState) -> bool {
    let is_tagged = || job.notes.as_ref().is_some_and(|notes| !notes.tags.is_empty());
    let ran = job.had_evals || job.is_stopped();
    let runs = || job.allocs.iter().any(|row| !state.allocs.get(*row).client.is_terminal());
    // The document comes last: every job of the cluster is looked at, and most are not over.
    job.status == model::JobStatus::Dead
        && ran
        && job.live_evals.is_empty()
        && !is_tagged()
        && !runs()
        && (job.is_stopped() || ends_by_itself(job))
}

fn ends_by_itself(job: &JobState) -> bool {
    let (current, wanted) = (job.current(), &job.current().job);
    matches!(current.kind, JobType::Batch | JobType::Sysbatch)
        && wanted.periodic.is_none()
        && (wanted.parameterized_job.is_none() || wanted.dispatched)
}

/// When it was submitted, or something of it changed last.
fn last_changed(state: &State, job: &JobState) -> Time {
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row).modify_time);
    allocs.fold(job.current().submitted, Time::max)
}

fn has_ended(state: &State, alloc: &Alloc) -> bool {
    alloc.client.is_terminal() || state.nodes.hot(alloc.node).gone
}

fn has_left(state: &State, row: NodeRow) -> bool {
    let hot = state.nodes.hot(row);
    let holds = || state.nodes.load(row).allocs.iter().any(|alloc| !state.allocs.get(*alloc).is_terminal());
    hot.status == NodeStatus::Down && !holds()
}

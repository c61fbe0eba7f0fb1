//! Garbage collection: jobs that ended for good with all they owned, what purged jobs left running, and nodes that left.

use base::{Duration, Time};
use model::event::{AllocsCollected, Event, JobPurged};
use model::{AllocId, JobType, NodeStatus, Rejection};
use state::State;
use state::alloc::Alloc;
use state::job::JobState;
use state::node::NodeRow;

use crate::decision::{Context, Decision};
use crate::node;

/// Most jobs, and most nodes, that one command collects: it bounds the pause. The rest waits for the next command.
pub const COLLECTED_MAX: usize = 256;

/// Most allocations of purged jobs that one command collects.
const ALLOCS_MAX: usize = 4096;

/// Forgets what can be forgotten and has been over for long enough, at most [`COLLECTED_MAX`] jobs and as many nodes.
pub(crate) fn collect(
    state: &State,
    ctx: &mut Context,
    jobs_after: Duration,
    nodes_after: Duration,
) -> Result<Decision, Rejection> {
    let now = ctx.time;
    let is_old = |job: &&JobState| last_changed(state, job).plus(jobs_after) <= now;
    let jobs = state.jobs.iter().map(|(_, job)| job);
    let mut ended: Vec<&JobState> = jobs.filter(|job| is_over(state, job)).filter(is_old).collect();
    // Jobs are kept in no order that means anything.
    ended.sort_by(|a, b| a.key.cmp(&b.key));
    let purged = ended.into_iter().take(COLLECTED_MAX).map(|job| JobPurged { key: job.key.clone() }.into());
    let mut events: Vec<Event> = purged.collect();
    let of_purged = state.jobs.purged().flat_map(|job| job.allocs.iter().map(|row| state.allocs.get(*row)));
    let mut outlived: Vec<AllocId> =
        of_purged.filter(|alloc| has_ended(state, alloc)).map(|alloc| alloc.id).collect();
    outlived.sort_unstable();
    outlived.truncate(ALLOCS_MAX);
    if !outlived.is_empty() {
        events.push(AllocsCollected { allocs: outlived }.into());
    }
    let down_since = |row: &NodeRow| state.nodes.cold(*row).status_updated;
    let left = state.nodes.rows().filter(|row| has_left(state, *row));
    let left = left.filter(|row| down_since(row).plus(nodes_after) <= now).take(COLLECTED_MAX);
    for row in left {
        events.extend(node::decide::deregister(state, ctx, state.nodes.cold(row).id)?.events);
    }
    Ok(Decision::of(events))
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

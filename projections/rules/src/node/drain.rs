//! Draining nodes: what an operator orders, and what is due for it. The leader's drain controller only says when to
//! look.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use model::command::DrainWish;
use model::event::{
    AllocTransitionRequested, DrainOrder, Event, NewEval, NodeDrainEnded, NodeDrainStarted, NodeDrainUpdated,
    NodeMessage,
};
use model::{Actor, AllocId, DrainStatus, Eligibility, JobType, NodeId, Rejection, Trigger};
use state::State;
use state::alloc::Alloc;
use state::job::JobRow;
use state::node::Drain;

use super::decide::{known, node_evals, set_eligibility};
use crate::decision::{Context, Decision};
use crate::eval::{self, created};

/// The subsystem that the messages of a drain name in a node's event list.
const SUBSYSTEM: &str = "Drain";

/// `max_parallel` of a group without a `migrate` block.
const MAX_PARALLEL: i64 = 1;

/// Starts a drain, changes the one that is under way, or cancels it.
pub fn set(
    state: &State,
    ctx: &mut Context,
    actor: &Actor,
    node: NodeId,
    wish: Option<DrainWish>,
    mark_eligible: bool,
    meta: &BTreeMap<String, String>,
) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    let cold = state.nodes.cold(row);
    let accessor = actor.to_string();
    let meta: Vec<(String, String)> = meta.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let message = |text: &str| NodeMessage::new(SUBSYSTEM, text, ctx.time);
    let event: Event = match (cold.draining(), wish) {
        (None, None) if mark_eligible => return set_eligibility(state, ctx, node, Eligibility::Eligible),
        (None, None) => return Ok(Decision::nothing()),
        (None, Some(wish)) => {
            let (order, message) =
                (order(wish, ctx.time, meta, accessor), message("Node drain strategy set"));
            NodeDrainStarted { node, order, message }.into()
        }
        (Some(_), Some(wish)) => {
            let message = message("Node drain strategy updated");
            NodeDrainUpdated { node, order: order(wish, ctx.time, meta, accessor), message }.into()
        }
        (Some(_), None) => {
            let (status, message) = (DrainStatus::Canceled, message("Node drain disabled"));
            NodeDrainEnded { node, status, eligible: mark_eligible, meta, accessor, message }.into()
        }
    };
    let mut events = vec![event];
    if wish.is_none() && mark_eligible {
        events.extend(created(node_evals(state, ctx, row, &cold.document)));
    }
    Ok(Decision::of(events))
}

fn order(wish: DrainWish, now: Time, meta: Vec<(String, String)>, accessor: String) -> DrainOrder {
    let DrainWish { deadline, ignore_system_jobs } = wish;
    let force_at = if deadline.0 > 0 { now.plus(deadline) } else { Time::ZERO };
    DrainOrder { deadline, force_at, ignore_system_jobs, meta, accessor }
}

/// Does what is due: moves as many allocations as their groups can spare, or ends the drain.
pub fn advance(state: &State, ctx: &mut Context, node: NodeId) -> Result<Decision, Rejection> {
    let row = known(state, node)?;
    let Some(drain) = state.nodes.cold(row).draining() else { return Ok(Decision::nothing()) };
    let allocs = state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
    let here: Vec<&Alloc> = allocs.filter(|alloc| alloc.takes_room()).collect();
    let forced = drain.deadline().is_some_and(|deadline| deadline <= ctx.time);
    let emptied = here.iter().all(|alloc| alloc.version.kind == JobType::System);
    if !forced && !emptied {
        let spared = spared(state, &here);
        return Ok(Decision::of(moved(state, ctx, &spared, false)));
    }
    // System jobs go last, when nothing needs them any more.
    let stays = |alloc: &&Alloc| drain.order.ignore_system_jobs && alloc.version.kind == JobType::System;
    let rest: Vec<&Alloc> = here.into_iter().filter(|alloc| !stays(alloc)).collect();
    let mut events = moved(state, ctx, &rest, forced);
    events.push(ended(node, drain, forced && !emptied, ctx.time).into());
    Ok(Decision::of(events))
}

fn ended(node: NodeId, drain: &Drain, at_deadline: bool, now: Time) -> NodeDrainEnded {
    let mut message = NodeMessage::new(SUBSYSTEM, "Node drain complete", now);
    if at_deadline {
        message.details.push(("deadline_reached".to_string(), "true".to_string()));
    }
    let (status, accessor) = (DrainStatus::Complete, drain.order.accessor.clone());
    NodeDrainEnded { node, status, eligible: false, meta: Vec::new(), accessor, message }
}

/// The allocations that may be moved now: of each group as many as `migrate` allows. Batch jobs run to their end.
fn spared<'s>(state: &'s State, here: &[&'s Alloc]) -> Vec<&'s Alloc> {
    let services = here.iter().filter(|alloc| alloc.version.kind == JobType::Service);
    let mut of_groups: BTreeMap<(JobRow, &str), Vec<&Alloc>> = BTreeMap::new();
    for alloc in services.filter(|alloc| may_be_asked(alloc)) {
        of_groups.entry((alloc.job, &*alloc.group)).or_default().push(alloc);
    }
    let groups = of_groups.into_iter().flat_map(|((job, group), allocs)| {
        let spare = spare(state, job, group);
        allocs.into_iter().take(spare)
    });
    groups.collect()
}

/// How many of the group may be moved at once, less those that are on their way.
fn spare(state: &State, job: JobRow, name: &str) -> usize {
    let job = state.jobs.get(job);
    // Allocations of a stopped job or a removed group are stopped by the scheduler anyway.
    let Some(group) = job.current().group(name).filter(|_| !job.is_stopped()) else { return 0 };
    let max_parallel = group.migrate.as_ref().and_then(|migrate| migrate.max_parallel);
    let stay = group.count.unwrap_or(1) - max_parallel.unwrap_or(MAX_PARALLEL);
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row)).filter(|alloc| &*alloc.group == name);
    let judged =
        |alloc: &&Alloc| !alloc.is_terminal() && alloc.health.healthy.is_some() && !alloc.transition.migrate;
    usize::try_from(allocs.filter(judged).count() as i64 - stay).unwrap_or(0)
}

/// It was not asked yet to stop or to move.
fn may_be_asked(alloc: &Alloc) -> bool {
    !alloc.is_stopping() && !alloc.transition.migrate
}

/// Marks the allocations for migration, with one evaluation for each of their jobs. At the deadline allocations of batch
/// jobs are stopped without a replacement.
fn moved(state: &State, ctx: &mut Context, allocs: &[&Alloc], forced: bool) -> Vec<Event> {
    let asked = allocs.iter().filter(|alloc| may_be_asked(alloc));
    let (for_good, elsewhere): (Vec<&Alloc>, Vec<&Alloc>) =
        asked.partition(|alloc| forced && alloc.version.kind.is_batch());
    let request = |allocs: &[&Alloc], disable_placement| {
        let allocs: Vec<AllocId> = allocs.iter().map(|alloc| alloc.id).collect();
        (!allocs.is_empty()).then(|| {
            Event::AllocTransitionRequested(AllocTransitionRequested {
                allocs,
                migrate: true,
                reschedule: false,
                no_shutdown_delay: false,
                force_reschedule: false,
                disable_placement,
                cause: "drain".to_string(),
            })
        })
    };
    let requests = [request(&elsewhere, false), request(&for_good, true)];
    let jobs: BTreeSet<JobRow> = elsewhere.iter().chain(&for_good).map(|alloc| alloc.job).collect();
    let evals: Vec<NewEval> = jobs
        .into_iter()
        .filter_map(|job| eval::unless_pending(state, ctx, job, Trigger::NodeDrain))
        .collect();
    requests.into_iter().flatten().chain(created(evals)).collect()
}

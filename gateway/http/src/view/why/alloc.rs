//! Why an allocation is where it is, how its tasks are, and what follows when it fails.

use base::Index;
use history::Placement;

use api::{AllocWhy, Decision, DisconnectNow, Link, RescheduleNow, TaskNow};
use model::document::{AllocationMetric, List, Map, TaskState};
use model::event::PlanCommitted;
use model::{AllocId, ClientStatus, EvalId};
use state::State;
use state::alloc::Alloc;
use state::alloc::reschedule::{self, Policy};

use super::super::decisions::{Past, as_logged, plan_of};
use super::{again, waits};

/// Allocations of a chain that are shown, on each side.
const CHAIN_MAX: usize = 16;
/// Allocations that made room and are shown.
const PREEMPTED_MAX: usize = 16;
/// What a node calls events that say what went wrong. An exit code says it too.
const TROUBLES: [&str; 8] = [
    "Setup Failure",
    "Driver Failure",
    "Failed Validation",
    "Failed Artifact Download",
    "Task hook failed",
    "Not Restarting",
    "Sibling Task Failed",
    "Alloc Unhealthy",
];

pub(crate) fn allocation(past: Past<'_>, state: &State, alloc: &Alloc) -> AllocWhy {
    let stored = AllocationMetric::clone(&alloc.metrics);
    let which = Placed { id: alloc.id, eval: alloc.eval, group: &alloc.group, at: alloc.created };
    let (decision, placed) = decided(past, &which, stored);
    let find = |id: &AllocId| state.allocs.lookup(*id).map(|other| link(state, other));
    let tasks = alloc.report.task_states.iter();
    AllocWhy {
        approximate: String::new(),
        id: alloc.id.to_string(),
        name: alloc.name(),
        job_id: state.jobs.get(alloc.job).key.id.clone(),
        namespace: state.jobs.get(alloc.job).key.namespace.clone(),
        job_version: alloc.version.version,
        node_id: alloc.node_id.to_string(),
        node_name: state.nodes.cold(alloc.node).document.name.clone(),
        desired_status: alloc.desired.to_string(),
        desired_description: alloc.desired_description.to_string(),
        client_status: alloc.client.to_string(),
        client_description: alloc.client_description.to_string(),
        decision,
        node_names: placed.as_ref().map(|placed| node_names(state, placed)).unwrap_or_default(),
        placed,
        tasks: tasks.map(|(name, task)| (name.clone(), task_now(task))).collect(),
        reschedule: rescheduled(state, alloc),
        disconnect: disconnected(alloc),
        deployment_id: alloc.deployment.map(|id| id.to_string()).unwrap_or_default(),
        healthy: alloc.health.healthy,
        preempted: alloc.preempted.iter().take(PREEMPTED_MAX).filter_map(find).collect(),
        preempted_by: alloc.preempted_by.as_ref().and_then(find),
        collected: false,
        chain: chain(state, alloc).into(),
        transitions: List::default(),
        waits_for: waits::of_alloc(state, alloc).into(),
    }
}

/// An allocation that the state does not have any more, as far as the log says.
pub(crate) fn forgotten(past: Past<'_>, state: &State, id: AllocId, placement: &Placement) -> AllocWhy {
    let event = &placement.event;
    let stored = if event.metrics.is_empty() { AllocationMetric::default() } else { event.metrics.read() };
    let which = Placed { id, eval: event.eval, group: &event.group, at: placement.index };
    let (decision, placed) = decided(past, &which, stored);
    let node = state.nodes.find(placement.node).map(|row| state.nodes.cold(row).document.name.clone());
    AllocWhy {
        approximate: String::new(),
        id: id.to_string(),
        name: format!("{}.{}[{}]", event.key.id, event.group, placement.name_index),
        job_id: event.key.id.clone(),
        namespace: event.key.namespace.clone(),
        job_version: event.version,
        node_id: placement.node.to_string(),
        node_name: node.unwrap_or_default(),
        decision,
        node_names: placed.as_ref().map(|placed| node_names(state, placed)).unwrap_or_default(),
        placed,
        deployment_id: event.deployment.map(|id| id.to_string()).unwrap_or_default(),
        collected: true,
        ..AllocWhy::default()
    }
}

/// Which placement is asked about.
struct Placed<'a> {
    id: AllocId,
    eval: EvalId,
    group: &'a str,
    at: Index,
}

/// The decision that placed it, made again, with what it saw; `stored` is what the log says of that.
fn decided(past: Past<'_>, which: &Placed, stored: AllocationMetric) -> (Decision, Option<AllocationMetric>) {
    let mut decision = Decision { eval_id: which.eval.to_string(), ..Decision::default() };
    let mut placed = Some(stored);
    match placement_of(past, which) {
        Ok(plan) => {
            (decision.snapshot, decision.time) = (plan.snapshot.0, plan.now.into());
            decision.seed = plan.seed.to_string();
            match again(past, plan.eval, plan.snapshot, plan.seed, plan.now) {
                Ok(reasons) => {
                    decision.recomputed = true;
                    decision.as_logged = as_logged(past, which.at, plan.eval, plan.seed, &reasons.outcome);
                    let group = reasons.groups.get(which.group);
                    placed = group.and_then(|group| group.placed.clone()).or(placed);
                }
                Err(note) => decision.note = note,
            }
        }
        Err(note) => decision.note = note,
    }
    (decision, placed)
}

/// The names of the nodes that have scores.
fn node_names(state: &State, metric: &AllocationMetric) -> Map<String, String> {
    let known = metric.score_meta_data.iter().filter_map(|score| {
        let row = state.nodes.find(score.node_id.parse().ok()?)?;
        Some((score.node_id.clone(), state.nodes.cold(row).document.name.clone()))
    });
    known.collect()
}

/// The verdict on the plan that placed an allocation.
fn placement_of(past: Past<'_>, which: &Placed) -> Result<PlanCommitted, String> {
    let gone =
        || format!("the log no longer reaches back to index {}: only what was stored is shown", which.at);
    if past.fork_of.is_some_and(|base| which.at > base) {
        return Err("it was placed on a fork, which keeps no log: only what was stored is shown".to_string());
    }
    let batch = past.batch(which.at).ok().flatten().ok_or_else(gone)?;
    let batch = batch.decode().map_err(|error| error.to_string())?;
    plan_of(&batch, which.eval, which.id)
        .ok_or_else(|| "the log does not say which plan placed it".to_string())
}

fn chain(state: &State, alloc: &Alloc) -> Vec<Link> {
    let find = |id: Option<AllocId>| id.and_then(|id| state.allocs.find(id)).map(|row| state.allocs.get(row));
    let mut before: Vec<&Alloc> = Vec::new();
    let mut at = find(alloc.previous);
    while let Some(one) = at.filter(|_| before.len() < CHAIN_MAX) {
        before.push(one);
        at = find(one.previous);
    }
    let mut after: Vec<&Alloc> = Vec::new();
    let mut at = find(alloc.next);
    while let Some(one) = at.filter(|_| after.len() < CHAIN_MAX) {
        after.push(one);
        at = find(one.next);
    }
    before.into_iter().rev().chain([alloc]).chain(after).map(|one| link(state, one)).collect()
}

pub(super) fn link(state: &State, alloc: &Alloc) -> Link {
    let troubles = alloc.report.task_states.iter().filter_map(|(name, task)| {
        let trouble = trouble(task);
        (!trouble.is_empty()).then(|| format!("{name}: {trouble}"))
    });
    Link {
        id: alloc.id.to_string(),
        node_name: state.nodes.cold(alloc.node).document.name.clone(),
        desired_status: alloc.desired.to_string(),
        client_status: alloc.client.to_string(),
        desired_description: alloc.desired_description.to_string(),
        trouble: troubles.collect::<Vec<_>>().join("; "),
    }
}

fn task_now(task: &TaskState) -> TaskNow {
    let ended = task.events.iter().rfind(|event| event.kind == "Terminated");
    TaskNow {
        state: task.state.clone(),
        failed: task.failed,
        restarts: task.restarts,
        exit_code: ended.map(|event| event.exit_code),
        trouble: trouble(task),
    }
}

/// The newest event that says what went wrong. Empty for a task that ended well, or that runs.
fn trouble(task: &TaskState) -> String {
    if !task.failed && task.state == "running" {
        return String::new();
    }
    let failed = |event: &&model::document::TaskEvent| {
        TROUBLES.contains(&event.kind.as_str())
            || event.fails_task
            || (event.kind == "Terminated" && (event.exit_code != 0 || event.signal != 0))
    };
    // That it is not restarted follows from what came before, which says more.
    let says_more = |event: &&model::document::TaskEvent| failed(event) && event.kind != "Not Restarting";
    let found = task.events.iter().rfind(says_more).or_else(|| task.events.iter().rfind(failed));
    found.map_or_else(String::new, |event| {
        let text = if event.display_message.is_empty() { &event.message } else { &event.display_message };
        format!("{}: {text}", event.kind).trim_end_matches(": ").to_string()
    })
}

/// `None` for what is never rescheduled: jobs that run on every node, groups without a policy.
fn rescheduled(state: &State, alloc: &Alloc) -> Option<RescheduleNow> {
    let policy = Policy::of(alloc).filter(|_| !alloc.version.kind.is_per_node())?;
    let past = reschedule::past(state, alloc);
    let ended = matches!(alloc.client, ClientStatus::Failed | ClientStatus::Lost) && alloc.next.is_none();
    let wanted = ended && !alloc.is_stopping();
    let next = reschedule::due_after_failure(state, alloc).filter(|_| wanted);
    let why_not = match next {
        None if wanted => why_not(state, alloc, &policy),
        _ => String::new(),
    };
    Some(RescheduleNow {
        policy: policy.to_string(),
        attempts: policy.attempts_used(&past, alloc.last_event_time()),
        attempts_max: policy.attempts_max(),
        next: next.map(Into::into),
        why_not,
    })
}

/// Why an allocation that ended is not replaced by its policy.
pub(super) fn why_not(state: &State, alloc: &Alloc, policy: &Policy) -> String {
    if !policy.is_enabled() {
        "its reschedule policy allows no attempt".to_string()
    } else if !reschedule::may_be_rescheduled(state, alloc) {
        "the attempts of its reschedule policy are used up".to_string()
    } else {
        "its reschedule policy does not allow another attempt in this interval".to_string()
    }
}

fn disconnected(alloc: &Alloc) -> Option<DisconnectNow> {
    let block = alloc.version.group(&alloc.group)?.disconnect.as_ref()?;
    let cut_off = alloc.client == ClientStatus::Unknown;
    Some(DisconnectNow {
        lost_after: alloc.lost_after().into(),
        replace: block.replace.unwrap_or(true),
        reconcile: block
            .reconcile
            .clone()
            .filter(|text| !text.is_empty())
            .unwrap_or("best_score".to_string()),
        lost_at: cut_off.then(|| alloc.last_unknown().plus(alloc.lost_after()).into()),
    })
}

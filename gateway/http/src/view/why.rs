//! Why a job, an evaluation or an allocation is as it is.

use std::collections::BTreeSet;

use base::Index;
use journal::EncodedBatch;
use model::document::{AllocationMetric, List};
use model::event::EvalOutcome;
use model::{AllocId, ClientStatus, Desired, EvalId, EvalStatus, Event, Trigger};
use placement::{Outcome, Reasons, explain};
use state::State;
use state::alloc::Alloc;
use state::eval::Eval;
use state::job::JobRow;

use api::{AllocWhy, Decision, EvalWhy, GroupNow, JobWhy, Link, Wait};

use feed::{Feed, FeedError};

/// Batches that are folded at most to come to the state of a decision: about a second of folding.
pub(crate) const RECOMPUTED_BATCHES_MAX: u64 = 1_000_000;
/// Allocations of a chain that are shown, on each side.
const CHAIN_MAX: usize = 16;
/// Things waited for that are shown.
const WAITS_MAX: usize = 16;

pub(crate) fn job(feed: &Feed, state: &State, row: JobRow) -> JobWhy {
    let job = state.jobs.get(row);
    let wanted = |name: &str| job.current().group(name).and_then(|group| group.count).unwrap_or(0);
    let groups = job.groups.iter().map(|(name, counts)| {
        let per_node = job.current().kind.is_per_node();
        let now = GroupNow {
            wanted: if per_node || job.is_stopped() { 0 } else { wanted(name).max(0) as u64 },
            running: counts.running.into(),
            starting: counts.starting.into(),
            queued: counts.queued.into(),
            unknown: counts.unknown.into(),
            failed: counts.failed.into(),
            lost: counts.lost.into(),
            complete: counts.complete.into(),
        };
        (name.clone(), now)
    });
    JobWhy {
        id: job.key.id.clone(),
        namespace: job.key.namespace.clone(),
        kind: job.current().kind.to_string(),
        status: job.status.to_string(),
        stopped: job.is_stopped(),
        groups: groups.collect(),
        waits_for: waits(state, row),
        evaluation: newest_decision(state, row).map(|eval| evaluation(feed, state, eval)),
    }
}

/// An evaluation that waits for room explains most; else the last one that was processed.
fn newest_decision(state: &State, row: JobRow) -> Option<&Eval> {
    if let Some(blocked) = state.evals.blocked_of(row) {
        return Some(state.evals.get(blocked));
    }
    let evals = state.jobs.get(row).evals.iter().rev().map(|eval| state.evals.get(*eval));
    evals.filter(|eval| !eval.gone).find(|eval| eval.outcome.snapshot > Index::ZERO)
}

pub(crate) fn evaluation(feed: &Feed, state: &State, eval: &Eval) -> EvalWhy {
    let mut why = EvalWhy {
        id: eval.id().to_string(),
        job_id: eval.facts.key.id.clone(),
        namespace: eval.facts.key.namespace.clone(),
        triggered_by: eval.facts.trigger.to_string(),
        status: eval.status.to_string(),
        status_description: eval.description.clone(),
        waits_for: waits(state, eval.job),
        ..EvalWhy::default()
    };
    let made_for = decided(state, eval);
    let EvalOutcome { snapshot, seed, now, .. } = eval.outcome;
    why.decision = Decision {
        eval_id: made_for.id().to_string(),
        snapshot: snapshot.0,
        time: now.into(),
        seed: seed.to_string(),
        ..Decision::default()
    };
    if snapshot == Index::ZERO {
        why.decision.note = "no scheduler has looked at it yet".to_string();
        return why;
    }
    match again(feed, made_for.id(), snapshot, seed, now) {
        Ok(reasons) => {
            why.decision.recomputed = true;
            why.decision.as_logged =
                as_logged(feed, made_for.modified, made_for.id(), seed, &reasons.outcome);
            why.groups = reasons.groups.into();
        }
        Err(note) => why.decision.note = note,
    }
    why
}

/// The evaluation whose decision this one's outcome is: an evaluation that waits for room begins with what the one
/// before it found out.
fn decided<'s>(state: &'s State, eval: &'s Eval) -> &'s Eval {
    let own = eval.outcome != eval.facts.outcome || eval.facts.status != EvalStatus::Blocked;
    let before = eval.facts.previous.and_then(|id| state.evals.lookup(id));
    before.filter(|_| !own).unwrap_or(eval)
}

pub(crate) fn allocation(feed: &Feed, state: &State, alloc: &Alloc) -> AllocWhy {
    let mut decision = Decision { eval_id: alloc.eval.to_string(), ..Decision::default() };
    let mut placed = Some(AllocationMetric::clone(&alloc.metrics));
    match placement_of(feed, alloc) {
        Ok(plan) => {
            (decision.snapshot, decision.time) = (plan.snapshot.0, plan.now.into());
            decision.seed = plan.seed.to_string();
            match again(feed, plan.eval, plan.snapshot, plan.seed, plan.now) {
                Ok(reasons) => {
                    decision.recomputed = true;
                    decision.as_logged =
                        as_logged(feed, alloc.created, plan.eval, plan.seed, &reasons.outcome);
                    let group = reasons.groups.get(&*alloc.group);
                    placed = group.and_then(|group| group.placed.clone()).or(placed);
                }
                Err(note) => decision.note = note,
            }
        }
        Err(note) => decision.note = note,
    }
    let node = state.nodes.cold(alloc.node);
    AllocWhy {
        id: alloc.id.to_string(),
        name: alloc.name(),
        job_id: state.jobs.get(alloc.job).key.id.clone(),
        namespace: state.jobs.get(alloc.job).key.namespace.clone(),
        job_version: alloc.version.version,
        node_id: alloc.node_id.to_string(),
        node_name: node.document.name.clone(),
        desired_status: alloc.desired.to_string(),
        desired_description: alloc.desired_description.to_string(),
        client_status: alloc.client.to_string(),
        client_description: alloc.client_description.to_string(),
        decision,
        placed,
        chain: chain(state, alloc).into(),
        transitions: List::default(),
        waits_for: alloc_waits(state, alloc).into(),
    }
}

/// Makes a decision again on its own state.
///
/// # Errors
/// Why that cannot be done, in words.
fn again(feed: &Feed, eval: EvalId, snapshot: Index, seed: u64, now: base::Time) -> Result<Reasons, String> {
    let state = feed.state_at(snapshot, RECOMPUTED_BATCHES_MAX).map_err(|error| match error {
        FeedError::Gone => {
            format!("the log no longer reaches back to index {snapshot}: only what was stored is shown")
        }
        other => format!("the state at index {snapshot} cannot be made again: {other}"),
    })?;
    let eval = state.evals.lookup(eval);
    let eval = eval.ok_or_else(|| format!("the state at index {snapshot} does not know the evaluation"))?;
    Ok(explain(&state, eval, seed, now, &jobspec::imply_constraints))
}

/// The verdict on the plan that placed an allocation.
fn placement_of(feed: &Feed, alloc: &Alloc) -> Result<model::event::PlanCommitted, String> {
    let gone = |_| {
        format!("the log no longer reaches back to index {}: only what was stored is shown", alloc.created)
    };
    let batch = feed.batch(alloc.created).map_err(gone)?;
    let plans = plans(&batch)?;
    let plan = plans.into_iter().find(|(plan, placed)| plan.eval == alloc.eval && placed.contains(&alloc.id));
    plan.map(|(plan, _)| plan).ok_or_else(|| "the log does not say which plan placed it".to_string())
}

/// The plans of a batch, each with the allocations it placed.
fn plans(batch: &EncodedBatch) -> Result<Vec<(model::event::PlanCommitted, BTreeSet<AllocId>)>, String> {
    let batch = batch.decode().map_err(|error| error.to_string())?;
    let mut plans: Vec<(model::event::PlanCommitted, BTreeSet<AllocId>)> = Vec::new();
    for logged in batch.events {
        match logged.event {
            Event::PlanCommitted(plan) => plans.push((plan, BTreeSet::new())),
            Event::AllocsPlaced(placed) => {
                if let Some((_, ids)) = plans.last_mut() {
                    ids.extend(placed.ids);
                }
            }
            _ => {}
        }
    }
    Ok(plans)
}

/// Whether the plan came out as the log has it; `None` when the log does not say.
fn as_logged(feed: &Feed, at: Index, eval: EvalId, seed: u64, outcome: &Outcome) -> Option<bool> {
    let plan = &outcome.settlement.plan;
    let plans = plans(&feed.batch(at).ok()?).ok()?;
    let logged = plans.into_iter().find(|(plan, _)| plan.eval == eval && plan.seed == seed);
    let Some((verdict, ids)) = logged else {
        return plan.is_empty().then_some(true);
    };
    let refused: BTreeSet<_> = verdict.rejected.iter().map(|refused| refused.node).collect();
    let kept = plan.placed.iter().flat_map(|placed| placed.ids.iter().zip(&placed.nodes));
    let kept: BTreeSet<AllocId> =
        kept.filter(|(_, node)| !refused.contains(node)).map(|(id, _)| *id).collect();
    Some(kept == ids)
}

/// What has to happen before the job goes on.
fn waits(state: &State, row: JobRow) -> List<Wait> {
    let job = state.jobs.get(row);
    let mut waits: Vec<Wait> =
        job.live_evals.iter().map(|eval| eval_wait(state, state.evals.get(*eval))).collect();
    let allocs = job.allocs.iter().map(|alloc| state.allocs.get(*alloc)).filter(|alloc| !alloc.is_terminal());
    waits.extend(allocs.flat_map(|alloc| alloc_waits(state, alloc)));
    waits.truncate(WAITS_MAX);
    waits.into()
}

fn eval_wait(state: &State, eval: &Eval) -> Wait {
    let (facts, now) = (&eval.facts, state.time);
    let later = facts.wait_until > now;
    let paused = state.scheduler().is_some_and(|rules| rules.pause_eval_broker);
    let what = match eval.status {
        EvalStatus::Blocked if facts.trigger == Trigger::MaxPlanAttempts => {
            "to be tried again: other plans were in the way".to_string()
        }
        EvalStatus::Blocked => format!("room on {}", room(eval)),
        _ if later => format!("its time, to be looked at again ({})", facts.trigger),
        _ if paused => "the eval broker, which the scheduler configuration pauses".to_string(),
        _ => format!("a scheduler to look at it ({})", facts.trigger),
    };
    Wait { what, eval_id: eval.id().to_string(), until: later.then(|| facts.wait_until.into()) }
}

fn room(eval: &Eval) -> String {
    let fit = eval.outcome.classes.iter().filter(|(_, eligible)| *eligible).count();
    match fit {
        _ if eval.outcome.escaped => "any node".to_string(),
        0 => "nodes of a kind that is not there yet".to_string(),
        1 => "nodes of 1 kind that would do, or of a new kind".to_string(),
        many => format!("nodes of {many} kinds that would do, or of a new kind"),
    }
}

fn alloc_waits(state: &State, alloc: &Alloc) -> Vec<Wait> {
    let node = state.nodes.cold(alloc.node);
    let (hot, name) = (state.nodes.hot(alloc.node), &node.document.name);
    let mut waits = Vec::new();
    let mut wait = |what: String, until| {
        waits.push(Wait { what: format!("{}: {what}", alloc.name()), eval_id: String::new(), until });
    };
    if alloc.client == ClientStatus::Unknown && !alloc.is_stopping() {
        let until = alloc.last_unknown().plus(alloc.lost_after());
        wait(format!("node {name:?} to connect again; given up then"), Some(until.into()));
    } else if hot.status.is_silent() && !alloc.client.is_terminal() {
        wait(format!("node {name:?}, which is {}", hot.status), None);
    } else if alloc.client == ClientStatus::Pending && alloc.desired == Desired::Run {
        wait(format!("node {name:?} to start it"), None);
    } else if alloc.is_stopping() && !alloc.client.is_terminal() {
        wait(format!("node {name:?} to stop it"), None);
    }
    if let Some(eval) = alloc.follow_up.and_then(|id| state.evals.lookup(id))
        && !eval.status.is_terminal()
        && eval.facts.wait_until > state.time
    {
        wait(format!("its follow-up ({})", eval.facts.trigger), Some(eval.facts.wait_until.into()));
    }
    waits
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
    let link = |one: &Alloc| Link {
        id: one.id.to_string(),
        node_name: state.nodes.cold(one.node).document.name.clone(),
        desired_status: one.desired.to_string(),
        client_status: one.client.to_string(),
        desired_description: one.desired_description.to_string(),
    };
    before.into_iter().rev().chain([alloc]).chain(after).map(link).collect()
}

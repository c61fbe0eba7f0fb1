//! Why a job, an evaluation, an allocation, a deployment or a node is as it is.

mod against;
mod alloc;
mod choices;
mod deployment;
mod node;
mod slots;
mod waits;

use base::Index;
use model::event::EvalOutcome;
use model::{EvalId, EvalStatus};
use placement::{Reasons, explain};
use state::State;
use state::eval::Eval;
use state::job::JobRow;

use api::{Decision, DispatchNow, EvalWhy, GroupNow, JobWhy};

use super::decisions::{Past, as_logged, plan_ahead};

pub(crate) use against::why_not;
pub(crate) use alloc::{allocation, forgotten};
pub(crate) use choices::reconnects;
pub(crate) use deployment::deployment;
pub(crate) use node::node;

pub(crate) fn job(past: Past<'_>, state: &State, row: JobRow) -> JobWhy {
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
            missing: slots::missing(state, job, name).into(),
        };
        (name.clone(), now)
    });
    JobWhy {
        approximate: String::new(),
        id: job.key.id.clone(),
        namespace: job.key.namespace.clone(),
        kind: job.current().kind.to_string(),
        status: job.status.to_string(),
        stopped: job.is_stopped(),
        groups: groups.collect(),
        waits_for: waits::of_job(state, row),
        deployment: deployment::newest(state, row).map(|newest| deployment(state, newest)),
        next_launch: waits::next_launch(state, row).map(Into::into),
        dispatch: dispatch(state, row),
        evaluation: newest_decision(state, row).map(|eval| evaluation(past, state, eval)),
    }
}

/// What a dispatch takes; none for a job that is not parameterized, and for a child of one.
fn dispatch(state: &State, row: JobRow) -> Option<DispatchNow> {
    let current = state.jobs.get(row).current();
    let config = current.job.parameterized_job.as_ref().filter(|_| !current.job.dispatched)?;
    Some(DispatchNow {
        payload: if config.payload.is_empty() { "optional".to_string() } else { config.payload.clone() },
        meta_required: config.meta_required.clone(),
        meta_optional: config.meta_optional.clone(),
    })
}

/// An evaluation that waits for room explains most; else the last one that was processed.
fn newest_decision(state: &State, row: JobRow) -> Option<&Eval> {
    if let Some(blocked) = state.evals.blocked_of(row) {
        return Some(state.evals.get(blocked));
    }
    let evals = state.jobs.get(row).evals.iter().rev().map(|eval| state.evals.get(*eval));
    evals.filter(|eval| !eval.gone).find(|eval| eval.outcome.snapshot > Index::ZERO)
}

pub(crate) fn evaluation(past: Past<'_>, state: &State, eval: &Eval) -> EvalWhy {
    let mut why = EvalWhy {
        id: eval.id().to_string(),
        job_id: eval.facts.key.id.clone(),
        namespace: eval.facts.key.namespace.clone(),
        triggered_by: eval.facts.trigger.to_string(),
        status: eval.status.to_string(),
        status_description: eval.description.clone(),
        waits_for: waits::of_job(state, eval.job),
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
    if placement::is_quarantined(made_for) {
        why.decision.note = "it is not decided again: it ended a scheduler".to_string();
        return why;
    }
    match again(past, made_for.id(), snapshot, seed, now) {
        Ok(reasons) => {
            why.decision.recomputed = true;
            why.decision.as_logged =
                as_logged(past, made_for.modified, made_for.id(), seed, &reasons.outcome);
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

/// Makes a decision again on the state that it was made on.
///
/// # Errors
/// Why that cannot be done, in words.
fn again(
    past: Past<'_>,
    eval: EvalId,
    snapshot: Index,
    seed: u64,
    now: base::Time,
) -> Result<Reasons, String> {
    let state = past.state_at(snapshot)?;
    let state = plan_ahead(past, &state, seed, now)?;
    let eval = state.evals.lookup(eval);
    let eval = eval.ok_or_else(|| format!("the state at index {snapshot} does not know the evaluation"))?;
    Ok(explain(&state, eval, seed, now, &jobspec::imply_constraints))
}

use std::collections::BTreeSet;

use base::{Index, Time};
use model::event::{EvalAcked, EvalCreated, EvalUpdated, EvalsDeleted, Event, NewEval};
use model::{EvalId, EvalStatus, JobKey, JobType, Rejection, Trigger};
use state::State;
use state::job::{JobRow, JobState};

use crate::decision::{Context, Decision};

/// The broker delivered it as often as it may. It fails, and the job gets another chance later.
pub fn fail(
    state: &State,
    ctx: &mut Context,
    id: EvalId,
    deliveries: u32,
    follow_up_at: Time,
) -> Result<Decision, Rejection> {
    let eval = state.evals.lookup(id).ok_or(Rejection::EvalUnknown(id))?;
    if eval.status.is_terminal() {
        return Err(Rejection::EvalNotOutstanding(id));
    }
    let job = state.jobs.get(eval.job);
    let follow_up = (!job.purged).then(|| NewEval {
        previous: Some(id),
        wait_until: follow_up_at,
        ..for_job(ctx, job, Trigger::FailedFollowUp)
    });
    let mut outcome = eval.outcome.clone();
    outcome.next = follow_up.as_ref().map(|next| next.id);
    let description = format!("evaluation reached delivery limit ({deliveries})");
    let (status, desired) = (EvalStatus::Failed, eval.desired.clone());
    let mut events: Vec<Event> = vec![EvalUpdated { eval: id, status, description, outcome, desired }.into()];
    events.push(EvalAcked { eval: id }.into());
    events.extend(created(follow_up));
    Ok(Decision::of(events))
}

/// Forgets evaluations whose work is over. Workers must not be at work meanwhile: the broker is paused.
///
/// # Errors
/// [`Rejection::EvalUnknown`], [`Rejection::EvalRefused`]: then none is forgotten.
pub(crate) fn delete(state: &State, evals: &[EvalId]) -> Result<Decision, Rejection> {
    if !state.scheduler().is_some_and(|rules| rules.pause_eval_broker) {
        let why = "eval broker is enabled; eval broker must be paused to delete evals";
        return Err(Rejection::EvalRefused(why.to_string()));
    }
    let mut wanted = BTreeSet::new();
    for id in evals.iter().filter(|id| wanted.insert(**id)) {
        let eval = state.evals.lookup(*id).ok_or(Rejection::EvalUnknown(*id))?;
        if let Some(why) = state::eval::why_kept(state, eval) {
            return Err(Rejection::EvalRefused(format!("eval {id} is not safe to delete: {why}")));
        }
    }
    if wanted.is_empty() {
        return Ok(Decision::nothing());
    }
    Ok(EvalsDeleted { evals: wanted.into_iter().collect() }.into())
}

/// [`for_job`], unless an evaluation of the job was created in this very batch: nobody can have taken that one yet, and
/// whoever does will see everything in the batch.
pub(crate) fn unless_pending(
    state: &State,
    ctx: &mut Context,
    row: JobRow,
    trigger: Trigger,
) -> Option<NewEval> {
    let job = state.jobs.get(row);
    let mut live = job.live_evals.iter().map(|eval| state.evals.get(*eval));
    let pending = live.any(|eval| {
        eval.created == ctx.index && eval.status == EvalStatus::Pending && eval.facts.wait_until == Time::ZERO
    });
    (!pending && !job.purged).then(|| for_job(ctx, job, trigger))
}

/// A pending evaluation of a job as it is wanted now.
pub(crate) fn for_job(ctx: &mut Context, job: &JobState, trigger: Trigger) -> NewEval {
    let current = job.current();
    NewEval { job_modify: job.job_modified, ..new(ctx, &job.key, current.kind, current.priority(), trigger) }
}

pub(crate) fn new(
    ctx: &mut Context,
    key: &JobKey,
    kind: JobType,
    priority: u32,
    trigger: Trigger,
) -> NewEval {
    NewEval {
        id: ctx.mint_eval(),
        key: key.clone(),
        kind,
        priority,
        trigger,
        status: EvalStatus::Pending,
        description: String::new(),
        node: None,
        job_modify: Index::ZERO,
        node_modify: Index::ZERO,
        previous: None,
        wait_until: Time::ZERO,
        outcome: Default::default(),
    }
}

pub(crate) fn created(evals: impl IntoIterator<Item = NewEval>) -> impl Iterator<Item = Event> {
    evals.into_iter().map(|eval| EvalCreated { eval }.into())
}

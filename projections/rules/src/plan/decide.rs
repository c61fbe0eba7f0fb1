use std::collections::BTreeSet;

use base::Time;
use model::command::{EvalEnd, Plan, Settlement, Verdict};
use model::event::{
    DeploymentStatusChanged, EvalAcked, EvalCreated, EvalUpdated, EvalsCanceled, Event, JobStabilityChanged,
    NewEval, PlanCommitted,
};
use model::{ClientStatus, DeploymentStatus, EvalId, EvalStatus, Rejection, Trigger};
use state::State;
use state::alloc::Alloc;
use state::eval::{Eval, EvalRow};
use state::job::JobRow;

use super::check::{Accepted, check};
use crate::decision::{Context, Decision};
use crate::eval;

/// A worker's result. Accepted in full, it ends the evaluation in the same batch: plan, status,
/// acknowledgement and the cancellations of what it made superfluous stand or fall together.
pub fn settle(state: &State, ctx: &mut Context, settlement: &Settlement) -> Result<Decision, Rejection> {
    let row = state.evals.find(settlement.eval).ok_or(Rejection::EvalUnknown(settlement.eval))?;
    let eval = state.evals.get(row);
    // By a worker who had it at the same time, or after this one lost it.
    let was_settled = eval.status == EvalStatus::Blocked && settlement.plan.snapshot < eval.modified;
    if eval.status.is_terminal() || was_settled {
        return Err(Rejection::EvalNotOutstanding(settlement.eval));
    }
    if settlement.plan.snapshot.max(eval.created) < eval.modified {
        // A worker that had lost it came first: what its plan did, this one would do again. The answer names an index to plan on.
        return Ok(Decision { verdict: Some(Verdict::default()), ..Decision::default() });
    }
    let accepted = check(state, eval, &settlement.plan)?;
    let verdict = Verdict {
        full: accepted.is_full(),
        progress: accepted.is_progress(),
        placed: accepted.placements(),
        rejected: accepted.rejected.clone(),
    };
    let victims = victims(state, ctx, &accepted);
    let aimless = aimless(state, row, eval, &accepted);
    let mut events = plan_events(state, eval, &settlement.plan, accepted);
    events.extend(victims.into_iter().map(|eval| EvalCreated { eval }.into()));
    if let Some(end) = settlement.end.as_ref().filter(|_| verdict.full) {
        events.extend(end_events(state, row, eval, end, aimless));
    }
    Ok(Decision { events, verdict: Some(verdict), ..Decision::default() })
}

fn plan_events(state: &State, eval: &Eval, plan: &Plan, accepted: Accepted) -> Vec<Event> {
    if plan.is_empty() {
        return Vec::new();
    }
    let refresh = if accepted.rejected.is_empty() { base::Index::ZERO } else { state.index };
    // Follow-ups come first: what names them must find them. One that nothing accepted names is not stored; the
    // next attempt makes its own.
    let stopped = accepted.stopped.iter().filter_map(|stopped| stopped.follow_up);
    let unknown = accepted.unknown.iter().filter_map(|unknown| unknown.follow_up);
    let named: BTreeSet<EvalId> = stopped.chain(unknown).collect();
    let stored = plan.follow_ups.iter().filter(|eval| accepted.is_full() || named.contains(&eval.id));
    let mut events: Vec<Event> = stored.map(|eval| EvalCreated { eval: eval.clone() }.into()).collect();
    let rejected = accepted.rejected;
    let Plan { snapshot, seed, now, .. } = *plan;
    events.push(PlanCommitted { eval: eval.id(), snapshot, seed, now, refresh, rejected }.into());
    for changed in accepted.deployment_statuses {
        events.extend(stability(state, eval, &changed));
        events.push(changed.into());
    }
    events.extend(accepted.deployment.map(Event::from));
    events.extend(accepted.goals.map(Event::from));
    events.extend(accepted.stopped.into_iter().map(Event::from));
    events.extend(accepted.unknown.into_iter().map(Event::from));
    events.extend(accepted.reconnected.into_iter().map(Event::from));
    events.extend(accepted.updated.into_iter().map(Event::from));
    events.extend(accepted.placed.into_iter().map(Event::from));
    // After the placements: who others make room for has to be there.
    events.extend(accepted.preempted.into_iter().map(Event::from));
    events
}

/// One evaluation for each job that has to make room.
fn victims(state: &State, ctx: &mut Context, accepted: &Accepted) -> Vec<NewEval> {
    let allocs = accepted.preempted.iter().flat_map(|preempted| &preempted.allocs);
    let jobs: BTreeSet<JobRow> = allocs.filter_map(|id| state.allocs.lookup(*id)).map(|a| a.job).collect();
    jobs.into_iter().filter_map(|job| eval::unless_pending(state, ctx, job, Trigger::Preemption)).collect()
}

/// What was deployed successfully is worth going back to.
fn stability(state: &State, eval: &Eval, changed: &DeploymentStatusChanged) -> Option<Event> {
    let deployment = state.deployments.lookup(changed.deployment)?;
    let job = state.jobs.get(eval.job);
    let version = job.version(deployment.version).filter(|version| deployment.is_of(version))?.version;
    let succeeded = changed.status == DeploymentStatus::Successful && !job.is_stable(version);
    succeeded.then(|| JobStabilityChanged { key: job.key.clone(), version, stable: true }.into())
}

fn end_events(state: &State, row: EvalRow, eval: &Eval, end: &EvalEnd, aimless: Vec<EvalId>) -> Vec<Event> {
    let mut events = Vec::new();
    let blocked = state.evals.blocked_of(eval.job).filter(|blocked| *blocked != row);
    if let Some(new) = &end.blocked {
        if let Some(old) = blocked {
            let cause = format!("existing blocked evaluation exists for job {:?}", new.key.id);
            events.push(canceled(vec![state.evals.get(old).id()], cause));
        }
        events.push(EvalCreated { eval: new.clone() }.into());
    }
    let (status, description) = (end.status, end.description.clone());
    let (outcome, desired) = (end.outcome.clone(), end.desired.clone());
    events.push(EvalUpdated { eval: eval.id(), status, description, outcome, desired }.into());
    let satisfied =
        status == EvalStatus::Complete && end.outcome.failed_groups.is_empty() && end.blocked.is_none();
    if let Some(old) = blocked.filter(|_| satisfied) {
        let cause = format!("evaluation {:?} successful", eval.id().to_string());
        events.push(canceled(vec![state.evals.get(old).id()], cause));
    }
    events.push(EvalAcked { eval: eval.id() }.into());
    let superseded = superseded(state, row, eval);
    if !superseded.is_empty() {
        events.push(canceled(superseded, "canceled after more recent eval was processed".to_string()));
    }
    if !aimless.is_empty() {
        events.push(canceled(aimless, "nothing is left to wait for".to_string()));
    }
    events
}

/// Evaluations that wait for a time at which there will be nothing to do: all of a job that is stopped, and those that
/// would give up unknown allocations, once none is unknown. They would keep the job from being dead.
fn aimless(state: &State, row: EvalRow, eval: &Eval, accepted: &Accepted) -> Vec<EvalId> {
    let job = state.jobs.get(eval.job);
    let waits = |other: &&Eval| other.status == EvalStatus::Pending && other.facts.wait_until > state.time;
    let others = job.live_evals.iter().filter(|other| **other != row).map(|other| state.evals.get(*other));
    let mut waiting = others.filter(waits).peekable();
    if waiting.peek().is_none() {
        return Vec::new();
    }
    let stopped: BTreeSet<_> = accepted.stopped.iter().flat_map(|stopped| &stopped.allocs).collect();
    let is_unknown = |alloc: &Alloc| alloc.client == ClientStatus::Unknown && !alloc.is_stopping();
    let mut allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    let unknown =
        !accepted.unknown.is_empty() || allocs.any(|alloc| is_unknown(alloc) && !stopped.contains(&alloc.id));
    // A job that runs on every node has them under the trigger of its nodes.
    let gives_up =
        |other: &Eval| matches!(other.facts.trigger, Trigger::MaxDisconnectTimeout | Trigger::NodeUpdate);
    let idle = |other: &&Eval| !job.is_wanted() || !unknown && gives_up(other);
    waiting.filter(idle).map(Eval::id).collect()
}

/// Of the job's evaluations that wait their turn only the best is still worth running.
fn superseded(state: &State, row: EvalRow, eval: &Eval) -> Vec<EvalId> {
    let waits = |other: &&Eval| {
        other.status == EvalStatus::Pending
            && (other.facts.wait_until == Time::ZERO || other.facts.wait_until <= state.time)
    };
    let live = &state.jobs.get(eval.job).live_evals;
    let mut waiting: Vec<&Eval> =
        live.iter().filter(|live| **live != row).map(|live| state.evals.get(*live)).filter(waits).collect();
    waiting.sort_by_key(|eval| std::cmp::Reverse((eval.facts.priority, eval.modified, eval.id())));
    waiting.iter().skip(1).map(|eval| eval.id()).collect()
}

fn canceled(evals: Vec<EvalId>, cause: String) -> Event {
    EvalsCanceled { evals, cause }.into()
}

use std::collections::BTreeSet;

use base::Time;
use model::command::{EvalEnd, Plan, Settlement, Verdict};
use model::event::{EvalAcked, EvalCreated, EvalUpdated, EvalsCanceled, Event, PlanCommitted};
use model::{EvalId, EvalStatus, Rejection};

use super::check::{Accepted, check};
use crate::State;
use crate::decide::Decision;
use crate::eval::{Eval, EvalRow};

/// A worker's result. Accepted in full, it ends the evaluation in the same batch: plan, status,
/// acknowledgement and the cancellations of what it made superfluous stand or fall together.
pub fn settle(state: &State, settlement: &Settlement) -> Result<Decision, Rejection> {
    let row = state.evals.find(settlement.eval).ok_or(Rejection::EvalUnknown(settlement.eval))?;
    let eval = state.evals.get(row);
    if eval.status.is_terminal() {
        return Err(Rejection::EvalNotOutstanding(settlement.eval));
    }
    let accepted = check(state, eval, &settlement.plan)?;
    let verdict = Verdict {
        full: accepted.is_full(),
        placed: accepted.placements(),
        rejected: accepted.rejected.clone(),
    };
    let mut events = plan_events(state, eval, &settlement.plan, accepted);
    if let Some(end) = settlement.end.as_ref().filter(|_| verdict.full) {
        events.extend(end_events(state, row, eval, end));
    }
    Ok(Decision { events, verdict: Some(verdict) })
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
    events.extend(accepted.stopped.into_iter().map(Event::from));
    events.extend(accepted.unknown.into_iter().map(Event::from));
    events.extend(accepted.reconnected.into_iter().map(Event::from));
    events.extend(accepted.updated.into_iter().map(Event::from));
    events.extend(accepted.placed.into_iter().map(Event::from));
    events
}

fn end_events(state: &State, row: EvalRow, eval: &Eval, end: &EvalEnd) -> Vec<Event> {
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
    events.push(EvalUpdated { eval: eval.id(), status, description, outcome: end.outcome.clone() }.into());
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
    events
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

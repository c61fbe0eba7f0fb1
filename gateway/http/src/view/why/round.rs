//! The state that a decision was made on: a snapshot, and the plans of the same round that came before.

use std::collections::BTreeMap;

use base::{Index, Time};
use control::worker::GROUP_MAX;
use history::History;
use model::{EvalId, Event};
use placement::schedule;
use rules::fork::put_ahead;
use state::State;

/// Batches after a snapshot in which the plans are looked for that were made on it. A plan that came later than that
/// was one of its own, or is shown as one that comes out differently.
const PLANNED_WITHIN: u64 = 256;

/// Makes the plans again that a worker made on `snapshot` before the one of this seed, and puts them into it.
///
/// # Errors
/// Why the log cannot be read.
pub(super) fn plan_ahead(history: &History, snapshot: &State, seed: u64, now: Time) -> Result<State, String> {
    let mut state = snapshot.clone();
    for (eval, seed) in earlier(history, snapshot.index, seed, now)? {
        let Some(eval) = state.evals.lookup(eval) else { continue };
        let settlement = schedule(&state, eval, seed, now).settlement;
        put_ahead(&mut state, &settlement, now);
    }
    Ok(state)
}

/// The evaluations that were planned before in the round, first to last: plans of a round have one snapshot, one time, and
/// seeds that count up.
fn earlier(history: &History, snapshot: Index, seed: u64, now: Time) -> Result<Vec<(EvalId, u64)>, String> {
    let mut planned: BTreeMap<u64, EvalId> = BTreeMap::new();
    for index in (snapshot.0..).skip(1).take(PLANNED_WITHIN as usize) {
        let Some(batch) = history.batch(Index(index)).map_err(|error| error.to_string())? else { break };
        let batch = batch.decode().map_err(|error| error.to_string())?;
        planned.extend(batch.events.iter().filter_map(|logged| made_on(&logged.event, snapshot, now)));
        if planned.contains_key(&seed) {
            break;
        }
    }
    let before = (1..GROUP_MAX as u64).map(|distance| seed.wrapping_sub(distance));
    let mut before: Vec<(EvalId, u64)> =
        before.map_while(|seed| Some((*planned.get(&seed)?, seed))).collect();
    before.reverse();
    Ok(before)
}

/// The seed and evaluation of a plan that was made on this snapshot at this time.
fn made_on(event: &Event, snapshot: Index, now: Time) -> Option<(u64, EvalId)> {
    let (made_on, made_at, seed, eval) = match event {
        Event::PlanCommitted(plan) => (plan.snapshot, plan.now, plan.seed, plan.eval),
        Event::EvalUpdated(ended) => {
            (ended.outcome.snapshot, ended.outcome.now, ended.outcome.seed, ended.eval)
        }
        _ => return None,
    };
    (made_on == snapshot && made_at == now).then_some((seed, eval))
}

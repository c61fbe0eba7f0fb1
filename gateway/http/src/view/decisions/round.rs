//! The state that a decision was made on: a snapshot, and the plans of the same round that came before.

use std::collections::{BTreeMap, BTreeSet};

use base::{Index, Time};
use control::worker::GROUP_MAX;
use model::command::Settlement;
use model::{Batch, CommandKind, EvalId, Event};
use placement::{give_up, schedule};
use rules::fork::put_ahead;
use state::State;

use super::Past;
use super::recorded::{Recorded, decisions};

/// Batches after a snapshot in which the plans are looked for that were made on it. A plan that came later than that
/// was one of its own, or is shown as one that comes out differently.
pub(super) const PLANNED_WITHIN: u64 = 256;

/// Evaluations that are tried in the place of a plan that the log does not have.
const TRIED_MAX: usize = 16;

/// The plans of a round, as far as the log has them. Plans of a round have one snapshot, one time, and seeds that count up.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub planned: BTreeMap<u64, Recorded>,
    /// Evaluations that ended meanwhile in another way: a plan for one of them was made, and not accepted.
    pub ended: BTreeSet<EvalId>,
}

impl Round {
    pub(super) fn add(&mut self, batch: &Batch, snapshot: Index, now: Time) {
        let of_round = |one: &Recorded| one.snapshot == snapshot && one.now == now;
        let own = decisions(batch).into_iter().filter(of_round);
        self.planned.extend(own.map(|one| (one.seed, one)));
        self.ended.extend(ended(batch));
    }
}

/// Evaluations that ended in a batch without a decision of their own.
pub(super) fn ended(batch: &Batch) -> Vec<EvalId> {
    let mut found = Vec::new();
    for (_, record, event) in batch.events() {
        let is_decided = CommandKind::from_number(record.kind) == Some(CommandKind::SettleEval);
        match event {
            Event::EvalsCanceled(of) => found.extend(&of.evals),
            Event::EvalsDeleted(of) => found.extend(&of.evals),
            Event::EvalUpdated(of) if of.status.is_terminal() && !is_decided => found.push(of.eval),
            _ => {}
        }
    }
    found
}

/// Makes the plans again that a worker made on `snapshot` before the one of this seed, and puts them into it.
///
/// # Errors
/// Why the log cannot be read.
pub(crate) fn plan_ahead(past: Past<'_>, snapshot: &State, seed: u64, now: Time) -> Result<State, String> {
    let round = round(past, snapshot.index, seed, now)?;
    let mut ahead = Ahead::new(past, snapshot, &round.ended, now);
    let first = seed.saturating_sub(GROUP_MAX as u64 - 1);
    for recorded in round.planned.range(first..=seed).map(|(_, recorded)| recorded) {
        ahead.come_to(recorded);
        if recorded.seed != seed {
            ahead.put(recorded);
        }
    }
    Ok(ahead.state)
}

fn round(past: Past<'_>, snapshot: Index, seed: u64, now: Time) -> Result<Round, String> {
    let mut round = Round::default();
    for index in (snapshot.0..).skip(1).take(PLANNED_WITHIN as usize) {
        let Some(batch) = past.batch(Index(index)).map_err(|error| error.to_string())? else { break };
        round.add(&batch.decode().map_err(|error| error.to_string())?, snapshot, now);
        if round.planned.contains_key(&seed) {
            break;
        }
    }
    Ok(round)
}

/// A snapshot with the plans of a round in it, up to one of them.
pub(super) struct Ahead<'a> {
    past: Past<'a>,
    pub state: State,
    ended: &'a BTreeSet<EvalId>,
    now: Time,
    /// The seed of the next plan, once the first one is in.
    next: Option<u64>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(past: Past<'a>, snapshot: &State, ended: &'a BTreeSet<EvalId>, now: Time) -> Ahead<'a> {
        Ahead { past, state: snapshot.clone(), ended, now, next: None }
    }

    /// Comes to a plan. Where the one before it is not in the log, the evaluation that it was for ended before it was
    /// decided: which one that was shows in that this plan comes out as it is logged.
    pub(super) fn come_to(&mut self, recorded: &Recorded) {
        let is_next = self.next == Some(recorded.seed);
        if is_next || self.ended.is_empty() || self.is_as_logged(&self.state, recorded) {
            return;
        }
        let seed = recorded.seed.wrapping_sub(1);
        for eval in self.ended.iter().filter(|eval| **eval != recorded.eval).take(TRIED_MAX) {
            let mut tried = self.state.clone();
            let Some(open) = tried.evals.lookup(*eval).filter(|eval| !eval.status.is_terminal()) else {
                continue;
            };
            let settlement = schedule(&tried, open, seed, self.now).settlement;
            if put_ahead(&mut tried, &settlement, self.now) && self.is_as_logged(&tried, recorded) {
                self.state = tried;
                return;
            }
        }
    }

    fn is_as_logged(&self, state: &State, recorded: &Recorded) -> bool {
        let again = again(state, recorded);
        again.is_some_and(|settlement| recorded.is_settled_by(self.past, &settlement))
    }

    /// Puts a plan into the state, for those that follow.
    pub(super) fn put(&mut self, recorded: &Recorded) {
        if let Some(settlement) = again(&self.state, recorded) {
            self.put_made(recorded, &settlement);
        }
    }

    /// The same, of a plan that was made again already.
    pub(super) fn put_made(&mut self, recorded: &Recorded, settlement: &Settlement) {
        put_ahead(&mut self.state, settlement, self.now);
        self.next = Some(recorded.seed.wrapping_add(1));
    }
}

/// Makes a decision again; `None` where the state does not know its evaluation, and for one that must not be made again.
pub(super) fn again(state: &State, recorded: &Recorded) -> Option<Settlement> {
    let eval = state.evals.lookup(recorded.eval).filter(|_| !recorded.is_quarantined())?;
    let outcome = schedule(state, eval, recorded.seed, recorded.now);
    Some(match recorded.is_given_up() {
        true => give_up(state, eval, recorded.seed, &outcome),
        false => outcome.settlement,
    })
}

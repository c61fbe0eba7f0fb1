//! A scheduler of one server: the life of `control/src/worker.rs` as a machine, with the real scheduler in it.

use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use control::SubmitError;
use control::broker::Delivery;
use model::Rejection;
use model::command::Verdict;
use placement::Outcome;
use state::State;

use super::call::{Ask, Reply};
use crate::planted::Bug;

/// How long a worker waits for its server to have seen what the evaluation is about.
const SYNC_LIMIT: Duration = Duration::from_secs(5);
/// How much longer it waits for the same, having given the evaluation back.
const SLOW_SERVER_FACTOR: i64 = 10;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

enum Stage {
    Idle,
    /// Something was asked, and this is who it was about.
    Asked(Option<Delivery>),
    /// For the server to have seen an index.
    Behind {
        delivery: Option<Delivery>,
        index: Index,
        until: Time,
    },
    /// The plan is made, and takes its time.
    Thinking {
        delivery: Delivery,
        outcome: Box<Outcome>,
        again: bool,
    },
}

pub enum WorkerOut {
    Ask {
        ask: Ask,
        within: Duration,
    },
    /// Call again after this, unless something else happens first.
    After(Duration),
    Scheduled {
        delivery: Delivery,
        state: Arc<State>,
        plan: Box<model::command::Plan>,
    },
}

pub struct Worker {
    stage: Stage,
    /// What was meant for an earlier stage is void.
    pub generation: u64,
    pub pending: Option<u64>,
    pub out: Vec<WorkerOut>,
    /// Plans take this long at most.
    pub slowness: Duration,
    attempts: placement::Attempts,
    seeds: Rng,
    bug: Option<Bug>,
}

impl Worker {
    pub fn new(seed: u64, server: usize, worker: usize, bug: Option<Bug>) -> Worker {
        Worker {
            stage: Stage::Idle,
            generation: 0,
            pending: None,
            out: Vec::new(),
            slowness: Duration::from_millis(50),
            attempts: placement::Attempts::default(),
            seeds: Rng::stream(seed, &format!("worker {worker} of server {server}")),
            bug,
        }
    }

    /// It dies without a word, and another takes its place.
    pub fn die(&mut self) {
        self.become_(Stage::Idle);
        self.pending = None;
        self.out.push(WorkerOut::After(Duration::from_secs(1)));
    }

    /// Called when time has passed or the server has published.
    pub fn go_on(&mut self, published: &Arc<State>, now: Time, clock: Time) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => self.dequeue(),
            Stage::Asked(delivery) => self.stage = Stage::Asked(delivery),
            Stage::Behind { delivery, index, until } => {
                self.wait(delivery, index, until, published, now, clock)
            }
            Stage::Thinking { delivery, outcome, again } => {
                let token = delivery.token;
                let settlement = Box::new(outcome.settlement.clone());
                self.ask(Some(delivery), Ask::Settle { token, settlement });
                if again {
                    self.bring_again(outcome);
                }
            }
        }
    }

    /// Only what waits for the server's state.
    pub fn published(&mut self, published: &Arc<State>, now: Time, clock: Time) {
        if matches!(&self.stage, Stage::Behind { index, .. } if published.index >= *index) {
            self.go_on(published, now, clock);
        }
    }

    /// The answer to what was asked; `None` when none came.
    pub fn hear(&mut self, reply: Option<Reply>, published: &Arc<State>, now: Time, clock: Time) {
        self.pending = None;
        let Stage::Asked(about) = std::mem::replace(&mut self.stage, Stage::Idle) else { return };
        match (reply, about) {
            (Some(Reply::Delivered(Some(delivery))), _) => {
                let index = delivery.wait_index;
                self.attempts = placement::Attempts::default();
                let wanted = if self.bug == Some(Bug::OldState) { Index::ZERO } else { index };
                self.wait(Some(delivery), wanted, now.plus(SYNC_LIMIT), published, now, clock);
            }
            (Some(Reply::Outcome(outcome)), Some(delivery)) => {
                self.told(delivery, outcome, published, now, clock);
            }
            (Some(Reply::TakenAway), Some(delivery)) => self.ack(delivery),
            (None | Some(Reply::NoLeader), Some(delivery)) => self.nack(delivery),
            _ => self.rest(Duration::from_secs(1)),
        }
    }

    fn told(
        &mut self,
        delivery: Delivery,
        outcome: Result<control::Receipt, SubmitError>,
        published: &Arc<State>,
        now: Time,
        clock: Time,
    ) {
        match outcome {
            Ok(receipt) => {
                let verdict: Verdict =
                    receipt.reply.verdict.expect("a settlement is answered with a verdict");
                if verdict.full {
                    return self.ack(delivery);
                }
                self.attempts.count(&verdict);
                self.wait(Some(delivery), receipt.index, now.plus(SYNC_LIMIT), published, now, clock);
            }
            Err(SubmitError::Rejected(Rejection::EvalNotOutstanding(_) | Rejection::EvalUnknown(_))) => {
                self.ack(delivery);
            }
            Err(_) => self.nack(delivery),
        }
    }

    fn wait(
        &mut self,
        delivery: Option<Delivery>,
        index: Index,
        until: Time,
        published: &Arc<State>,
        now: Time,
        clock: Time,
    ) {
        match delivery {
            Some(delivery) if published.index >= index => self.schedule(delivery, published, clock),
            None if published.index >= index => self.rest(Duration::ZERO),
            Some(delivery) if until <= now => {
                let longer = now.plus(Duration(SYNC_LIMIT.0 * SLOW_SERVER_FACTOR));
                self.give_back(&delivery);
                self.wait(None, index, longer, published, now, clock);
            }
            None if until <= now => self.rest(Duration::ZERO),
            delivery => {
                self.become_(Stage::Behind { delivery, index, until });
                self.out.push(WorkerOut::After(until.since(now)));
            }
        }
    }

    fn schedule(&mut self, delivery: Delivery, state: &Arc<State>, clock: Time) {
        let eval = state.evals.lookup(delivery.eval).filter(|eval| !eval.status.is_terminal());
        let Some(eval) = eval else { return self.ack(delivery) };
        let seed = self.seeds.next();
        let mut outcome = placement::schedule(state, eval, seed, clock.max(state.time));
        if self.attempts.are_spent(eval.facts.kind) {
            outcome.settlement = placement::give_up(state, eval, seed, &outcome);
        }
        let plan = Box::new(outcome.settlement.plan.clone());
        self.out.push(WorkerOut::Scheduled { delivery: delivery.clone(), state: state.clone(), plan });
        let again = self.bug == Some(Bug::SettledTwice);
        self.become_(Stage::Thinking { delivery, outcome: Box::new(outcome), again });
        self.out.push(WorkerOut::After(Duration(self.seeds.below(self.slowness.0.max(1) as u64) as i64)));
    }

    /// Planted: the placements come once more, under other ids and without the evaluation's end.
    fn bring_again(&mut self, mut outcome: Box<Outcome>) {
        let Stage::Asked(Some(delivery)) = &self.stage else { return };
        for placed in &mut outcome.settlement.plan.placed {
            placed.ids.iter_mut().for_each(|id| id.0 = self.seeds.uuid());
        }
        outcome.settlement.end = None;
        let token = delivery.token;
        let first = self.out.len() - 1;
        let ask = Ask::Settle { token, settlement: Box::new(outcome.settlement) };
        self.out.insert(first, WorkerOut::Ask { ask, within: Duration::ZERO });
    }

    fn dequeue(&mut self) {
        self.ask(None, Ask::Dequeue);
    }

    fn ack(&mut self, delivery: Delivery) {
        self.ask(None, Ask::Ack { eval: delivery.eval, token: delivery.token });
    }

    fn nack(&mut self, delivery: Delivery) {
        self.ask(None, Ask::Nack { eval: delivery.eval, token: delivery.token });
    }

    /// Gives an evaluation back without waiting for the answer.
    fn give_back(&mut self, delivery: &Delivery) {
        let ask = Ask::Nack { eval: delivery.eval, token: delivery.token };
        self.out.push(WorkerOut::Ask { ask, within: Duration::ZERO });
    }

    fn ask(&mut self, about: Option<Delivery>, ask: Ask) {
        self.become_(Stage::Asked(about));
        self.out.push(WorkerOut::Ask { ask, within: PATIENCE });
    }

    fn rest(&mut self, span: Duration) {
        self.become_(Stage::Idle);
        self.out.push(WorkerOut::After(span));
    }

    fn become_(&mut self, stage: Stage) {
        self.stage = stage;
        self.generation += 1;
    }
}

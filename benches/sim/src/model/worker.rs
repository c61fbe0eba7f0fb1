//! A worker of one server: the real machine, whose needs go over the network and whose plans take their time.

use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use control::broker::Delivery;
use control::worker::{GROUP_MAX, Need, Outcome, TYPES, Worker};
use control::{LeaderAnswer, LeaderCall, SubmitError};
use model::command::{Plan, Settlement};
use model::{Actor, Command, Request};
use state::State;

use super::call::{Ask, Reply};
use crate::planted::Bug;

/// How long a worker waits for work at the leader.
const DEQUEUE_PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long it waits before it asks for work again where there was no answer.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the machine waits for.
enum Stage {
    /// To begin.
    Resting,
    /// An answer of the leader.
    Asked(Asked),
    /// Its server's state at that index.
    Behind { index: Index, until: Time },
    /// The plans are made, and take their time.
    Thinking(Vec<Delivery>),
}

#[derive(Clone, Copy)]
enum Asked {
    Work,
    /// About so many.
    Touch(usize),
    Submit(usize),
    /// Whatever the answer is, the worker goes on.
    Anything,
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
        plan: Box<Plan>,
    },
}

/// What a worker sees of its server.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub published: &'a Arc<State>,
    /// What its server's clock shows that only runs.
    pub running: Time,
    /// Its server's idea of the time.
    pub clock: Time,
}

pub struct SimWorker {
    machine: Worker,
    stage: Stage,
    /// What was meant for an earlier stage is void.
    pub generation: u64,
    pub pending: Option<u64>,
    pub out: Vec<WorkerOut>,
    /// Plans take this long at most.
    pub slowness: Duration,
    rng: Rng,
    bug: Option<Bug>,
}

impl SimWorker {
    pub fn new(seed: u64, server: usize, worker: usize, bug: Option<Bug>) -> SimWorker {
        let mut rng = Rng::stream(seed, &format!("worker {worker} of server {server}"));
        SimWorker {
            machine: Worker::new(Rng::new(rng.next())),
            stage: Stage::Resting,
            generation: 0,
            pending: None,
            out: Vec::new(),
            slowness: Duration::from_millis(50),
            rng,
            bug,
        }
    }

    /// It dies without a word, and another takes its place.
    pub fn die(&mut self) {
        self.machine = Worker::new(Rng::new(self.rng.next()));
        self.pending = None;
        self.enter(Stage::Resting);
        self.out.push(WorkerOut::After(RETRY_AFTER));
    }

    /// Called when time has passed.
    pub fn go_on(&mut self, view: View<'_>) {
        match std::mem::replace(&mut self.stage, Stage::Resting) {
            Stage::Resting => {
                let need = self.machine.begin();
                self.meet(need, view);
            }
            Stage::Asked(asked) => self.stage = Stage::Asked(asked),
            Stage::Behind { until, .. } if until <= view.running => self.step(Outcome::TimedOut, view),
            Stage::Behind { index, until } => self.stage = Stage::Behind { index, until },
            Stage::Thinking(deliveries) => {
                self.ask(Asked::Touch(deliveries.len()), LeaderCall::TouchAll(deliveries));
            }
        }
    }

    /// Its server has published a state.
    pub fn published(&mut self, view: View<'_>) {
        if matches!(&self.stage, Stage::Behind { index, .. } if view.published.index >= *index) {
            self.step(Outcome::State(view.published.clone()), view);
        }
    }

    /// The answer to what was asked; `None` when none came.
    pub fn answered(&mut self, reply: Option<Reply>, view: View<'_>) {
        self.pending = None;
        let Stage::Asked(asked) = self.stage else { return };
        let answer = match reply {
            Some(Reply::Leader(answer)) => Ok(answer),
            Some(_) => Err(SubmitError::NotLeading),
            None => Err(SubmitError::Unknown),
        };
        let outcome = match (asked, answer) {
            (Asked::Work, Ok(LeaderAnswer::DequeuedAll(deliveries))) => Outcome::Dequeued(deliveries),
            (Asked::Work, _) => {
                self.enter(Stage::Resting);
                return self.out.push(WorkerOut::After(RETRY_AFTER));
            }
            (Asked::Touch(_), Ok(LeaderAnswer::HeldAll(held))) => Outcome::Held(held),
            (Asked::Touch(many), _) => Outcome::Held(vec![false; many]),
            (Asked::Submit(_), Ok(LeaderAnswer::SubmittedAll(outcomes))) => Outcome::Submitted(outcomes),
            (Asked::Submit(many), answer) => {
                Outcome::Submitted(vec![Err(answer.err().unwrap_or(SubmitError::Unknown)); many])
            }
            (Asked::Anything, _) => Outcome::Done,
        };
        self.step(outcome, view);
    }

    fn step(&mut self, outcome: Outcome, view: View<'_>) {
        let need = self.machine.step(outcome, view.clock);
        self.meet(need, view);
    }

    fn meet(&mut self, need: Need, view: View<'_>) {
        match need {
            Need::Dequeue => {
                let (types, patience) = (TYPES.to_vec(), DEQUEUE_PATIENCE);
                self.ask(Asked::Work, LeaderCall::Dequeue { types, patience, max: GROUP_MAX });
            }
            Need::State { index, limit } => self.await_state(index, limit, view),
            Need::Schedule(_) => self.schedule(view),
            Need::Touch(deliveries) => self.think(deliveries),
            Need::Submit(settlements) => self.submit(settlements),
            Need::Release(release) => self.ask(Asked::Anything, LeaderCall::Release(release)),
        }
    }

    fn await_state(&mut self, index: Index, limit: Duration, view: View<'_>) {
        if view.published.index >= index || self.bug == Some(Bug::OldState) {
            return self.step(Outcome::State(view.published.clone()), view);
        }
        self.enter(Stage::Behind { index, until: view.running.plus(limit) });
        self.out.push(WorkerOut::After(limit));
    }

    /// What it is planned on is more than the published state, if plans of the same round come before it.
    fn schedule(&mut self, view: View<'_>) {
        let state = self.machine.plans_on().expect("an evaluation is to be scheduled").clone();
        let need = self.machine.step(Outcome::Go, view.clock);
        if let Some((delivery, settlement)) = self.machine.planned_last() {
            let (delivery, plan) = (delivery.clone(), Box::new(settlement.plan.clone()));
            self.out.push(WorkerOut::Scheduled { delivery, state, plan });
        }
        self.meet(need, view);
    }

    fn think(&mut self, deliveries: Vec<Delivery>) {
        self.enter(Stage::Thinking(deliveries));
        self.out.push(WorkerOut::After(Duration(self.rng.below(self.slowness.0.max(1) as u64) as i64)));
    }

    fn submit(&mut self, settlements: Vec<Settlement>) {
        if self.bug == Some(Bug::SettledTwice) {
            let again = settlements.iter().map(|settlement| self.other_placements(settlement)).collect();
            self.out.push(WorkerOut::Ask { ask: settle(again), within: Duration::ZERO });
        }
        let many = settlements.len();
        self.enter(Stage::Asked(Asked::Submit(many)));
        self.out.push(WorkerOut::Ask { ask: settle(settlements), within: ANSWER_MAX });
    }

    /// Planted: the placements come once more, under other ids and without the evaluation's end.
    fn other_placements(&mut self, settlement: &Settlement) -> Settlement {
        let mut again = settlement.clone();
        for placed in &mut again.plan.placed {
            placed.ids.iter_mut().for_each(|id| id.0 = self.rng.uuid());
        }
        again.end = None;
        again
    }

    fn ask(&mut self, asked: Asked, call: LeaderCall) {
        self.enter(Stage::Asked(asked));
        self.out.push(WorkerOut::Ask { ask: Ask::Leader(call), within: ANSWER_MAX });
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.generation += 1;
    }
}

fn settle(settlements: Vec<Settlement>) -> Ask {
    let actor = || Actor::Server("worker".into());
    let commands = settlements.into_iter().map(|one| Command::SettleEval(Box::new(one)));
    Ask::Leader(LeaderCall::SubmitAll(commands.map(|command| Request::unnamed(actor(), command)).collect()))
}

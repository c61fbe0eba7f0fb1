//! A scheduler worker as a machine: it says what it needs next, and is called again with what came of it.
//!
//! It takes what waits, up to a bound: dequeue evaluations of different jobs, wait for a state that knows them, schedule
//! each on top of the plans before it, bring all plans at once, and go on with those that were not accepted in full until
//! trying again is of no use. One commit serves the whole group. The driver's threads and the simulator run the same machine.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use model::command::Settlement;
use model::{EvalId, JobType, Rejection};
use placement::{Attempts, Memory};
use state::State;
use state::eval::Eval;

use crate::leader::broker::{Delivery, Release};
use crate::sequencer::{Receipt, SubmitError};

/// What every worker can schedule.
pub const TYPES: [JobType; 4] = [JobType::Service, JobType::Batch, JobType::System, JobType::Sysbatch];

/// Evaluations that a worker takes at once at most. The first plan of a group waits until the last one is made.
pub const GROUP_MAX: usize = 64;

/// Placements after which a worker submits the plans it has before it makes more of them.
const ROUND_PLACEMENTS: usize = 512;

/// How long a worker waits for its server to have seen what the evaluation is about.
pub const SYNC_LIMIT: Duration = Duration::from_secs(5);

/// How much longer it waits for the same after it gave the evaluation back: a server that is behind takes no more
/// work, but its workers go on as soon as it has caught up.
const SLOW_SERVER_FACTOR: i64 = 10;

/// Why an evaluation fails without being looked at.
const ENDED_PROCESS: &str = "this server ended twice while its scheduler was at it";

/// What a worker needs next. Exactly one [`Outcome`] answers it.
#[derive(Debug)]
pub enum Need {
    /// Evaluations from the leader, of different jobs: [`Outcome::Dequeued`].
    Dequeue,
    /// This server's state at this index or later: [`Outcome::State`], or [`Outcome::TimedOut`] after `limit`.
    State { index: Index, limit: Duration },
    /// Time to schedule this evaluation: [`Outcome::Go`].
    Schedule(EvalId),
    /// Whether the leader still counts on this worker, for each of them: [`Outcome::Held`].
    Touch(Vec<Delivery>),
    /// Plans, to be decided by the leader in this order: [`Outcome::Submitted`].
    Submit(Vec<Settlement>),
    /// The worker has these no longer: [`Outcome::Done`], also if the broker could not be reached.
    Release(Release),
}

/// What came of what the worker needed.
#[derive(Debug)]
pub enum Outcome {
    /// None, when there are none.
    Dequeued(Vec<Delivery>),
    State(Arc<State>),
    TimedOut,
    Go,
    /// One for each, in order. An answer that does not come counts as no.
    Held(Vec<bool>),
    /// One for each, in order.
    Submitted(Vec<Result<Receipt, SubmitError>>),
    Done,
}

/// An evaluation that this worker has.
#[derive(Debug)]
struct Item {
    delivery: Delivery,
    attempts: Attempts,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// For a state on which they can be scheduled. Having tried before, they have no time to lose.
    Syncing {
        items: Vec<Item>,
        first: bool,
    },
    Scheduling(Round),
    Touching(Round),
    /// What was submitted, of a round without plans.
    Submitting(Vec<Item>, Round),
    /// Goes on with the rest on a state of this index or later.
    Releasing {
        rest: Vec<Item>,
        index: Index,
    },
    /// They were given back because this server is behind: it catches up first.
    GivingBack(Index),
    Behind,
}

/// Plans that are made on one state, each on top of those before it, and submitted at once.
///
/// They have one time, and consecutive seeds: whoever makes a decision again finds by that which plans came before it.
#[derive(Debug)]
struct Round {
    /// The state with the plans so far. Its index is that of the state.
    ahead: Arc<State>,
    now: Time,
    /// Of the first plan.
    seed: u64,
    waiting: VecDeque<Item>,
    planned: Vec<(Item, Settlement)>,
    /// There is nothing to do about them.
    over: Vec<Delivery>,
    placements: usize,
    /// No plan may rest on the last one.
    closed: bool,
}

pub struct Worker {
    stage: Stage,
    memory: Memory,
    seeds: Rng,
    scheduler: Scheduler,
    deadly: BTreeSet<EvalId>,
}

/// How evaluations are scheduled: [`placement::schedule_with`], but for tests of one that fails.
pub type Scheduler = fn(&mut Memory, &State, &Eval, u64, Time) -> placement::Outcome;

impl Worker {
    /// `seeds` break ties of the scheduler: one is drawn for each round of plans.
    pub fn new(seeds: Rng) -> Worker {
        Worker {
            stage: Stage::Idle,
            memory: Memory::default(),
            seeds,
            scheduler: placement::schedule_with,
            deadly: BTreeSet::new(),
        }
    }

    pub fn with_scheduler(self, scheduler: Scheduler) -> Worker {
        Worker { scheduler, ..self }
    }

    /// Evaluations that ended the process: they fail without being scheduled.
    pub fn avoiding(self, deadly: BTreeSet<EvalId>) -> Worker {
        Worker { deadly, ..self }
    }

    /// The first need, and again after the worker was interrupted: what it was at is left to the leader, which takes
    /// the evaluations back when the worker stays silent.
    pub fn begin(&mut self) -> Need {
        self.stage = Stage::Idle;
        Need::Dequeue
    }

    /// Goes on with what came of the last need, and says what is needed next.
    ///
    /// # Panics
    /// If that is not what was needed.
    pub fn step(&mut self, outcome: Outcome, now: Time) -> Need {
        match (std::mem::replace(&mut self.stage, Stage::Idle), outcome) {
            (Stage::Idle, Outcome::Done) => Need::Dequeue,
            (Stage::Idle, Outcome::Dequeued(deliveries)) => self.dequeued(deliveries),
            (Stage::Syncing { items, .. }, Outcome::State(state)) => {
                let (now, seed) = (now.max(state.time), self.seeds.next());
                self.next_plan(Round::new(state, now, seed, items))
            }
            (Stage::Syncing { items, first }, Outcome::TimedOut) => self.give_back(items, first),
            (Stage::Scheduling(round), Outcome::Go) => self.plan(round),
            (Stage::Touching(round), Outcome::Held(held)) => self.held(round, &held),
            (Stage::Submitting(items, round), Outcome::Submitted(outcomes)) => {
                self.submitted(items, round, outcomes)
            }
            (Stage::Releasing { rest, index }, Outcome::Done) => self.sync(rest, index, false),
            (Stage::GivingBack(index), Outcome::Done) => {
                self.stage = Stage::Behind;
                Need::State { index, limit: Duration(SYNC_LIMIT.0 * SLOW_SERVER_FACTOR) }
            }
            (Stage::Behind, Outcome::State(_) | Outcome::TimedOut) => Need::Dequeue,
            (stage, outcome) => panic!("a worker in {stage:?} was given {outcome:?}"),
        }
    }

    /// The type of the job that is scheduled next, when it is time for that.
    pub fn schedules(&self) -> Option<JobType> {
        let Stage::Scheduling(round) = &self.stage else { return None };
        let eval = round.waiting.front()?.delivery.eval;
        round.ahead.evals.lookup(eval).map(|eval| eval.facts.kind)
    }

    /// What the next plan is made on: a state, and the plans of this round that are to come before it.
    pub fn plans_on(&self) -> Option<&Arc<State>> {
        match &self.stage {
            Stage::Scheduling(round) => Some(&round.ahead),
            _ => None,
        }
    }

    /// The plan that was made last, until it is submitted.
    pub fn planned_last(&self) -> Option<(&Delivery, &Settlement)> {
        match &self.stage {
            Stage::Scheduling(round) | Stage::Touching(round) => round.planned.last(),
            _ => None,
        }
        .map(|(item, settlement)| (&item.delivery, settlement))
    }

    fn dequeued(&mut self, deliveries: Vec<Delivery>) -> Need {
        let index = deliveries.iter().map(|delivery| delivery.wait_index).max();
        let items = deliveries.into_iter().map(|delivery| Item { delivery, attempts: Attempts::default() });
        self.sync(items.collect(), index.unwrap_or(Index::ZERO), true)
    }

    fn sync(&mut self, items: Vec<Item>, index: Index, first: bool) -> Need {
        if items.is_empty() {
            return Need::Dequeue;
        }
        self.stage = Stage::Syncing { items, first };
        Need::State { index, limit: SYNC_LIMIT }
    }

    fn give_back(&mut self, items: Vec<Item>, first: bool) -> Need {
        let back: Vec<Delivery> = items.into_iter().map(|item| item.delivery).collect();
        if first {
            let index = back.iter().map(|delivery| delivery.wait_index).max();
            self.stage = Stage::GivingBack(index.expect("who waits for a state has an evaluation"));
        }
        Need::Release(Release { done: Vec::new(), back })
    }

    /// Time for the next plan, or all are made.
    fn next_plan(&mut self, mut round: Round) -> Need {
        while let Some(item) = round.waiting.front().filter(|_| round.takes_more()) {
            let eval = round.ahead.evals.lookup(item.delivery.eval).filter(|eval| !eval.status.is_terminal());
            let Some(eval) = eval else {
                round.over.extend(round.waiting.pop_front().map(|item| item.delivery));
                continue;
            };
            if self.ends_without_plan(item, eval) && !round.planned.is_empty() {
                break;
            }
            let eval = item.delivery.eval;
            self.stage = Stage::Scheduling(round);
            return Need::Schedule(eval);
        }
        if round.planned.is_empty() {
            return self.release(round, Release::default(), Vec::new());
        }
        let held = round.planned.iter().map(|(item, _)| item.delivery.clone()).collect();
        self.stage = Stage::Touching(round);
        Need::Touch(held)
    }

    /// What is made of it is not what the scheduler plans, and nothing may rest on that.
    fn ends_without_plan(&self, item: &Item, eval: &Eval) -> bool {
        self.deadly.contains(&item.delivery.eval) || item.attempts.are_spent(eval.facts.kind)
    }

    fn plan(&mut self, mut round: Round) -> Need {
        let item = round.waiting.pop_front().expect("an evaluation was to be scheduled");
        let seed = round.seed.wrapping_add(round.planned.len() as u64);
        let eval = round.ahead.evals.lookup(item.delivery.eval).expect("it was just looked up");
        round.closed = self.ends_without_plan(&item, eval);
        let settlement = match self.settlement(&round, &item, eval, seed) {
            Ok(settlement) => settlement,
            Err(why) => {
                tracing::error!(eval = %item.delivery.eval, why, "the scheduler panicked; the evaluation fails");
                round.closed = true;
                let why = format!("the scheduler panicked: {why}");
                placement::quarantine(&round.ahead, eval, seed, round.now, &why)
            }
        };
        round.placements += settlement.plan.placed.iter().map(|placed| placed.ids.len()).sum::<usize>();
        if round.takes_more() && !round.waiting.is_empty() {
            let ahead = Arc::make_mut(&mut round.ahead);
            round.closed = !rules::fork::put_ahead(ahead, &settlement, round.now);
        }
        round.planned.push((item, settlement));
        self.next_plan(round)
    }

    /// # Errors
    /// What the scheduler's panic said.
    fn settlement(
        &mut self,
        round: &Round,
        item: &Item,
        eval: &Eval,
        seed: u64,
    ) -> Result<Settlement, String> {
        let (state, now) = (&*round.ahead, round.now);
        if self.deadly.contains(&item.delivery.eval) {
            return Ok(placement::quarantine(state, eval, seed, now, ENDED_PROCESS));
        }
        let scheduler = self.scheduler;
        guarded(&mut self.memory, |memory| {
            let outcome = scheduler(memory, state, eval, seed, now);
            match item.attempts.are_spent(eval.facts.kind) {
                true => placement::give_up(state, eval, seed, &outcome),
                false => outcome.settlement,
            }
        })
    }

    /// Plans that rest on one that is not submitted are made again.
    fn held(&mut self, mut round: Round, held: &[bool]) -> Need {
        assert_eq!(held.len(), round.planned.len(), "each evaluation is held or not");
        if let Some(lost) = held.iter().position(|held| !held) {
            let mut left = round.planned.split_off(lost).into_iter().map(|(item, _)| item);
            round.over.extend(left.next().map(|item| item.delivery));
            left.rev().for_each(|item| round.waiting.push_front(item));
        }
        if round.planned.is_empty() {
            return self.release(round, Release::default(), Vec::new());
        }
        let (items, settlements) = std::mem::take(&mut round.planned).into_iter().unzip();
        self.stage = Stage::Submitting(items, round);
        Need::Submit(settlements)
    }

    fn submitted(
        &mut self,
        items: Vec<Item>,
        round: Round,
        outcomes: Vec<Result<Receipt, SubmitError>>,
    ) -> Need {
        assert_eq!(outcomes.len(), items.len(), "each plan is answered");
        let (mut release, mut again) = (Release::default(), Vec::new());
        for (mut item, outcome) in items.into_iter().zip(outcomes) {
            match outcome {
                Ok(receipt) => {
                    let verdict = receipt.reply.verdict.expect("a settlement is answered with a verdict");
                    if verdict.full {
                        release.done.push(item.delivery);
                        continue;
                    }
                    item.attempts.count(&verdict);
                    again.push((item, receipt.index));
                }
                // It ended while this worker was at it.
                Err(SubmitError::Rejected(Rejection::EvalNotOutstanding(_) | Rejection::EvalUnknown(_))) => {
                    release.done.push(item.delivery);
                }
                Err(error) => {
                    tracing::debug!(eval = %item.delivery.eval, %error, "an evaluation is given back");
                    release.back.push(item.delivery);
                }
            }
        }
        self.release(round, release, again)
    }

    /// Releases what is over, and goes on with the rest: what is to be tried again, on the state that its last try led to,
    /// and what has waited.
    fn release(&mut self, round: Round, mut release: Release, again: Vec<(Item, Index)>) -> Need {
        let seen = again.iter().map(|(_, index)| *index);
        let index = seen.max().unwrap_or(Index::ZERO).max(round.ahead.index);
        let rest: Vec<Item> = again.into_iter().map(|(item, _)| item).chain(round.waiting).collect();
        release.done.extend(round.over);
        if release == Release::default() {
            return self.sync(rest, index, false);
        }
        if !rest.is_empty() {
            self.stage = Stage::Releasing { rest, index };
        }
        Need::Release(release)
    }
}

impl Round {
    fn new(state: Arc<State>, now: Time, seed: u64, items: Vec<Item>) -> Round {
        Round {
            ahead: state,
            now,
            seed,
            waiting: items.into(),
            planned: Vec::new(),
            over: Vec::new(),
            placements: 0,
            closed: false,
        }
    }

    fn takes_more(&self) -> bool {
        !self.closed && self.placements < ROUND_PLACEMENTS
    }
}

/// Characters of a panic that are kept with the evaluation.
const REASON_MAX: usize = 500;

/// What the worker remembers may be half changed after a panic, and is forgotten.
///
/// # Errors
/// What the panic said.
fn guarded<T>(memory: &mut Memory, plan: impl FnOnce(&mut Memory) -> T) -> Result<T, String> {
    let planned = catch_unwind(AssertUnwindSafe(|| plan(memory)));
    planned.map_err(|panic| {
        *memory = Memory::default();
        base::panic_text(&*panic).chars().take(REASON_MAX).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A36: the worker outlives it. What becomes of the evaluation is tested with whole workers.
    #[test]
    fn a_scheduler_that_panics_does_not_end_its_worker() {
        let mut memory = Memory::default();
        let planned: Result<(), String> = guarded(&mut memory, |_| panic!("a job that nobody thought of"));
        assert_eq!(planned, Err("a job that nobody thought of".to_string()));
        assert_eq!(guarded(&mut memory, |_| 7), Ok(7));
    }
}

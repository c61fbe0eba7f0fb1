//! A scheduler worker as a machine: it says what it needs next, and is called again with what came of it.
//!
//! One evaluation at a time: dequeue it, wait for a state that knows it, schedule, bring the plan, until the plan is
//! accepted in full or trying again is of no use. The driver's threads and the simulator run the same machine.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::{Duration, Index, Rng, Time};
use model::command::Settlement;
use model::{EvalId, JobType, Rejection};
use placement::{Attempts, Memory};
use state::State;
use state::eval::Eval;

use crate::leader::broker::Delivery;
use crate::sequencer::{Receipt, SubmitError};

/// What every worker can schedule.
pub const TYPES: [JobType; 4] = [JobType::Service, JobType::Batch, JobType::System, JobType::Sysbatch];

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
    /// An evaluation from the leader: [`Outcome::Dequeued`].
    Dequeue,
    /// This server's state at this index or later: [`Outcome::State`], or [`Outcome::TimedOut`] after `limit`.
    State { index: Index, limit: Duration },
    /// Whether the leader still counts on this worker: [`Outcome::Held`].
    Touch(Delivery),
    /// The plan, to be decided by the leader: [`Outcome::Submitted`].
    Submit(Box<Settlement>),
    /// The evaluation is done: [`Outcome::Done`], also if the broker could not be reached.
    Ack(Delivery),
    /// The evaluation is given back: [`Outcome::Done`], also if the broker could not be reached.
    Nack(Delivery),
}

/// What came of what the worker needed.
#[derive(Debug)]
pub enum Outcome {
    Dequeued(Option<Delivery>),
    State(Arc<State>),
    TimedOut,
    /// An answer that does not come counts as no.
    Held(bool),
    Submitted(Result<Receipt, SubmitError>),
    Done,
}

#[derive(Debug)]
enum Stage {
    Idle,
    /// For a state on which the evaluation can be scheduled. Having tried before, it has no time to lose.
    Syncing {
        delivery: Delivery,
        attempts: Attempts,
        first: bool,
    },
    Touching {
        delivery: Delivery,
        attempts: Attempts,
        settlement: Box<Settlement>,
    },
    Submitting {
        delivery: Delivery,
        attempts: Attempts,
    },
    /// The evaluation was given back because this server is behind: it catches up first.
    GivingBack(Index),
    Behind,
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
    /// `seeds` break ties of the scheduler: one is drawn for each try.
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
    /// the evaluation back when the worker stays silent.
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
            (Stage::Idle, Outcome::Dequeued(None) | Outcome::Done) => Need::Dequeue,
            (Stage::Idle, Outcome::Dequeued(Some(delivery))) => {
                let index = delivery.wait_index;
                self.stage = Stage::Syncing { delivery, attempts: Attempts::default(), first: true };
                Need::State { index, limit: SYNC_LIMIT }
            }
            (Stage::Syncing { delivery, attempts, .. }, Outcome::State(state)) => {
                self.schedule(delivery, attempts, &state, now)
            }
            (Stage::Syncing { delivery, first, .. }, Outcome::TimedOut) => {
                if first {
                    self.stage = Stage::GivingBack(delivery.wait_index);
                }
                Need::Nack(delivery)
            }
            (Stage::Touching { delivery, attempts, settlement }, Outcome::Held(true)) => {
                self.stage = Stage::Submitting { delivery, attempts };
                Need::Submit(settlement)
            }
            (Stage::Touching { delivery, .. }, Outcome::Held(false)) => Need::Ack(delivery),
            (Stage::Submitting { delivery, attempts }, Outcome::Submitted(outcome)) => {
                self.settled(delivery, attempts, outcome)
            }
            (Stage::GivingBack(index), Outcome::Done) => {
                self.stage = Stage::Behind;
                Need::State { index, limit: Duration(SYNC_LIMIT.0 * SLOW_SERVER_FACTOR) }
            }
            (Stage::Behind, Outcome::State(_) | Outcome::TimedOut) => Need::Dequeue,
            (stage, outcome) => panic!("a worker in {stage:?} was given {outcome:?}"),
        }
    }

    /// The evaluation that the next state is for.
    pub fn evaluation(&self) -> Option<EvalId> {
        match &self.stage {
            Stage::Syncing { delivery, .. } => Some(delivery.eval),
            _ => None,
        }
    }

    /// The plan that was made last, until it is submitted.
    pub fn settlement(&self) -> Option<&Settlement> {
        match &self.stage {
            Stage::Touching { settlement, .. } => Some(settlement),
            _ => None,
        }
    }

    fn schedule(&mut self, delivery: Delivery, attempts: Attempts, state: &State, now: Time) -> Need {
        let seed = self.seeds.next();
        let Some(eval) = state.evals.lookup(delivery.eval).filter(|eval| !eval.status.is_terminal()) else {
            return Need::Ack(delivery);
        };
        let now = now.max(state.time);
        if self.deadly.contains(&delivery.eval) {
            let settlement = placement::quarantine(state, eval, seed, now, ENDED_PROCESS);
            return self.touching(delivery, attempts, settlement);
        }
        let scheduler = self.scheduler;
        let plan = |memory: &mut Memory| {
            let outcome = scheduler(memory, state, eval, seed, now);
            match attempts.are_spent(eval.facts.kind) {
                true => placement::give_up(state, eval, seed, &outcome),
                false => outcome.settlement,
            }
        };
        match guarded(&mut self.memory, plan) {
            Ok(settlement) => self.touching(delivery, attempts, settlement),
            Err(why) => {
                tracing::error!(eval = %delivery.eval, why, "the scheduler panicked; the evaluation fails");
                let why = format!("the scheduler panicked: {why}");
                let settlement = placement::quarantine(state, eval, seed, now, &why);
                self.touching(delivery, attempts, settlement)
            }
        }
    }

    fn touching(&mut self, delivery: Delivery, attempts: Attempts, settlement: Settlement) -> Need {
        let settlement = Box::new(settlement);
        self.stage = Stage::Touching { delivery: delivery.clone(), attempts, settlement };
        Need::Touch(delivery)
    }

    fn settled(
        &mut self,
        delivery: Delivery,
        mut attempts: Attempts,
        outcome: Result<Receipt, SubmitError>,
    ) -> Need {
        match outcome {
            Ok(receipt) => {
                let verdict = receipt.reply.verdict.expect("a settlement is answered with a verdict");
                if verdict.full {
                    return Need::Ack(delivery);
                }
                attempts.count(&verdict);
                self.stage = Stage::Syncing { delivery, attempts, first: false };
                Need::State { index: receipt.index, limit: SYNC_LIMIT }
            }
            // It ended while this worker was at it.
            Err(SubmitError::Rejected(Rejection::EvalNotOutstanding(_) | Rejection::EvalUnknown(_))) => {
                Need::Ack(delivery)
            }
            Err(error) => {
                tracing::debug!(eval = %delivery.eval, %error, "an evaluation is given back");
                Need::Nack(delivery)
            }
        }
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

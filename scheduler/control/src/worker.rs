use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base::{Duration, Uuid};
use model::command::{Settlement, Verdict};
use model::{Command, JobType, Rejection};
use parking_lot::Mutex;
use placement::Memory;
use state::State;

use crate::broker::Delivery;
use crate::driver::{Shared, Waited, now};
use crate::sequencer::SubmitError;

/// What every worker can schedule.
const TYPES: [JobType; 4] = [JobType::Service, JobType::Batch, JobType::System, JobType::Sysbatch];

/// How long a worker waits for work before it looks whether it is still wanted.
const DEQUEUE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a worker waits for its server to have seen what the evaluation is about.
const SYNC_LIMIT: Duration = Duration::from_secs(5);

/// Having given the evaluation back, how much longer it waits for the same: a server that is behind takes no
/// more work, but wakes as soon as it has caught up.
const SLOW_SERVER_FACTOR: i64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerStatus {
    WaitingToDequeue,
    WaitingForState,
    Scheduling,
    Submitting,
    Stopped,
}

/// A worker as operators see it.
#[derive(Clone, Debug)]
pub struct WorkerInfo {
    pub id: Uuid,
    pub status: WorkerStatus,
}

/// One scheduler thread.
pub(crate) struct Worker {
    id: Uuid,
    status: Mutex<WorkerStatus>,
}

impl Worker {
    pub fn new(id: Uuid) -> Worker {
        Worker { id, status: Mutex::new(WorkerStatus::WaitingToDequeue) }
    }

    pub fn info(&self) -> WorkerInfo {
        WorkerInfo { id: self.id, status: *self.status.lock() }
    }

    pub fn run(&self, shared: &Arc<Shared>) {
        let mut memory = Memory::default();
        while !shared.is_closed() {
            self.is(WorkerStatus::WaitingToDequeue);
            let Some(delivery) = &shared.dequeue(&TYPES, DEQUEUE_TIMEOUT) else { continue };
            self.is(WorkerStatus::WaitingForState);
            match shared.wait_for(delivery.wait_index, SYNC_LIMIT) {
                Waited::Reached(state) => self.work(shared, delivery, state, &mut memory),
                Waited::Closed => shared.nack(delivery),
                Waited::TimedOut => {
                    shared.nack(delivery);
                    let longer = Duration(SYNC_LIMIT.0 * SLOW_SERVER_FACTOR);
                    shared.wait_for(delivery.wait_index, longer);
                }
            }
        }
        self.is(WorkerStatus::Stopped);
    }

    fn work(&self, shared: &Arc<Shared>, delivery: &Delivery, state: Arc<State>, memory: &mut Memory) {
        match guarded(|| self.settle(shared, delivery, state, memory)) {
            Ended::Settled => shared.ack(delivery),
            Ended::GivenUp(error) => {
                tracing::debug!(eval = %delivery.eval, %error, "an evaluation is given back");
                shared.nack(delivery);
            }
            Ended::Panicked => {
                tracing::error!(eval = %delivery.eval, "the scheduler panicked; the evaluation is given back");
                // What it remembers may be half changed.
                *memory = Memory::default();
                shared.nack(delivery);
            }
        }
    }

    /// Schedules until a plan is accepted in full, or until trying again is of no use.
    fn settle(
        &self,
        shared: &Arc<Shared>,
        delivery: &Delivery,
        mut state: Arc<State>,
        memory: &mut Memory,
    ) -> Result<(), SubmitError> {
        let mut attempts = placement::Attempts::default();
        loop {
            let Some(eval) = state.evals.lookup(delivery.eval).filter(|eval| !eval.status.is_terminal())
            else {
                return Ok(());
            };
            self.is(WorkerStatus::Scheduling);
            let seed = shared.seed();
            let now = now().max(state.time);
            let outcome = placement::schedule_with(memory, &state, eval, seed, now);
            let settlement = if attempts.are_spent(eval.facts.kind) {
                placement::give_up(&state, eval, seed, &outcome)
            } else {
                outcome.settlement
            };
            let Some((verdict, index)) = self.submit(shared, delivery, settlement)? else { return Ok(()) };
            if verdict.full {
                return Ok(());
            }
            attempts.count(&verdict);
            match shared.wait_for(index, SYNC_LIMIT) {
                Waited::Reached(newer) => state = newer,
                Waited::TimedOut | Waited::Closed => return Err(SubmitError::Unknown),
            }
        }
    }

    /// `None`: the evaluation ended while this worker was at it.
    fn submit(
        &self,
        shared: &Arc<Shared>,
        delivery: &Delivery,
        settlement: Settlement,
    ) -> Result<Option<(Verdict, base::Index)>, SubmitError> {
        self.is(WorkerStatus::Submitting);
        if !shared.still_holds(delivery) {
            return Ok(None);
        }
        match shared.submit_and_wait(Command::SettleEval(Box::new(settlement)), "worker") {
            Ok(receipt) => {
                let verdict = receipt.reply.verdict.expect("a settlement is answered with a verdict");
                Ok(Some((verdict, receipt.index)))
            }
            Err(SubmitError::Rejected(Rejection::EvalNotOutstanding(_) | Rejection::EvalUnknown(_))) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn is(&self, status: WorkerStatus) {
        *self.status.lock() = status;
    }
}

/// How an attempt ended. Whatever is not settled is given back, and the log knows nothing of it.
#[derive(Debug, PartialEq)]
enum Ended {
    Settled,
    GivenUp(SubmitError),
    Panicked,
}

fn guarded(attempt: impl FnOnce() -> Result<(), SubmitError>) -> Ended {
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Ok(())) => Ended::Settled,
        Ok(Err(error)) => Ended::GivenUp(error),
        Err(_) => Ended::Panicked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A36: the worker outlives it. That the evaluation is handed out again is tested with the broker.
    #[test]
    fn a_scheduler_that_panics_takes_no_worker_along() {
        assert_eq!(guarded(|| panic!("a job that nobody thought of")), Ended::Panicked);
        assert_eq!(guarded(|| Err(SubmitError::Unknown)), Ended::GivenUp(SubmitError::Unknown));
        assert_eq!(guarded(|| Ok(())), Ended::Settled);
    }
}

//! The threads that schedule.

use std::sync::Arc;

use base::{Duration, Rng, Uuid};
use model::Command;
use parking_lot::Mutex;

use super::clock::{entropy, entropy_bytes, now};
use super::shared::{Shared, Waited};
use crate::worker::{Need, Outcome, TYPES, Worker};

/// How long a worker waits for work before it checks whether it is still wanted.
const DEQUEUE_TIMEOUT: Duration = Duration::from_millis(500);

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
pub struct WorkerThread {
    id: Uuid,
    status: Mutex<WorkerStatus>,
}

impl WorkerThread {
    pub fn new() -> WorkerThread {
        let id = Uuid::from_random(entropy_bytes());
        WorkerThread { id, status: Mutex::new(WorkerStatus::WaitingToDequeue) }
    }

    pub fn info(&self) -> WorkerInfo {
        WorkerInfo { id: self.id, status: *self.status.lock() }
    }

    pub fn run(&self, shared: &Arc<Shared>) {
        let mut worker = Worker::new(Rng::new(entropy()));
        let mut need = worker.begin();
        while !shared.is_closed() {
            let outcome = self.meet(shared, need);
            if matches!(outcome, Outcome::State(_)) {
                self.set(WorkerStatus::Scheduling);
            }
            need = worker.step(outcome, now());
        }
        // Whoever gets the evaluation next need not wait until this worker is missed.
        if let Need::Nack(delivery) = &need {
            shared.nack(delivery);
        }
        self.set(WorkerStatus::Stopped);
    }

    fn meet(&self, shared: &Arc<Shared>, need: Need) -> Outcome {
        match need {
            Need::Dequeue => {
                self.set(WorkerStatus::WaitingToDequeue);
                Outcome::Dequeued(shared.dequeue(&TYPES, DEQUEUE_TIMEOUT))
            }
            Need::State { index, limit } => {
                self.set(WorkerStatus::WaitingForState);
                match shared.wait_for_state(index, limit) {
                    Waited::Reached(state) => Outcome::State(state),
                    Waited::TimedOut | Waited::Closed => Outcome::TimedOut,
                }
            }
            Need::Touch(delivery) => {
                self.set(WorkerStatus::Submitting);
                Outcome::Held(shared.still_holds(&delivery))
            }
            Need::Submit(settlement) => {
                Outcome::Submitted(shared.submit_and_wait(Command::SettleEval(settlement), "worker"))
            }
            Need::Ack(delivery) => {
                shared.ack(&delivery);
                Outcome::Done
            }
            Need::Nack(delivery) => {
                shared.nack(&delivery);
                Outcome::Done
            }
        }
    }

    fn set(&self, status: WorkerStatus) {
        *self.status.lock() = status;
    }
}

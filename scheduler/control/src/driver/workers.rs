//! The threads that schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use base::{Duration, Rng, Uuid};
use model::JobType;
use parking_lot::Mutex;

use super::at_work::Slot;
use super::clock::{entropy, entropy_bytes, now};
use super::shared::{Shared, Waited};
use super::timings;
use crate::worker::{Need, Outcome, Worker};

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

/// Which evaluations a server schedules, and with how many threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPool {
    pub workers: usize,
    pub types: Vec<JobType>,
}

/// One scheduler thread.
pub struct WorkerThread {
    id: Uuid,
    types: Vec<JobType>,
    status: Mutex<WorkerStatus>,
    /// Another pool took its place.
    dismissed: AtomicBool,
}

impl WorkerThread {
    pub fn new(types: Vec<JobType>) -> WorkerThread {
        WorkerThread {
            id: Uuid::from_random(entropy_bytes()),
            types,
            status: Mutex::new(WorkerStatus::WaitingToDequeue),
            dismissed: AtomicBool::new(false),
        }
    }

    /// It ends once it is done with what it has.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }

    fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Relaxed)
    }

    pub fn info(&self) -> WorkerInfo {
        WorkerInfo { id: self.id, status: *self.status.lock() }
    }

    pub fn run(&self, shared: &Arc<Shared>) {
        let mut worker = Worker::new(Rng::new(entropy())).avoiding(shared.at_work.deadly().clone());
        let notes = shared.at_work.slot();
        let mut need = worker.begin();
        loop {
            // A dismissed worker first finishes what it has.
            let may_end = matches!(need, Need::Dequeue) && self.is_dismissed();
            if may_end || shared.is_closed() {
                break;
            }
            let schedules = worker.schedules();
            let outcome = self.meet(shared, &notes, need);
            let began = Instant::now();
            need = worker.step(outcome, now());
            if let Some(kind) = schedules {
                shared.timings.since(timings::scheduling(kind), began);
                notes.end();
            }
        }
        // Whoever gets the evaluations next need not wait until this worker is missed.
        if let Need::Release(release) = need {
            shared.release(release);
        }
        self.set(WorkerStatus::Stopped);
    }

    fn meet(&self, shared: &Arc<Shared>, notes: &Slot, need: Need) -> Outcome {
        match need {
            Need::Dequeue => {
                self.set(WorkerStatus::WaitingToDequeue);
                let began = Instant::now();
                let deliveries = shared.dequeue(&self.types, DEQUEUE_TIMEOUT);
                deliveries
                    .iter()
                    .for_each(|_| shared.timings.since("nomad.nomad.worker.dequeue_eval", began));
                Outcome::Dequeued(deliveries)
            }
            Need::State { index, limit } => {
                self.set(WorkerStatus::WaitingForState);
                let began = Instant::now();
                let waited = shared.wait_for_state(index, limit);
                shared.timings.since("nomad.nomad.worker.wait_for_index", began);
                match waited {
                    Waited::Reached(state) => Outcome::State(state),
                    Waited::TimedOut | Waited::Closed => Outcome::TimedOut,
                }
            }
            Need::Schedule(eval) => {
                self.set(WorkerStatus::Scheduling);
                notes.begin(eval);
                Outcome::Go
            }
            Need::Touch(deliveries) => {
                self.set(WorkerStatus::Submitting);
                Outcome::Held(shared.still_held(&deliveries))
            }
            Need::Submit(settlements) => {
                let began = Instant::now();
                let outcomes = shared.settle(settlements);
                for _ in &outcomes {
                    shared.timings.since("nomad.nomad.plan.submit", began);
                    shared.timings.since("nomad.nomad.worker.submit_plan", began);
                }
                Outcome::Submitted(outcomes)
            }
            Need::Release(release) => {
                let began = Instant::now();
                shared.release(release);
                shared.timings.since("nomad.nomad.worker.send_ack", began);
                Outcome::Done
            }
        }
    }

    fn set(&self, status: WorkerStatus) {
        *self.status.lock() = status;
    }
}

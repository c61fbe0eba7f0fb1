//! Submits jobs: in a closed loop, in which a client's next job waits for its last one, or in an open loop, in which jobs
//! come when they come.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::arrivals::Arrivals;
use crate::http::{Agent, Http};
use crate::job::Registration;
use crate::options::Wait;
use crate::stop::Stop;
use crate::tracker::Tracker;

/// Errors in a row at which a step gives up.
const ERRORS_MAX: u32 = 100;

/// After a job that was rejected, before the client's next one.
const PAUSE: Duration = Duration::from_millis(10);

/// What all clients of a step share.
#[derive(Clone)]
pub(crate) struct Step {
    pub agent: Agent,
    pub registration: Registration,
    pub tracker: Tracker,
    pub stop: Stop,
    /// Jobs that may still be submitted.
    pub left: u32,
    pub time: Duration,
    /// How long a client waits for one job.
    pub settle: Duration,
}

/// The jobs that are left, handed out one by one.
struct Queue<I> {
    stop: Stop,
    left: u32,
    intended: I,
    errors: u32,
}

impl Step {
    /// Until the time is over or no job is left.
    pub(crate) async fn closed(self, clients: u32, wait: Wait) {
        let until = Instant::now() + self.time;
        let (stop, left, intended) = (self.stop.clone(), self.left, std::iter::repeat(Duration::ZERO));
        let queue = Queue { stop, left, intended, errors: 0 };
        let queue = Arc::new(Mutex::new(queue));
        let mut running = JoinSet::new();
        for _ in 0..clients {
            let (mut client, queue) = (Client::new(&self), Arc::clone(&queue));
            running.spawn(async move {
                while Instant::now() < until && lock(&queue).take().is_some() {
                    let intended = client.tracker.now();
                    let submitted = client.submit(intended, wait).await;
                    if !lock(&queue).note(submitted) {
                        return;
                    }
                }
            });
        }
        running.join_all().await;
    }

    /// Jobs at this rate for the time, over so many connections. One that finds them all busy is late, and its latency
    /// counts from when it was meant to be sent.
    pub(crate) async fn open(self, rate: f64, connections: u32, seed: u64) {
        let (start, began) = (self.tracker.now(), Instant::now());
        let time = self.time;
        let (stop, left, intended) = (self.stop.clone(), self.left, Arrivals::new(seed, rate));
        let queue = Queue { stop, left, intended, errors: 0 };
        let queue = Arc::new(Mutex::new(queue));
        let mut running = JoinSet::new();
        for _ in 0..connections {
            let (mut client, queue) = (Client::new(&self), Arc::clone(&queue));
            running.spawn(async move {
                loop {
                    let next = lock(&queue).take().filter(|after| *after < time);
                    let Some(after) = next else { return };
                    if client.stop.or(sleep_until(began + after)).await.is_none() {
                        return;
                    }
                    let submitted = client.submit(start + after, Wait::Accepted).await;
                    if !lock(&queue).note(submitted) {
                        return;
                    }
                }
            });
        }
        running.join_all().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<I: Iterator<Item = Duration>> Queue<I> {
    /// When the next job is meant to be sent.
    fn take(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        self.intended.next().filter(|_| !self.stop.is_set())
    }

    /// False when it makes no sense to go on.
    fn note(&mut self, submitted: bool) -> bool {
        self.errors = if submitted { 0 } else { self.errors + 1 };
        self.errors < ERRORS_MAX
    }
}

struct Client {
    http: Http,
    registration: Registration,
    tracker: Tracker,
    stop: Stop,
    settle: Duration,
}

impl Client {
    fn new(step: &Step) -> Client {
        Client {
            http: Http::new(step.agent.clone()),
            registration: step.registration.clone(),
            tracker: step.tracker.clone(),
            stop: step.stop.clone(),
            settle: step.settle,
        }
    }

    /// False when the job was not accepted.
    async fn submit(&mut self, intended: Duration, wait: Wait) -> bool {
        let job = self.tracker.submit(intended);
        let reached = (wait != Wait::Accepted).then(|| self.tracker.wait_for(job, wait));
        let error = match self.http.send(self.registration.of(job)).await {
            Ok(answer) if answer.status == 200 => {
                self.tracker.accepted(job);
                if let Some(reached) = reached {
                    // What never comes is counted as missing at the end.
                    let _ = self.stop.or(timeout(self.settle, reached)).await;
                }
                return true;
            }
            Ok(answer) => format!("{} {}", answer.status, answer.text()),
            Err(error) => error.to_string(),
        };
        self.tracker.failed(error);
        tokio::time::sleep(PAUSE).await;
        false
    }
}

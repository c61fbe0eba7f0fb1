//! What the threads of a server and its callers share.

use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use base::{Duration, Index, Rng, Time, Uuid};
use journal::{Journal, KeepError};
use model::{Actor, EvalId, JobType, NodeId, Request, VariableKey};
use parking_lot::{Condvar, Mutex, MutexGuard};
use state::State;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::at_work::AtWork;
use super::changes::Changes;
use super::clock::{Clock, entropy};
use super::control::Settings;
use super::images::Images;
use super::inbox::Inbox;
use super::recent::RecentStates;
use super::timings::Timings;
use crate::leader::broker::{Delivery, NotHeld, Release};
use crate::leader::locks::NotRenewed;
use crate::leader::{Leader, Order};
use crate::leader_client::LeaderClient;
use crate::sequencer::{Published, Receipt, Submission, SubmitError};

/// Who leads, as this server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This server does, and everything before its term is folded.
    Mine,
    /// The server of that number.
    Other(u64),
    Unknown,
}

pub struct Shared {
    pub inbox: Inbox,
    pub journal: Arc<dyn Journal>,
    pub leader_client: Arc<dyn LeaderClient>,
    pub runtime: Handle,
    pub settings: Settings,
    pub timings: Arc<Timings>,
    pub at_work: Arc<AtWork>,
    /// What others subscribe to.
    pub published_index: watch::Sender<Index>,
    pub changes: Arc<Changes>,
    pub leadership: watch::Sender<Leadership>,
    pub halted: watch::Sender<Option<String>>,
    pub diverged: watch::Sender<Option<String>>,
    /// What the log's batches follow on.
    pub origin: ArcSwap<State>,
    published: ArcSwap<State>,
    /// The last of them, newest last: readers of the stream show each batch with the state that it led to.
    pub recent: Mutex<RecentStates>,
    leader: Mutex<Open>,
    images: Images,
    /// Workers wait here for evaluations and states.
    work: Condvar,
    /// The timers wait here for an earlier deadline.
    timer: Condvar,
    /// Who only lets time pass waits here for the end.
    end: Condvar,
}

/// The leader's machine, until the server shuts down.
pub struct Open {
    pub machine: Leader,
    clock: Clock,
    closed: bool,
    /// The deadline that the timers wait for; none while they look for it, or wait for one to be there.
    awaited: Option<Time>,
}

/// How long the timers wait at most: a clock that is set meanwhile makes deadlines due that name a time.
const CLOCK_SEEN_EVERY: Duration = Duration::from_secs(1);

impl Open {
    /// The machine, and the time. If the clock was set since it was called last, it is notified first.
    fn at_now(&mut self) -> (&mut Leader, Time) {
        let (now, moved) = self.clock.look();
        if let Some(by) = moved {
            tracing::warn!(
                by_ms = by.0 / 1_000_000,
                "the clock was set: deadlines of nodes and workers move along"
            );
            self.machine.clock_moved(by);
        }
        (&mut self.machine, now)
    }

    /// The timers wait for too long.
    fn is_due_sooner(&self) -> bool {
        let next = self.machine.next_deadline().map(|(deadline, _)| deadline);
        next.is_some_and(|next| self.awaited.is_none_or(|awaited| next < awaited))
    }
}

/// How waiting for a state ended.
pub enum Waited {
    Reached(Arc<State>),
    TimedOut,
    Closed,
}

impl Shared {
    pub fn new(
        inbox: Inbox,
        settings: Settings,
        journal: Arc<dyn Journal>,
        leader_client: Arc<dyn LeaderClient>,
        runtime: Handle,
    ) -> Shared {
        let (broker, heartbeats) = (settings.broker.clone(), settings.heartbeats.clone());
        let (garbage, scheduler) = (settings.garbage.clone(), settings.scheduler.clone());
        let at_work = settings.notes.as_deref().map(AtWork::open).transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "workers do not note which evaluations they are at");
            None
        });
        Shared {
            inbox,
            journal,
            leader_client,
            runtime,
            settings,
            timings: Arc::default(),
            at_work: Arc::new(at_work.unwrap_or_default()),
            published_index: watch::channel(Index::ZERO).0,
            changes: Arc::default(),
            leadership: watch::channel(Leadership::Unknown).0,
            halted: watch::channel(None).0,
            diverged: watch::channel(None).0,
            origin: ArcSwap::from_pointee(State::default()),
            published: ArcSwap::from_pointee(State::default()),
            recent: Mutex::default(),
            leader: Mutex::new(Open {
                machine: Leader::new(broker, heartbeats, garbage, scheduler, Rng::new(entropy())),
                clock: Clock::start(),
                closed: false,
                awaited: None,
            }),
            images: Images::default(),
            work: Condvar::new(),
            timer: Condvar::new(),
            end: Condvar::new(),
        }
    }

    pub fn leadership_now(&self) -> Leadership {
        *self.leadership.borrow()
    }

    pub fn published(&self) -> Arc<State> {
        self.published.load_full()
    }

    pub fn has_diverged(&self) -> bool {
        self.diverged.borrow().is_some()
    }

    pub fn leader(&self) -> MutexGuard<'_, Open> {
        self.leader.lock()
    }

    pub fn is_closed(&self) -> bool {
        self.leader.lock().closed
    }

    /// No thread waits for anything any more.
    pub fn close(&self) {
        self.leader.lock().closed = true;
        self.work.notify_all();
        self.timer.notify_all();
        self.end.notify_all();
        self.inbox.close();
    }

    /// Keeps an image of the published state beside the log.
    ///
    /// # Errors
    /// The log does not take it; the image kept before stays.
    pub fn keep_image(&self) -> Result<Index, KeepError> {
        self.images.keep(&*self.journal, || self.published())
    }

    /// Makes a state the one that everybody reads.
    pub fn publish(&self, published: &Published) {
        let Published { state, delta } = published;
        self.published.store(state.clone());
        let dropped = self.recent.lock().push(state, delta);
        drop(dropped);
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        machine.observe(state, delta, now);
        self.inbox.hold_work(machine.is_behind(state, now));
        self.wake_timers(&leader);
        drop(leader);
        self.work.notify_all();
        self.published_index.send_replace(state.index);
        self.changes.notify(state, delta);
    }

    pub fn start_leading(&self, state: &State) {
        let orders = {
            let mut leader = self.leader.lock();
            let (machine, now) = leader.at_now();
            let orders = machine.lead(state, now);
            self.wake_timers(&leader);
            orders
        };
        self.leadership.send_replace(Leadership::Mine);
        self.work.notify_all();
        self.submit_orders(orders);
    }

    /// Another server leads, or nobody does.
    pub fn follow(&self, leadership: Leadership) {
        self.leadership.send_replace(leadership);
        self.leader.lock().machine.follow();
        self.reject_waiting();
    }

    /// Nobody decides here what still waits in the inbox.
    pub fn reject_waiting(&self) {
        self.inbox.hold_work(false);
        while let Some(submission) = self.inbox.pop() {
            (submission.answer)(Err(SubmitError::NotLeading));
        }
    }

    pub fn submit_orders(&self, orders: impl IntoIterator<Item = Order>) {
        for Order { by, command } in orders {
            let request = Request::unnamed(Actor::Server(by.to_string()), command);
            let answer = Box::new(|outcome: Result<Receipt, SubmitError>| {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "a controller's command was not accepted");
                }
            });
            self.inbox.submit(Submission { request, answer });
        }
    }

    /// A node sent a heartbeat. Returns how long it may be silent now; `None` if this server does not lead.
    pub fn heartbeat_here(&self, node: NodeId) -> Option<Duration> {
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        let ttl = machine.heartbeat(node, now);
        self.wake_timers(&leader);
        ttl
    }

    /// A node says that it is ready: how long it may be silent now. `None` if that has to be decided, or this server does not lead.
    pub fn renew_heartbeat_here(&self, node: NodeId) -> Option<Duration> {
        if self.has_diverged() {
            return None;
        }
        let state = self.published.load();
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        let ttl = machine.renew_heartbeat(&state, node, now);
        self.wake_timers(&leader);
        ttl
    }

    /// The holder of a variable's lock goes on holding it; `None` if this server does not lead.
    pub fn renew_lock_here(&self, key: &VariableKey, lock: Uuid) -> Option<Result<(), NotRenewed>> {
        let state = self.published.load();
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        let renewed = machine.renew_lock(&state, key, lock, now);
        self.wake_timers(&leader);
        renewed
    }

    pub fn longest_wait(&self) -> Duration {
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        machine.longest_wait(now)
    }

    /// The next evaluations of these types, at most `max`; none after `timeout` or at the end.
    pub fn dequeue_here(&self, types: &[JobType], max: usize, timeout: Duration) -> Vec<Delivery> {
        let until = Instant::now() + timeout.to_std();
        let mut leader = self.leader.lock();
        while !leader.closed {
            let state = self.published.load();
            let (machine, now) = leader.at_now();
            let deliveries = machine.dequeue(&state, types, max, now);
            if !deliveries.is_empty() {
                self.wake_timers(&leader);
                return deliveries;
            }
            if self.work.wait_until(&mut leader, until).timed_out() {
                break;
            }
        }
        Vec::new()
    }

    /// # Errors
    /// [`NotHeld`]: the evaluation was taken away from the worker.
    pub fn touch_here(&self, eval: EvalId, token: u64) -> Result<(), NotHeld> {
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        machine.touch(eval, token, now)
    }

    pub fn touch_all_here(&self, deliveries: &[Delivery]) -> Vec<bool> {
        let mut leader = self.leader.lock();
        let (machine, now) = leader.at_now();
        machine.touch_all(deliveries, now)
    }

    pub fn release_here(&self, release: &Release) {
        let state = self.published.load();
        let failed = {
            let mut leader = self.leader.lock();
            let (machine, now) = leader.at_now();
            let failed = machine.release(&state, release, now);
            self.wake_timers(&leader);
            failed
        };
        self.work.notify_all();
        self.submit_orders(failed);
    }

    /// Waits until the state is at least at `index`. Ends early as soon as it is.
    pub fn wait_for_state(&self, index: Index, timeout: Duration) -> Waited {
        let until = Instant::now() + timeout.to_std();
        let mut leader = self.leader.lock();
        loop {
            let state = self.published.load_full();
            if state.index >= index {
                return Waited::Reached(state);
            }
            if leader.closed {
                return Waited::Closed;
            }
            if self.work.wait_until(&mut leader, until).timed_out() {
                return Waited::TimedOut;
            }
        }
    }

    /// Waits that long, or until the server shuts down.
    pub fn pause(&self, span: std::time::Duration) {
        let until = Instant::now() + span;
        let mut leader = self.leader.lock();
        while !leader.closed && !self.end.wait_until(&mut leader, until).timed_out() {}
    }

    /// To be called after whatever may have set a deadline. Most come after the one that the timers wait for.
    fn wake_timers(&self, leader: &Open) {
        if leader.is_due_sooner() {
            self.timer.notify_one();
        }
    }

    /// Waits for the leader's next deadline and submits what is due then. Returns at the end.
    pub fn run_timers(&self) {
        let mut leader = self.leader.lock();
        while !leader.closed {
            let (machine, now) = leader.at_now();
            let next = machine.next_deadline();
            let behind = machine.is_behind(&self.published.load(), now);
            self.inbox.hold_work(behind);
            leader.awaited = next.map(|(deadline, _)| deadline);
            match next {
                Some((deadline, reason)) if deadline <= now => {
                    tracing::trace!(reason, "a deadline of the leader");
                    let orders = leader.machine.expire(&self.published.load(), now);
                    MutexGuard::unlocked(&mut leader, || {
                        self.submit_orders(orders);
                        self.work.notify_all();
                    });
                }
                Some((deadline, _)) => {
                    self.timer.wait_for(&mut leader, deadline.since(now).min(CLOCK_SEEN_EVERY).to_std());
                }
                // Nobody else may notice that workers are gone.
                None if behind => drop(self.timer.wait_for(&mut leader, CLOCK_SEEN_EVERY.to_std())),
                None => self.timer.wait(&mut leader),
            }
        }
    }
}

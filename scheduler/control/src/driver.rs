//! The threads, the clock and the entropy: everything around the pure machines.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use base::{Duration, Index, Rng, Time, Uuid};
use journal::{Journal, KeepError};
use model::{Actor, Command, EvalId, JobType, NodeId, Request, RequestId};
use parking_lot::{Condvar, Mutex};
use state::{Delta, FoldError, State};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::broker::{Broker, BrokerSettings, BrokerStats, Delivery, NotHeld};
use crate::deployments::Deployments;
use crate::drains::Drains;
use crate::heartbeats::{HeartbeatSettings, Heartbeats};
use crate::images::{Images, keep_images};
use crate::inbox::{Inbox, Notice};
use crate::launches::Launches;
use crate::sequencer::{Damage, Filled, Published, Receipt, Sequencer, Submission, SubmitError};
use crate::upstream::Upstream;
use crate::worker::{Worker, WorkerInfo};

#[derive(Clone, Debug)]
pub struct Settings {
    /// This server, as batches name it.
    pub server: Uuid,
    pub heartbeats: HeartbeatSettings,
    pub broker: BrokerSettings,
    /// Scheduler threads.
    pub workers: usize,
    /// How long a call waits for a leader before it fails.
    pub rpc_hold: Duration,
}

/// The door and what is behind it, before the log is there to come in by it.
pub struct Starting {
    pub inbox: Inbox,
    settings: Settings,
}

/// First half of a start: the log is opened with [`Starting::inbox`] as its sink, then handed to
/// [`Starting::start`].
pub fn prepare(settings: Settings) -> Starting {
    Starting { inbox: Inbox::default(), settings }
}

impl Starting {
    /// `upstream` is the way to other servers, used on `runtime`.
    pub fn start(self, journal: Arc<dyn Journal>, upstream: Arc<dyn Upstream>, runtime: &Handle) -> Control {
        let (published_index, _) = watch::channel(Index::ZERO);
        let (leadership, _) = watch::channel(Leadership::Unknown);
        let (halted, _) = watch::channel(None);
        let (diverged, _) = watch::channel(None);
        let shared = Arc::new(Shared {
            inbox: self.inbox,
            journal,
            upstream,
            runtime: runtime.clone(),
            published: ArcSwap::from_pointee(State::default()),
            published_index,
            leadership,
            halted,
            diverged,
            origin: ArcSwap::from_pointee(State::default()),
            leader: Mutex::new(Leader {
                broker: Broker::new(self.settings.broker.clone()),
                heartbeats: Heartbeats::new(self.settings.heartbeats.clone()),
                deployments: Deployments::default(),
                drains: Drains::default(),
                launches: Launches::default(),
                chance: Rng::new(entropy()),
                closed: false,
            }),
            images: Images::default(),
            work: Condvar::new(),
            timer: Condvar::new(),
            settings: self.settings,
        });
        let workers: Vec<Arc<Worker>> = (0..shared.settings.workers)
            .map(|_| Arc::new(Worker::new(Uuid::from_random(entropy_bytes()))))
            .collect();
        let mut threads = vec![
            spawn("sequencer", shared.clone(), |shared| or_abort(|| sequence(&shared))),
            spawn("timers", shared.clone(), |shared| or_abort(|| keep_time(&shared))),
            spawn("images", shared.clone(), |shared| keep_images(&shared)),
        ];
        for worker in &workers {
            let (worker, control) = (worker.clone(), shared.clone());
            threads.push(spawn("worker", control, move |shared| worker.run(&shared)));
        }
        Control { shared, workers: Arc::new(workers), threads: Arc::new(Mutex::new(threads)) }
    }
}

/// Everything the server's speakers may do: submit, read, wait.
#[derive(Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
    workers: Arc<Vec<Arc<Worker>>>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// Who leads, as this server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// This server does, and everything before its term is folded.
    Mine,
    /// The server of that number.
    Other(u64),
    Unknown,
}

pub(crate) struct Shared {
    pub inbox: Inbox,
    pub journal: Arc<dyn Journal>,
    pub upstream: Arc<dyn Upstream>,
    pub runtime: Handle,
    published: ArcSwap<State>,
    published_index: watch::Sender<Index>,
    leadership: watch::Sender<Leadership>,
    halted: watch::Sender<Option<String>>,
    diverged: watch::Sender<Option<String>>,
    /// What the log's batches lead on from.
    origin: ArcSwap<State>,
    leader: Mutex<Leader>,
    pub images: Images,
    /// Workers wait here for evaluations.
    work: Condvar,
    /// The timers wait here for an earlier deadline.
    timer: Condvar,
    pub settings: Settings,
}

/// What only a leader has.
struct Leader {
    broker: Broker,
    heartbeats: Heartbeats,
    deployments: Deployments,
    drains: Drains,
    launches: Launches,
    chance: Rng,
    closed: bool,
}

/// How waiting for a state ended.
pub(crate) enum Waited {
    Reached(Arc<State>),
    TimedOut,
    Closed,
}

impl Control {
    /// The newest committed state. A pointer copy.
    pub fn state(&self) -> Arc<State> {
        self.shared.published.load_full()
    }

    /// Told of each newly published index; may skip some when many come at once.
    pub fn watch(&self) -> watch::Receiver<Index> {
        self.shared.published_index.subscribe()
    }

    pub fn leads(&self) -> bool {
        self.leadership_now() == Leadership::Mine
    }

    pub fn leadership_now(&self) -> Leadership {
        self.shared.leadership_now()
    }

    /// Told when leadership comes, goes or moves.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    /// Told why, when the server cannot go on.
    pub fn halted(&self) -> watch::Receiver<Option<String>> {
        self.shared.halted.subscribe()
    }

    /// Told why, while this server's state is not what the cluster decided on: it serves nobody and waits for
    /// another state from the log.
    pub fn diverged(&self) -> watch::Receiver<Option<String>> {
        self.shared.diverged.subscribe()
    }

    /// The state that this server began with: what follows it can be folded from the log.
    pub fn origin(&self) -> Arc<State> {
        self.shared.origin.load_full()
    }

    /// Keeps an image of the newest state beside the log. Blocks until it is safe.
    ///
    /// # Errors
    /// The log does not take it; the image kept before stays.
    pub fn keep_image(&self) -> Result<Index, KeepError> {
        self.shared.images.keep(&self.shared)
    }

    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.shared.journal
    }

    pub fn broker_stats(&self) -> BrokerStats {
        self.shared.leader.lock().broker.stats()
    }

    /// Nodes whose heartbeats are waited for.
    pub fn heartbeats_tracked(&self) -> usize {
        self.shared.leader.lock().heartbeats.len()
    }

    /// Commands that wait to be decided.
    pub fn commands_waiting(&self) -> usize {
        self.shared.inbox.waiting()
    }

    pub fn workers(&self) -> Vec<WorkerInfo> {
        self.workers.iter().map(|worker| worker.info()).collect()
    }

    /// Stops all threads and waits for them. Commands on their way are answered `NotLeading` or `Unknown`.
    pub fn shutdown(&self) {
        self.shared.leader.lock().closed = true;
        self.shared.work.notify_all();
        self.shared.timer.notify_all();
        self.shared.inbox.close();
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked before the shutdown");
            }
        }
    }
}

impl Shared {
    pub fn leadership_now(&self) -> Leadership {
        *self.leadership.borrow()
    }

    pub fn published(&self) -> Arc<State> {
        self.published.load_full()
    }

    pub fn has_diverged(&self) -> bool {
        self.diverged.borrow().is_some()
    }

    /// As [`Control::heard`], if this server leads.
    pub fn heard(&self, node: NodeId) -> Option<Duration> {
        if self.leadership_now() != Leadership::Mine {
            return None;
        }
        let mut leader = self.leader.lock();
        let Leader { heartbeats, chance, .. } = &mut *leader;
        let ttl = heartbeats.heard(node, now(), chance);
        drop(leader);
        self.timer.notify_one();
        Some(ttl)
    }

    fn submit_and_forget(&self, command: Command, name: &str) {
        let request = Request { id: RequestId::default(), actor: Actor::Server(name.to_string()), command };
        let answer = Box::new(|outcome: Result<Receipt, SubmitError>| {
            if let Err(error) = outcome {
                tracing::debug!(%error, "a controller's command was not taken");
            }
        });
        self.inbox.submit(Submission { request, answer });
    }

    /// The next evaluation of these types; `None` after `timeout` or at the end.
    pub fn dequeue_here(&self, types: &[JobType], timeout: Duration) -> Option<Delivery> {
        let until = Instant::now() + timeout.to_std();
        let mut leader = self.leader.lock();
        loop {
            if leader.closed {
                return None;
            }
            let state = self.published.load();
            let Leader { broker, chance, .. } = &mut *leader;
            if let Some(delivery) = broker.dequeue(&state, types, now(), chance) {
                drop(leader);
                self.timer.notify_one();
                return Some(delivery);
            }
            if self.work.wait_until(&mut leader, until).timed_out() {
                return None;
            }
        }
    }

    /// # Errors
    /// [`NotHeld`]: the evaluation was taken away from the worker.
    pub fn touch_here(&self, eval: EvalId, token: u64) -> Result<(), NotHeld> {
        self.leader.lock().broker.touch(eval, token, now())
    }

    pub fn ack_here(&self, eval: EvalId, token: u64) {
        let state = self.published.load();
        // Not held any more: its end was seen in the log before the worker came here.
        let _ended = self.leader.lock().broker.ack(&state, eval, token, now());
        self.work.notify_one();
    }

    pub fn nack_here(&self, eval: EvalId, token: u64) {
        let mut leader = self.leader.lock();
        let Leader { broker, chance, .. } = &mut *leader;
        let failed = broker.nack(eval, token, now(), chance).ok().flatten();
        drop(leader);
        self.timer.notify_one();
        if let Some(command) = failed {
            self.submit_and_forget(command, "broker");
        }
    }

    /// Waits until the state is at least at `index`. Ends early as soon as it is.
    pub fn wait_for(&self, index: Index, timeout: Duration) -> Waited {
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
    pub fn rest(&self, long: std::time::Duration) {
        let until = Instant::now() + long;
        let mut leader = self.leader.lock();
        while !leader.closed && !self.work.wait_until(&mut leader, until).timed_out() {}
    }

    pub fn is_closed(&self) -> bool {
        self.leader.lock().closed
    }

    pub fn seed(&self) -> u64 {
        self.leader.lock().chance.next()
    }

    /// Makes a state the one that everybody reads, and tells those who act on it.
    fn publish(&self, published: &Published) {
        let Published { state, delta } = published;
        self.published.store(state.clone());
        let mut leader = self.leader.lock();
        if delta.restored && self.leadership_now() == Leadership::Mine {
            // What was held is of no state any more; what waits is looked up again.
            leader.broker.lead(state, now());
            leader.heartbeats.clear();
            leader.heartbeats.rebuild(state, now());
            leader.deployments.rebuild(state, now());
            leader.drains.rebuild(state, now());
            leader.launches.rebuild(state);
        }
        leader.broker.observe(state, delta, now());
        if self.leadership_now() == Leadership::Mine {
            leader.deployments.observe(state, delta, now());
            leader.drains.observe(state, delta, now());
            leader.launches.observe(state, delta);
        }
        for row in &delta.nodes {
            let hot = state.nodes.hot(*row);
            if hot.gone || hot.status == model::NodeStatus::Down {
                leader.heartbeats.forget(state.nodes.cold(*row).id);
            }
        }
        drop(leader);
        self.work.notify_all();
        self.timer.notify_one();
        self.published_index.send_replace(state.index);
    }

    /// Makes what is committed the state that everybody reads.
    fn publish_as_it_is(&self, sequencer: &Sequencer) {
        let state = Arc::new(sequencer.committed().clone());
        self.publish(&Published { state, delta: Delta::default() });
    }

    /// This server's state is not what the cluster decided on: nobody may read it.
    fn diverge(&self, error: &FoldError) {
        tracing::error!(%error, "this server serves nobody until it has the cluster's state");
        self.diverged.send_replace(Some(error.to_string()));
    }

    fn start_leading(&self, state: &State) {
        let mut leader = self.leader.lock();
        leader.broker.lead(state, now());
        leader.heartbeats.rebuild(state, now());
        leader.deployments.rebuild(state, now());
        leader.drains.rebuild(state, now());
        leader.launches.rebuild(state);
        drop(leader);
        self.leadership.send_replace(Leadership::Mine);
        self.timer.notify_one();
        self.work.notify_all();
        if state.cluster.is_nil() {
            self.submit_and_forget(Command::FoundCluster, "leader");
        }
    }

    /// Another server leads, or nobody does.
    fn follow(&self, leadership: Leadership) {
        self.leadership.send_replace(leadership);
        let mut leader = self.leader.lock();
        leader.broker.follow();
        leader.heartbeats.clear();
        leader.deployments.clear();
        leader.drains.clear();
        leader.launches.clear();
    }

    /// The server cannot go on: says why, and takes no more commands.
    fn halt(&self, why: String) {
        tracing::error!(why, "the server stops");
        self.follow(Leadership::Unknown);
        self.halted.send_replace(Some(why));
        self.inbox.close();
    }
}

/// Runs what the server cannot go on without. If it panics, a fact was violated: going on would spread the damage,
/// and a server that only hangs would be worse than none.
fn or_abort(run: impl FnOnce()) {
    if std::panic::catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("a loop of the server panicked: the process ends");
        std::process::abort();
    }
}

/// The sequencer's thread.
fn sequence(shared: &Shared) {
    let mut sequencer = Sequencer::new(shared.settings.server);
    let mut seeds = Rng::new(entropy());
    loop {
        let (mut notices, mut closed) = shared
            .inbox
            .wait(sequencer.has_room(), |waiting| (std::mem::take(&mut waiting.notices), waiting.closed));
        if let Err(why) = hear(shared, &mut sequencer, &mut notices) {
            shared.halt(why);
            closed = true;
        }
        if closed {
            sequencer.follow();
            refuse_waiting(shared);
            return;
        }
        while sequencer.has_room() {
            let (term, batch) = match sequencer.fill(now(), &mut seeds, || shared.inbox.pop()) {
                Filled::Batch(term, batch) => (term, batch),
                Filled::Answers(answers) => {
                    answers.give_while_leading(&*shared.journal);
                    break;
                }
                Filled::Nothing => break,
            };
            if let Err(error) = shared.journal.propose(term, batch) {
                tracing::warn!(%error, "the log did not take a batch");
                sequencer.refused(&error.into());
                break;
            }
        }
    }
}

/// Folds what the log has said, and publishes the newest of it.
///
/// While a log is read back, the states between are of no use to anybody, and keeping them would have every
/// fold copy the pages it touches: only the last one is published.
fn hear(shared: &Shared, sequencer: &mut Sequencer, notices: &mut VecDeque<Notice>) -> Result<(), String> {
    for notice in notices.drain(..) {
        match notice {
            // Nothing follows on a state that is wrong; another one comes from the log.
            Notice::Committed(_) if shared.has_diverged() => {}
            Notice::Committed(batch) => match sequencer.commit(&batch) {
                Ok(Some((published, answers))) => {
                    shared.publish(&published);
                    answers.give();
                }
                Ok(None) => {}
                Err(Damage::OutOfOrder(error @ FoldError::Diverged { .. })) => shared.diverge(&error),
                Err(damage) => return Err(damage.to_string()),
            },
            Notice::Restored(image) => {
                let index = image.index;
                let state = state::restore(&image)
                    .map_err(|error| format!("the image of the state at index {index}: {error}"))?;
                shared.origin.store(Arc::new(state.clone()));
                sequencer.restore(state);
                shared.publish_as_it_is(sequencer);
                shared.diverged.send_replace(None);
            }
            // It cannot decide on a state that is wrong: somebody else has to lead.
            Notice::Leading(_) if shared.has_diverged() => shared.follow(Leadership::Unknown),
            Notice::Leading(term) => {
                publish_folded(shared, sequencer);
                sequencer.lead(term);
                shared.start_leading(sequencer.committed());
            }
            Notice::Following(leader) => {
                sequencer.follow();
                shared.follow(leader.map_or(Leadership::Unknown, Leadership::Other));
                refuse_waiting(shared);
            }
            Notice::Halted(why) => return Err(why),
        }
    }
    publish_folded(shared, sequencer);
    Ok(())
}

/// Publishes what was folded for others since the last time.
fn publish_folded(shared: &Shared, sequencer: &Sequencer) {
    if shared.published.load().index < sequencer.committed().index {
        shared.publish_as_it_is(sequencer);
    }
}

fn refuse_waiting(shared: &Shared) {
    while let Some(submission) = shared.inbox.pop() {
        (submission.answer)(Err(SubmitError::NotLeading));
    }
}

/// The timers' thread: sleeps until the earliest deadline, or until there may be an earlier one.
fn keep_time(shared: &Shared) {
    let mut leader = shared.leader.lock();
    while !leader.closed {
        let next = [
            leader.heartbeats.next_deadline(),
            leader.broker.next_deadline(),
            leader.deployments.next_deadline(),
            leader.drains.next_deadline(),
            leader.launches.next_deadline(),
        ];
        let next = next.into_iter().flatten().min();
        let wait = next.map(|deadline| deadline.since(now()).to_std());
        match wait {
            Some(wait) if wait.is_zero() => {}
            Some(wait) => {
                shared.timer.wait_for(&mut leader, wait);
                continue;
            }
            None => {
                shared.timer.wait(&mut leader);
                continue;
            }
        }
        let state = shared.published.load();
        let Leader { broker, heartbeats, deployments, drains, launches, chance, .. } = &mut *leader;
        let due = deployments.expire(&state, now());
        let emptied = drains.expire(&state, now());
        let launched = launches.expire(&state, now());
        let silent = heartbeats.expire(now());
        let failed = broker.expire(&state, now(), chance);
        parking_lot::MutexGuard::unlocked(&mut leader, || {
            silent.into_iter().for_each(|command| shared.submit_and_forget(command, "heartbeats"));
            failed.into_iter().for_each(|command| shared.submit_and_forget(command, "broker"));
            due.into_iter().for_each(|command| shared.submit_and_forget(command, "deployments"));
            emptied.into_iter().for_each(|command| shared.submit_and_forget(command, "drains"));
            launched.into_iter().for_each(|command| shared.submit_and_forget(command, "launches"));
            shared.work.notify_all();
        });
    }
}

/// The only look at the clock.
pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn entropy() -> u64 {
    u64::from_le_bytes(entropy_bytes()[..8].try_into().expect("16 bytes hold 8"))
}

pub(crate) fn entropy_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has entropy");
    bytes
}

fn spawn(name: &str, shared: Arc<Shared>, run: impl FnOnce(Arc<Shared>) + Send + 'static) -> JoinHandle<()> {
    let builder = std::thread::Builder::new().name(name.to_string());
    builder.spawn(move || run(shared)).expect("the system gives a thread")
}

//! A network between the servers of one process, for tests, benches and the simulator: messages go through memory, and
//! are slow, lost, doubled, late or cut off as somebody asks for.
//!
//! Never here: a real socket, or anything that production code uses. Next: `raft::Peers`, which this implements.

mod gone;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Rng;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use raft::{MESSAGE_BYTES_MAX, PeerError, Peers, RaftJournal};
use tokio::time::{Instant, sleep, timeout};

pub use gone::Gone;

/// How late a message is at most that is late.
const LATE_MAX: Duration = Duration::from_secs(10);

/// What becomes of messages; the default is that each arrives once and at once.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// The usual longest way of a message.
    pub delay_max: Duration,
    /// Messages in a thousand that are lost.
    pub lost: u64,
    /// Messages in a thousand that come twice.
    pub twice: u64,
    /// Messages in a thousand that take up to 10 s.
    pub late: u64,
}

impl Conditions {
    pub fn lossy(delay_max: Duration, lost: u64) -> Conditions {
        Conditions { delay_max, lost, ..Conditions::default() }
    }
}

/// All links.
pub struct FakeNetwork(Mutex<Inner>);

struct Inner {
    rng: Rng,
    conditions: Conditions,
    servers: BTreeMap<u64, (Weak<RaftJournal>, Arc<Gone>)>,
    /// From whom nothing reaches whom; `None` until somebody mends it.
    cut: BTreeMap<(u64, u64), Option<Instant>>,
    /// Over everything that arrived, and since when.
    trace: Option<(blake3::Hasher, Instant)>,
    /// Of every message, and where it went.
    copies: Option<Vec<(u64, Bytes)>>,
}

/// One server's way to the others.
pub struct Links {
    network: Arc<FakeNetwork>,
    from: u64,
    gone: Arc<Gone>,
}

/// What becomes of one message.
struct Fate {
    delay: Duration,
    /// It comes once more, so much later.
    again: Option<Duration>,
    lost: bool,
}

/// What a sender gets back.
enum Carried {
    Answer(Result<Bytes, PeerError>),
    /// Nobody listens there.
    Nobody,
    /// Nothing, ever.
    Nothing,
}

impl FakeNetwork {
    pub fn new(seed: u64, conditions: Conditions) -> Arc<FakeNetwork> {
        Arc::new(FakeNetwork(Mutex::new(Inner {
            rng: Rng::stream(seed, "links"),
            conditions,
            servers: BTreeMap::new(),
            cut: BTreeMap::new(),
            trace: None,
            copies: None,
        })))
    }

    /// One server's way to the others, until it is gone.
    pub fn links(self: &Arc<FakeNetwork>, from: u64, gone: &Arc<Gone>) -> Arc<Links> {
        Arc::new(Links { network: self.clone(), from, gone: gone.clone() })
    }

    pub fn join(&self, number: u64, server: &Arc<RaftJournal>, gone: &Arc<Gone>) {
        self.0.lock().servers.insert(number, (Arc::downgrade(server), gone.clone()));
    }

    /// Nothing reaches it any more.
    pub fn leave(&self, number: u64) {
        self.0.lock().servers.remove(&number);
    }

    pub fn set_conditions(&self, conditions: Conditions) {
        self.0.lock().conditions = conditions;
    }

    pub fn cut(&self, from: u64, to: u64) {
        self.0.lock().cut.insert((from, to), None);
    }

    pub fn cut_for(&self, from: u64, to: u64, how_long: Duration) {
        self.0.lock().cut.insert((from, to), Some(Instant::now() + how_long));
    }

    /// Nothing passes between these and all others.
    pub fn part(&self, some: &[u64]) {
        let all: Vec<u64> = self.0.lock().servers.keys().copied().collect();
        for one in some {
            for other in all.iter().filter(|other| !some.contains(other)) {
                self.cut(*one, *other);
                self.cut(*other, *one);
            }
        }
    }

    /// Nothing is cut any more.
    pub fn heal(&self) {
        self.0.lock().cut.clear();
    }

    /// Keeps a copy of every message from now on.
    pub fn copy(&self) {
        self.0.lock().copies = Some(Vec::new());
    }

    /// The copies so far, and no more from now on.
    pub fn copies(&self) -> Vec<(u64, Bytes)> {
        self.0.lock().copies.take().unwrap_or_default()
    }

    /// Hashes everything that arrives from now on, and when.
    pub fn trace(&self) {
        self.0.lock().trace = Some((blake3::Hasher::new(), Instant::now()));
    }

    /// Over everything that arrived so far; `None` if nobody asked for it.
    pub fn hash(&self) -> Option<blake3::Hash> {
        self.0.lock().trace.as_ref().map(|(hasher, _)| hasher.finalize())
    }

    fn fate(&self) -> Fate {
        let mut inner = self.0.lock();
        let Inner { rng, conditions, .. } = &mut *inner;
        let micros = conditions.delay_max.as_micros() as u64 + 1;
        let usual = Duration::from_micros(rng.below(micros));
        let is_late = rng.below(1_000) < conditions.late;
        let late = is_late.then(|| Duration::from_millis(rng.below(LATE_MAX.as_millis() as u64)));
        let lost = rng.below(1_000) < conditions.lost;
        let twice = rng.below(1_000) < conditions.twice;
        let again = twice.then(|| Duration::from_micros(rng.below(10 * micros)));
        Fate { delay: late.unwrap_or(usual), again, lost }
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        let is_still = |until: &Option<Instant>| until.is_none_or(|until| Instant::now() < until);
        self.0.lock().cut.get(&(from, to)).is_some_and(is_still)
    }

    /// Hands a message over. Nothing comes of it if the server dies over it.
    async fn arrive(&self, from: u64, to: u64, message: Bytes) -> Carried {
        if self.is_cut(from, to) {
            return Carried::Nothing;
        }
        let Some((server, gone)) = self.server(to) else { return Carried::Nobody };
        self.note(from, to, &message);
        let answer = gone.unless(async move { server.answer(message).await }).await;
        answer.map_or(Carried::Nothing, Carried::Answer)
    }

    fn server(&self, number: u64) -> Option<(Arc<RaftJournal>, Arc<Gone>)> {
        let inner = self.0.lock();
        let (server, gone) = inner.servers.get(&number)?;
        Some((server.upgrade().filter(|_| !gone.is())?, gone.clone()))
    }

    fn note(&self, from: u64, to: u64, message: &[u8]) {
        let mut inner = self.0.lock();
        let Some((hasher, begun)) = &mut inner.trace else { return };
        let at = begun.elapsed().as_nanos() as u64;
        for number in [at, from, to] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(message);
    }

    /// Carries one message there and its answer back.
    async fn carry(self: Arc<FakeNetwork>, from: u64, to: u64, message: Bytes) -> Carried {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "a message is too long");
        let Fate { delay, again, lost } = self.fate();
        if let Some(later) = again {
            let (network, message) = (self.clone(), message.clone());
            // Its second answer is for nobody.
            tokio::spawn(async move {
                sleep(delay + later).await;
                network.arrive(from, to, message).await;
            });
        }
        wait(delay).await;
        if lost {
            return Carried::Nothing;
        }
        let carried = self.arrive(from, to, message).await;
        let Fate { delay, lost, .. } = self.fate();
        wait(delay).await;
        if lost || self.is_cut(to, from) { Carried::Nothing } else { carried }
    }
}

/// Even a sleep of no time takes a tick of the timer.
async fn wait(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}

impl Peers for Links {
    fn call(
        &self,
        node: u64,
        _: &str,
        message: Bytes,
        patience: Duration,
    ) -> BoxFuture<'static, Result<Bytes, PeerError>> {
        if self.gone.is() {
            return Box::pin(std::future::pending());
        }
        self.network.0.lock().copies.iter_mut().for_each(|copies| copies.push((node, message.clone())));
        // In a task of its own: a message arrives also when its sender has given up, or died.
        let carried = tokio::spawn(self.network.clone().carry(self.from, node, message));
        Box::pin(async move {
            let begun = Instant::now();
            match timeout(patience, carried).await {
                Ok(Ok(Carried::Answer(answer))) => answer,
                Ok(Ok(Carried::Nobody)) => Err(PeerError::Unreachable("nobody listens there".into())),
                Ok(Ok(Carried::Nothing)) => {
                    sleep(patience.saturating_sub(begun.elapsed())).await;
                    Err(PeerError::TimedOut(patience))
                }
                Ok(Err(_)) | Err(_) => Err(PeerError::TimedOut(patience)),
            }
        })
    }
}

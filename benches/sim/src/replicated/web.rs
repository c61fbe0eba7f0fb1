//! The links between servers: slow, losing, doubling, late, cut.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Rng;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use raft::{MESSAGE_BYTES_MAX, PeerError, Peers, RaftJournal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::options::Network;

/// How late a message is at most that is late, in milliseconds.
const LATE_MAX: u64 = 10_000;

/// All links.
pub struct Web(Mutex<Inner>);

struct Inner {
    rng: Rng,
    weather: Network,
    servers: BTreeMap<u64, (Weak<RaftJournal>, Arc<Gone>)>,
    /// From whom nothing reaches whom, and until when.
    cut: BTreeMap<(u64, u64), Instant>,
    /// Over everything that arrived.
    hasher: blake3::Hasher,
    begun: Instant,
}

/// One process's way to the others.
pub struct Links {
    pub web: Arc<Web>,
    pub from: u64,
    pub gone: Arc<Gone>,
}

/// That a process is no more: nothing reaches it, and nothing that is left of it reaches anybody.
#[derive(Default)]
pub struct Gone {
    gone: AtomicBool,
    told: Notify,
}

impl Gone {
    pub fn go(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.told.notify_waiters();
    }

    pub fn is(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub async fn wait(&self) {
        let told = self.told.notified();
        if !self.is() {
            told.await;
        }
    }

    /// What comes of something that a process does; `None` if it dies over it.
    ///
    /// In a task of its own: openraft panics if somebody stops waiting for its end while others go on.
    pub async fn unless<T: Send + 'static>(
        &self,
        done: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let done = tokio::spawn(done);
        tokio::select! {
            biased;
            () = self.wait() => None,
            // Its panic was heard.
            done = done => done.ok(),
        }
    }
}

/// What becomes of one message.
struct Fate {
    delay: Duration,
    /// It comes once more, so much later.
    again: Option<Duration>,
    lost: bool,
}

/// What a sender learns.
enum Carried {
    Answer(Result<Bytes, PeerError>),
    /// Nobody listens there.
    Nobody,
    /// Nothing, ever.
    Nothing,
}

impl Web {
    pub fn new(seed: u64, weather: Network) -> Arc<Web> {
        Arc::new(Web(Mutex::new(Inner {
            rng: Rng::stream(seed, "links"),
            weather,
            servers: BTreeMap::new(),
            cut: BTreeMap::new(),
            hasher: blake3::Hasher::new(),
            begun: Instant::now(),
        })))
    }

    pub fn join(&self, number: u64, server: &Arc<RaftJournal>, gone: &Arc<Gone>) {
        self.0.lock().servers.insert(number, (Arc::downgrade(server), gone.clone()));
    }

    pub fn cut(&self, from: u64, to: u64, how_long: Duration) {
        self.0.lock().cut.insert((from, to), Instant::now() + how_long);
    }

    /// From now on every message arrives, once and soon.
    pub fn calm(&self) {
        let mut inner = self.0.lock();
        let delay_max = inner.weather.delay_max.min(base::Duration::from_millis(5));
        inner.weather = Network { delay_max, lost: 0, twice: 0, late: 0 };
        inner.cut.clear();
    }

    /// Over everything that arrived so far, and when.
    pub fn hash(&self) -> blake3::Hash {
        self.0.lock().hasher.finalize()
    }

    fn fate(&self) -> Fate {
        let mut inner = self.0.lock();
        let weather = inner.weather.clone();
        let rng = &mut inner.rng;
        let micros = weather.delay_max.to_std().as_micros() as u64 + 1;
        let usual = Duration::from_micros(rng.below(micros));
        let late = (rng.below(1_000) < weather.late).then(|| Duration::from_millis(rng.below(LATE_MAX)));
        let lost = rng.below(1_000) < weather.lost;
        let twice = rng.below(1_000) < weather.twice;
        let again = twice.then(|| Duration::from_micros(rng.below(10 * micros)));
        Fate { delay: late.unwrap_or(usual), again, lost }
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.0.lock().cut.get(&(from, to)).is_some_and(|until| Instant::now() < *until)
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
        let at = inner.begun.elapsed().as_nanos() as u64;
        for number in [at, from, to] {
            inner.hasher.update(&number.to_le_bytes());
        }
        inner.hasher.update(message);
    }

    /// Carries one message there and its answer back.
    async fn carry(self: Arc<Web>, from: u64, to: u64, message: Bytes) -> Carried {
        assert!(message.len() <= MESSAGE_BYTES_MAX, "a message is too long");
        let Fate { delay, again, lost } = self.fate();
        if let Some(later) = again {
            let (web, message) = (self.clone(), message.clone());
            // Its second answer is for nobody.
            tokio::spawn(async move {
                sleep(delay + later).await;
                web.arrive(from, to, message).await;
            });
        }
        sleep(delay).await;
        if lost {
            return Carried::Nothing;
        }
        let carried = self.arrive(from, to, message).await;
        let Fate { delay, lost, .. } = self.fate();
        sleep(delay).await;
        if lost || self.is_cut(to, from) { Carried::Nothing } else { carried }
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
        // In a task of its own: a message arrives also when its sender has given up, or died.
        let carried = tokio::spawn(self.web.clone().carry(self.from, node, message));
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

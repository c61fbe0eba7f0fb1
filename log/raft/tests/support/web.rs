//! The links between the servers of a test, in memory: cut, slow, losing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::Rng;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use raft::{MESSAGE_BYTES_MAX, PeerError, Peers, RaftJournal};
use tokio::time::sleep;

#[derive(Default)]
pub struct Web {
    servers: Mutex<BTreeMap<u64, Weak<RaftJournal>>>,
    /// From whom nothing reaches whom.
    cut: Mutex<BTreeSet<(u64, u64)>>,
    weather: Mutex<Weather>,
    /// Of every message, and where it went.
    copies: Mutex<Option<Vec<(u64, Bytes)>>>,
}

struct Weather {
    rng: Rng,
    /// A message takes up to this long.
    delay: Duration,
    /// Of 1,000 messages, as many are lost; of their answers too.
    lost: u64,
}

impl Default for Weather {
    fn default() -> Weather {
        Weather { rng: Rng::new(1), delay: Duration::ZERO, lost: 0 }
    }
}

/// One server's way to the others.
pub struct Links {
    web: Arc<Web>,
    node: u64,
}

impl Web {
    pub fn links(self: &Arc<Web>, node: u64) -> Arc<Links> {
        Arc::new(Links { web: self.clone(), node })
    }

    pub fn join(&self, node: u64, server: &Arc<RaftJournal>) {
        self.servers.lock().insert(node, Arc::downgrade(server));
    }

    /// Nothing reaches it any more.
    pub fn leave(&self, node: u64) {
        self.servers.lock().remove(&node);
    }

    pub fn cut(&self, from: u64, to: u64) {
        self.cut.lock().insert((from, to));
    }

    /// Nothing passes between these and all others.
    pub fn part(&self, some: &[u64]) {
        let all: Vec<u64> = self.servers.lock().keys().copied().collect();
        for one in some {
            for other in all.iter().filter(|other| !some.contains(other)) {
                self.cut(*one, *other);
                self.cut(*other, *one);
            }
        }
    }

    pub fn heal(&self) {
        self.cut.lock().clear();
    }

    /// Keeps a copy of every message from now on.
    pub fn copy(&self) {
        *self.copies.lock() = Some(Vec::new());
    }

    /// The copies so far, and no more from now on.
    pub fn copies(&self) -> Vec<(u64, Bytes)> {
        self.copies.lock().take().unwrap_or_default()
    }

    pub fn weather(&self, seed: u64, delay: Duration, lost: u64) {
        *self.weather.lock() = Weather { rng: Rng::new(seed), delay, lost };
    }

    /// Where a message goes, unless it is lost.
    async fn carry(&self, from: u64, to: u64) -> Option<Arc<RaftJournal>> {
        let (delay, lost) = {
            let mut weather = self.weather.lock();
            let micros = weather.delay.as_micros() as u64 + 1;
            let delay = weather.rng.below(micros);
            (Duration::from_micros(delay), weather.rng.below(1000) < weather.lost)
        };
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if lost || self.cut.lock().contains(&(from, to)) {
            return None;
        }
        self.servers.lock().get(&to).and_then(Weak::upgrade)
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
        assert!(message.len() <= MESSAGE_BYTES_MAX);
        let (web, from) = (self.web.clone(), self.node);
        web.copies.lock().iter_mut().for_each(|copies| copies.push((node, message.clone())));
        async move {
            let Some(server) = web.carry(from, node).await else {
                sleep(patience).await;
                return Err(PeerError::TimedOut(patience));
            };
            let answer = server.answer(message).await?;
            drop(server);
            match web.carry(node, from).await {
                Some(_) => Ok(answer),
                None => {
                    sleep(patience).await;
                    Err(PeerError::TimedOut(patience))
                }
            }
        }
        .boxed()
    }
}

//! Simulated nodes: they register, send heartbeats and, if they are live, fetch their allocations and report that they
//! run, over a few connections of the node RPC.

mod live;
mod node;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use base::{Rng, Uuid};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use wire::messages::method;
use wire::yamux::{MuxError, STREAMS_MAX};
use wire::{Bytes, Connection, Handler, Limits, Opening, RemoteError, RpcError, RpcSecurity};

use crate::job::{Names, RACKS};
use crate::options::ClusterOptions;
use crate::stop::Stop;
use node::{BeatAnswer, Credential, description, registration};

/// A call that takes longer has failed. A live node's call for news is held for less.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(60);

/// Calls on one connection at the same time, a little less than it may have streams; others wait for their turn. Their
/// streams stay open for the calls after them: one that is closed may live on at the server for a while, and counts there.
const CALLS_PER_CONNECTION: usize = STREAMS_MAX - 32;

/// Live nodes that share a connection, each with a call that is held: some less than it may have calls.
const LIVE_PER_CONNECTION: u32 = 400;

/// Nodes that share one and only send heartbeats.
const BARE_PER_CONNECTION: u32 = 2_000;

/// Registrations at the same time.
const AT_ONCE: usize = 128;

/// Before a call is tried again on a connection that has begun more calls than its peer has looked at.
const BUSY: Duration = Duration::from_millis(5);

/// After a heartbeat that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Servers have nothing to ask of nodes that run nothing.
struct NoRequests;

impl Handler for NoRequests {
    async fn call(&self, _: &Connection, method: &str, _: Bytes) -> Result<Vec<u8>, RemoteError> {
        Err(format!("{method}: a node of a benchmark answers no calls").into())
    }

    async fn stream(&self, _: &Connection, method: &str, opening: Opening) -> Result<(), RpcError> {
        opening.refuse(format!("{method}: a node of a benchmark answers no calls")).await
    }
}

/// Whether jobs of a run fit on the node of this number.
pub(crate) fn is_suitable(number: u32) -> bool {
    (number % RACKS).is_multiple_of(2)
}

/// What all nodes have in common.
pub(crate) struct Shared {
    pub region: String,
    /// `None`: as the server grants.
    beat_every: Option<Duration>,
    connections: Vec<SharedConnection>,
    pub counts: FleetCounts,
}

struct SharedConnection {
    connection: Connection,
    turns: Semaphore,
}

#[derive(Debug, Default)]
pub(crate) struct FleetCounts {
    pub beats: AtomicU64,
    pub beat_errors: AtomicU64,
    /// Calls of live nodes: for news, for allocations, reports.
    pub calls: AtomicU64,
    pub call_errors: AtomicU64,
    /// Of all the errors.
    first_error: Mutex<Option<String>>,
}

/// Nodes that are registered. They fall silent when it is dropped.
pub(crate) struct Fleet {
    pub shared: Arc<Shared>,
    /// Their ids, in the order of their numbers.
    pub ids: Vec<Uuid>,
    running: Vec<AbortHandle>,
    tasks: JoinSet<()>,
}

impl Fleet {
    /// Connects, and has no nodes yet.
    pub(crate) async fn connect(
        rpc: &str,
        region: String,
        options: &ClusterOptions,
    ) -> anyhow::Result<Fleet> {
        let addresses = tokio::net::lookup_host(rpc).await.with_context(|| format!("-rpc: {rpc}"))?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let address = *addresses.first().ok_or_else(|| anyhow!("-rpc: {rpc} has no address"))?;
        let each = if options.live { LIVE_PER_CONNECTION } else { BARE_PER_CONNECTION };
        let least = options.nodes.div_ceil(each);
        let mut connections = Vec::new();
        for _ in 0..options.rpc_connections.max(least).min(options.nodes.max(1)) {
            let limits = Limits { idle_streams_max: CALLS_PER_CONNECTION, ..Limits::NODE };
            let dialed =
                wire::dial(address, &RpcSecurity::default(), Arc::new(NoRequests), limits, CALL_MAX).await;
            let connection = dialed.with_context(|| format!("-rpc: {rpc}"))?;
            connections.push(SharedConnection { connection, turns: Semaphore::new(CALLS_PER_CONNECTION) });
        }
        let (beat_every, counts) = (options.beat_every, FleetCounts::default());
        let shared = Arc::new(Shared { region, beat_every, connections, counts });
        Ok(Fleet { shared, ids: Vec::new(), running: Vec::new(), tasks: JoinSet::new() })
    }

    /// Registers all nodes of the run, some at a time. On an error those that were registered are in `ids`.
    pub(crate) async fn register(
        &mut self,
        names: &Names,
        options: &ClusterOptions,
        stop: &Stop,
    ) -> anyhow::Result<()> {
        // Not of the seed: two runs must not have the same nodes.
        let mut ids = Rng::stream(options.seed, &names.pool);
        self.ids = (0..options.nodes).map(|_| ids.uuid()).collect();
        let mut registering = JoinSet::new();
        let mut registered = Vec::with_capacity(self.ids.len());
        let mut rest = self.ids.iter().zip(0..options.nodes);
        loop {
            while registering.len() < AT_ONCE
                && !stop.is_set()
                && let Some((id, number)) = rest.next()
            {
                let document = description(*id, ids.uuid(), number, &names.pool, options);
                registering.spawn(bring_up(Arc::clone(&self.shared), document, number));
            }
            match registering.join_next().await {
                None => break,
                Some(done) => registered.push(done??),
            }
        }
        registered.sort_by_key(|node| node.number);
        for node in registered {
            let shared = Arc::clone(&self.shared);
            let phase = ids.below(1_000);
            let live = options.live;
            self.running.push(self.tasks.spawn(async move {
                let beats = beat(Arc::clone(&shared), &node, phase);
                match live {
                    true => tokio::join!(beats, live::run(&shared, &node)).0,
                    false => beats.await,
                }
            }));
        }
        Ok(())
    }

    /// These nodes fall silent.
    pub(crate) fn fail(&mut self, ids: &[u128]) {
        for (task, id) in self.running.iter().zip(&self.ids) {
            if ids.contains(&id.as_u128()) {
                task.abort();
            }
        }
    }

    /// All nodes fall silent.
    pub(crate) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }
}

/// A node that is registered and ready.
pub(crate) struct Node {
    pub number: u32,
    pub id: String,
    pub secret: String,
    credential: Credential,
    ttl: Duration,
}

impl Shared {
    /// Calls a method for the node of this number. Where a connection takes no more calls at once, this one comes later.
    pub(crate) async fn call_raw(&self, number: u32, method: &str, body: &[u8]) -> Result<Bytes, RpcError> {
        let SharedConnection { connection, turns } =
            &self.connections[number as usize % self.connections.len()];
        let _turn = turns.acquire().await.expect("it is never closed");
        let until = Instant::now() + CALL_MAX;
        loop {
            match connection.call_raw(method, body, CALL_MAX).await {
                Err(error) if is_busy(&error) && Instant::now() < until => sleep(BUSY).await,
                done => return done,
            }
        }
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        number: u32,
        method: &str,
        request: &impl Serialize,
    ) -> Result<T, RpcError> {
        let body = msgpack::to_vec(request)?;
        Ok(msgpack::from_slice(&self.call_raw(number, method, &body).await?)?)
    }

    /// Counts an error, and keeps the first one.
    pub(crate) fn failed(&self, count: &AtomicU64, error: &RpcError) {
        count.fetch_add(1, Ordering::Relaxed);
        let mut first = self.counts.first_error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| error.to_string());
    }

    pub(crate) fn first_error(&self) -> Option<String> {
        self.counts.first_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn is_busy(error: &RpcError) -> bool {
    let RpcError::Io(error) = error else { return false };
    error.get_ref().and_then(|error| error.downcast_ref()) == Some(&MuxError::Busy)
}

async fn bring_up(shared: Arc<Shared>, document: model::document::Node, number: u32) -> anyhow::Result<Node> {
    let (id, secret) = (document.id.clone(), document.secret_id.clone());
    let credential = Credential::new(&id, &secret, &shared.region)?;
    let request = registration(document, &shared.region);
    let _: BeatAnswer =
        shared.call(number, method::NODE_REGISTER, &request).await.context("registering a node")?;
    let ttl = credential.beat(&shared, number, &id).await.context("a first heartbeat")?;
    Ok(Node { number, id, secret, credential, ttl })
}

/// Sends heartbeats until it is dropped, the first at its own part of the first interval.
async fn beat(shared: Arc<Shared>, node: &Node, phase: u64) {
    // As late as it is still safe.
    let interval = |ttl: Duration| shared.beat_every.unwrap_or(ttl.mul_f64(0.8));
    let mut ttl = node.ttl;
    let mut next = Instant::now() + interval(ttl).mul_f64(phase as f64 / 1_000.0);
    loop {
        sleep_until(next).await;
        match node.credential.beat(&shared, node.number, &node.id).await {
            Ok(granted) => {
                shared.counts.beats.fetch_add(1, Ordering::Relaxed);
                ttl = granted;
                next += interval(ttl);
            }
            Err(error) => {
                shared.failed(&shared.counts.beat_errors, &error);
                next = Instant::now() + RETRY;
            }
        }
    }
}

//! The journal that servers run on.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use base::{Index, Term};
use futures_util::FutureExt;
use journal::frame::BATCH_BYTES_MAX;
use journal::store::{self, Directory, Fatal, Store, StoreError};
use journal::{EncodedBatch, Freshness, Journal, KeepError, ProposeError, ReadError, Sink, TellIndex};
use model::Image;
use openraft::BasicNode;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::task::{JoinError, unconstrained};
use tokio::time::Instant;

use crate::config::{Data, Timings, Types};
use crate::gate::Gate;
use crate::leadership;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::network::Network;
use crate::peers::Peers;
use crate::reads::Reads;
use crate::runtime::Runtime;
use crate::teller::{self, News, Teller};

pub(crate) type Raft = openraft::Raft<Types, Machine>;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the log lives. Made if it is not there; used by one process at a time.
    pub dir: PathBuf,
    /// This server's number among the servers, for ever.
    pub node: u64,
    /// Where other servers reach this one.
    pub address: String,
    /// See [`store::Settings::segment_bytes`].
    pub segment_bytes: u64,
    pub found: Found,
    pub timings: Timings,
    /// Chance of everything in here that is left to chance: how long this server waits before it asks for votes.
    pub seed: u64,
}

/// What a server does that has no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It founds a cluster of itself at once.
    Alone,
    /// It waits until [`RaftJournal::bootstrap`] is called, here or elsewhere, or until a leader adds it.
    Wait,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the log belongs to other servers ({members:?}): this one is number {node}")]
    OtherServer { node: u64, members: Vec<u64> },
    #[error("start consensus: {0}")]
    Consensus(String),
    #[error("start a thread of the log: {0}")]
    Thread(std::io::Error),
    #[error("the runtime ended while the log was opened")]
    Runtime(#[from] JoinError),
}

/// A [`Journal`] kept by raft in the segment store. A server that founds a cluster of itself leads it within moments.
pub struct RaftJournal {
    pub(crate) raft: Raft,
    pub(crate) store: Arc<Store>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) network: Network,
    pub(crate) timings: Timings,
    /// When this server last heard from the leader it follows.
    pub(crate) heard: Mutex<Option<Instant>>,
    /// Before this no vote is given: until then there may be a leader that counts on having been heard by this server
    /// before it was started anew.
    pub(crate) votes_from: Instant,
    reads: Reads,
    news: Sender<News>,
    /// Taken by the first shutdown.
    teller: Mutex<Option<Telling>>,
    runtime: Handle,
}

/// Whoever calls the sink.
enum Telling {
    Thread(thread::JoinHandle<()>),
}

/// What a journal is made of besides its store.
struct Parts {
    gate: Arc<Gate>,
    news: Sender<News>,
    teller: Telling,
    fatal: Fatal,
}

impl RaftJournal {
    /// Recovers the log, hands every batch known to be committed to `sink`, and takes part in elections.
    ///
    /// Consensus runs on `runtime`. The sink is called from a thread of the log's own; on an orderly
    /// [`RaftJournal::shutdown`] it is dropped without a further call. If it panics, the process ends.
    pub async fn open(
        settings: Settings,
        peers: Arc<dyn Peers>,
        sink: impl Sink,
        runtime: &Handle,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let fatal: Fatal = Arc::new(store::abort);
        let (dir, segment_bytes, at) = (settings.dir.clone(), settings.segment_bytes, fatal.clone());
        let opened = runtime.spawn_blocking(move || {
            let files = Arc::new(Directory::open(&dir)?);
            Store::open(files, store::Settings { segment_bytes }, at)
        });
        let store = Arc::new(opened.await??);
        let gate = Arc::new(Gate::new());
        let (news, told) = teller::news();
        let teller = spawn_teller(Teller::new(sink, gate.clone(), fatal.clone()), told)?;
        let parts = Parts { gate, news, teller, fatal };
        RaftJournal::run(settings, peers, store, parts, runtime).await
    }

    async fn run(
        settings: Settings,
        peers: Arc<dyn Peers>,
        store: Arc<Store>,
        parts: Parts,
        runtime: &Handle,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let Parts { gate, news, teller, fatal } = parts;
        let timings = settings.timings.clone();
        let network = Network { node: settings.node, peers, patience: timings.patience() };
        let quiet = if store.vote().is_some() { timings.election.end } else { Default::default() };
        let votes_from = Instant::now() + quiet;
        let machine = Machine::new(news.clone());
        let started = start(settings, network.clone(), LogStore::new(store.clone()), machine);
        let raft = match runtime.spawn(started).await? {
            Ok(raft) => raft,
            Err(error) => {
                // Tasks of the library may hold the store a moment longer, but the directory is free at once.
                runtime.spawn_blocking(move || store.close()).await?;
                return Err(error);
            }
        };
        runtime.spawn(leadership::watch(raft.clone(), gate.clone(), news.clone(), fatal));
        runtime.spawn(leadership::watch_lease(raft.clone(), gate.clone(), timings.clone()));
        runtime.spawn(leadership::mend(raft.clone(), gate.clone(), timings.clone()));
        let reads = Reads::start(&raft, &store, runtime);
        Ok(Arc::new(RaftJournal {
            raft,
            store,
            gate,
            network,
            timings,
            heard: Mutex::new(None),
            votes_from,
            reads,
            news,
            teller: Mutex::new(Some(teller)),
            runtime: runtime.clone(),
        }))
    }

    /// Stops taking part, writes what is queued, and lets go of the directory. Proposals in flight may or may not
    /// be found committed at the next start.
    pub async fn shutdown(&self) {
        if self.raft.shutdown().await.is_err() {
            tracing::warn!("consensus had ended before it was asked to");
        }
        // The teller may have ended by itself, after a halt.
        self.news.send(News::Stop).await.unwrap_or(());
        let (teller, store) = (self.teller.lock().take(), self.store.clone());
        let closed = tokio::task::spawn_blocking(move || {
            store.close();
            // A panic in there ended the process already.
            match teller {
                Some(Telling::Thread(teller)) => drop(teller.join()),
                None => {}
            }
        });
        if closed.await.is_err() {
            tracing::warn!("the runtime ended while the log was closed");
        }
    }
}

impl Drop for RaftJournal {
    /// As [`RaftJournal::shutdown`], without waiting for it.
    fn drop(&mut self) {
        if self.teller.lock().is_some() {
            let raft = self.raft.clone();
            // The files are closed by whoever is the last to hold them.
            self.runtime.spawn(async move { raft.shutdown().await });
        }
    }
}

fn spawn_teller<S: Sink>(teller: Teller<S>, told: Receiver<News>) -> Result<Telling, OpenError> {
    let thread = thread::Builder::new().name("log-sink".into());
    thread.spawn(move || teller.run(told)).map(Telling::Thread).map_err(OpenError::Thread)
}

/// Starts consensus, and founds a cluster if this server is to be one by itself.
async fn start(
    settings: Settings,
    network: Network,
    log: LogStore,
    machine: Machine,
) -> Result<Raft, OpenError> {
    let (node, found) = (settings.node, settings.found);
    let config = Arc::new(settings.timings.config().map_err(consensus)?);
    let raft = Runtime::scope(settings.seed, Raft::new(node, config, network, log, machine));
    let raft = raft.await.map_err(consensus)?;
    if !raft.is_initialized().await.map_err(consensus)? {
        if found == Found::Alone {
            let alone = BTreeMap::from([(node, BasicNode { addr: settings.address })]);
            raft.initialize(alone).await.map_err(consensus)?;
        }
        return Ok(raft);
    }
    let members = raft.with_raft_state(|state| state.membership_state.effective().clone());
    let voters: Vec<u64> = members.await.map_err(consensus)?.voter_ids().collect();
    if found == Found::Alone && !voters.contains(&node) {
        raft.shutdown().await?;
        return Err(OpenError::OtherServer { node, members: voters });
    }
    if voters == [node] {
        // Nobody else can be leading, so there is no use in waiting for a heartbeat.
        raft.trigger().elect(false).await.map_err(consensus)?;
    }
    Ok(raft)
}

fn consensus(error: impl std::fmt::Display) -> OpenError {
    OpenError::Consensus(error.to_string())
}

impl Journal for RaftJournal {
    fn propose(&self, term: Term, batch: EncodedBatch) -> Result<(), ProposeError> {
        let bytes = batch.bytes().len();
        if bytes > BATCH_BYTES_MAX {
            return Err(ProposeError::TooLarge { bytes, max: BATCH_BYTES_MAX });
        }
        if self.store.is_full() {
            return Err(ProposeError::DiskFull);
        }
        self.gate.pass(term, &batch, |ticket| {
            let write = self.raft.write(Data::proposed(batch.clone())).with_leader(term.0).responder(ticket);
            // It is only put into a queue, which takes no waiting unless the queue is full. A write that is dropped
            // while it waits was not made.
            match unconstrained(write.into_future()).now_or_never() {
                Some(Ok(())) => Ok(()),
                Some(Err(stopped)) => Err(ProposeError::Halted(stopped.to_string())),
                None => Err(ProposeError::Full),
            }
        })
    }

    fn read(&self, from: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let from = from.max(self.horizon());
        let batches = self.store.batches(from, self.committed(), max_bytes);
        batches.map_err(|why| ReadError::Failed { index: from, why: why.to_string() })
    }

    fn committed(&self) -> Index {
        self.gate.committed()
    }

    /// The log is kept whole.
    fn horizon(&self) -> Index {
        Index(1)
    }

    fn keep(&self, _: Image) -> Result<(), KeepError> {
        Err(KeepError::Failed("the store keeps no images".into()))
    }

    fn unkept_bytes(&self) -> u64 {
        0
    }

    fn read_index(&self, freshness: Freshness, tell: TellIndex) {
        self.reads.ask(freshness, tell);
    }
}

//! The journal that servers run on.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use base::{Index, Term};
use futures_util::FutureExt;
use journal::frame::BATCH_BYTES_MAX;
use journal::store::{self, Directory, Store, StoreError};
use journal::{EncodedBatch, Freshness, Journal, KeepError, ProposeError, ReadError, Sink, TellIndex};
use model::Image;
use openraft::BasicNode;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::Fatal;
use openraft::metrics::RaftServerMetrics;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::{JoinError, unconstrained};

use crate::config::{self, Data, Types};
use crate::gate::Gate;
use crate::log_store::LogStore;
use crate::machine::Machine;
use crate::network::NoPeers;
use crate::teller::{self, News, Standing};

type Raft = openraft::Raft<Types, Machine>;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the log lives. Made if it is not there; used by one process at a time.
    pub dir: PathBuf,
    /// This server's number among the servers, for ever.
    pub node: u64,
    /// Where other servers reach this one. Written down when the cluster is founded, on the first start.
    pub address: String,
    /// See [`store::Settings::segment_bytes`].
    pub segment_bytes: u64,
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

/// Who leads and who takes part, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub node: u64,
    pub term: Term,
    pub leader: Option<u64>,
    pub members: Vec<Member>,
    /// The last batch that is committed here.
    pub committed: Index,
    /// Raft's own number of the last entry, committed or not.
    pub last_entry: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: u64,
    pub address: String,
    pub voter: bool,
}

/// A [`Journal`] kept by raft in the segment store. A server that founds a cluster leads it within moments.
pub struct RaftJournal {
    raft: Raft,
    store: Arc<Store>,
    gate: Arc<Gate>,
    news: Sender<News>,
    /// Taken by the first shutdown.
    teller: Mutex<Option<JoinHandle<()>>>,
    runtime: Handle,
}

impl RaftJournal {
    /// Recovers the log, hands every batch known to be committed to `sink`, and takes part in elections.
    ///
    /// Consensus runs on `runtime`. The sink is called from a thread of the log's own; on an orderly
    /// [`RaftJournal::shutdown`] it is dropped without a further call. If it panics, the process ends.
    pub async fn open(
        settings: Settings,
        sink: impl Sink,
        runtime: &Handle,
    ) -> Result<Arc<RaftJournal>, OpenError> {
        let (dir, segment_bytes) = (settings.dir.clone(), settings.segment_bytes);
        let opened = runtime.spawn_blocking(move || {
            let files = Arc::new(Directory::open(&dir)?);
            Store::open(
                files,
                store::Settings {
                    segment_bytes,
                    retention: store::RETENTION,
                    driving: store::Driving::Threads,
                },
                Arc::new(store::abort),
            )
        });
        let store = Arc::new(opened.await??);
        let gate = Arc::new(Gate::new());
        let (news, teller) = teller::spawn(sink, gate.clone()).map_err(OpenError::Thread)?;
        let (log, machine) = (LogStore::new(store.clone()), Machine::new(news.clone()));
        let raft = match runtime.spawn(start(settings, log, machine)).await? {
            Ok(raft) => raft,
            Err(error) => {
                // Tasks of the library may hold the store a moment longer, but the directory is free at once.
                runtime.spawn_blocking(move || store.close()).await?;
                return Err(error);
            }
        };
        runtime.spawn(watch(raft.clone(), gate.clone(), news.clone()));
        let (teller, runtime) = (Mutex::new(Some(teller)), runtime.clone());
        Ok(Arc::new(RaftJournal { raft, store, gate, news, teller, runtime }))
    }

    pub fn status(&self) -> Status {
        let metrics = self.raft.metrics().borrow_watched().clone();
        let members = metrics.membership_config.membership();
        let voters: Vec<u64> = members.voter_ids().collect();
        let member = |(node, at): (&u64, &BasicNode)| Member {
            node: *node,
            address: at.addr.clone(),
            voter: voters.contains(node),
        };
        Status {
            node: metrics.id,
            term: Term(metrics.current_term),
            leader: metrics.current_leader,
            members: members.nodes().map(member).collect(),
            committed: self.gate.committed(),
            last_entry: metrics.last_log_index,
        }
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
            teller.map(JoinHandle::join)
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

/// Starts consensus. The first time, this server founds a cluster of itself.
async fn start(settings: Settings, log: LogStore, machine: Machine) -> Result<Raft, OpenError> {
    let node = settings.node;
    let timings = Arc::new(config::timings().validate().map_err(consensus)?);
    let raft = Raft::new(node, timings, NoPeers, log, machine).await.map_err(consensus)?;
    if !raft.is_initialized().await.map_err(consensus)? {
        let alone = BTreeMap::from([(node, BasicNode { addr: settings.address })]);
        raft.initialize(alone).await.map_err(consensus)?;
        return Ok(raft);
    }
    let members = raft.with_raft_state(|state| state.membership_state.effective().clone());
    let voters: Vec<u64> = members.await.map_err(consensus)?.voter_ids().collect();
    if !voters.contains(&node) {
        raft.shutdown().await?;
        return Err(OpenError::OtherServer { node, members: voters });
    }
    if voters == [node] {
        // Nobody else can be leading, so there is no use in waiting for a heartbeat.
        raft.trigger().elect(false).await.map_err(consensus)?;
    }
    Ok(raft)
}

/// Passes every change of leadership on, until consensus ends.
async fn watch(raft: Raft, gate: Arc<Gate>, news: Sender<News>) {
    let node = *raft.node_id();
    let (mut votes, mut refusals) = (raft.server_metrics(), gate.refusals());
    let mut last = None;
    loop {
        let refused = *refusals.borrow_and_update();
        let standing = standing(&votes.borrow_watched(), node, refused);
        if last != Some(standing) && news.send(News::Standing(standing)).await.is_err() {
            return;
        }
        last = Some(standing);
        tokio::select! {
            changed = votes.changed() => if changed.is_err() { break },
            changed = refusals.changed() => if changed.is_err() { break },
        }
    }
    let ended = raft.metrics().borrow_watched().running_state.clone();
    match ended {
        Ok(()) | Err(Fatal::Stopped) => {}
        Err(Fatal::Panicked) => store::abort("consensus panicked"),
        // Nobody listens any more if this is a shutdown.
        Err(Fatal::StorageError(why)) => news.send(News::Halted(why.to_string())).await.unwrap_or(()),
    }
}

/// A term in which a proposal was refused after it was taken is over for the proposer: what it decided next stands
/// on what was refused. A cluster of one never refuses.
fn standing(votes: &RaftServerMetrics<Types>, node: u64, refused: u64) -> Standing {
    let (term, leader) = (votes.vote.leader_id.term, votes.current_leader);
    Standing { term: Term(term), leader, mine: leader == Some(node) && refused < term }
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
            let write = self.raft.write(Data(batch.clone())).with_leader(term.0).responder(ticket);
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

    fn read_index(&self, _: Freshness, tell: TellIndex) {
        tell(Ok(self.gate.committed()));
    }
}

//! The journal that servers run on.

use std::fmt;
use std::future::IntoFuture;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Index, Term};
use futures_util::FutureExt;
use journal::frame::BATCH_BYTES_MAX;
use journal::store::{Files, HistoryFile, HistoryStatus, KeptSpan, Retention, Store, StoreError};
use journal::{EncodedBatch, Freshness, IndexCallback, Journal, KeepError, ProposeError, ReadError};
use model::Image;
use model::event::ObjectKinds;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::task::{JoinError, unconstrained};
use tokio::time::Instant;

use crate::config::{Data, Timings, Types};
use crate::driving::{Blocking, Life, Tasks, Workers};
use crate::images::Arrival;
use crate::machine::Machine;
use crate::network::Network;
use crate::notifier::News;
use crate::proposals::Proposals;
use crate::reads::Reads;
use crate::since_image::{SinceImage, Tail};

pub(crate) type Raft = openraft::Raft<Types, Machine>;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the log lives. Made if it is not there; used by one process at a time.
    pub dir: PathBuf,
    /// This server's number among the servers, for ever.
    pub node: u64,
    /// Where other servers reach this one.
    pub address: String,
    /// See [`journal::store::Settings::segment_bytes`].
    pub segment_bytes: u64,
    /// How much history is kept; [`journal::store::RETENTION`] by default.
    pub retention: Retention,
    /// Where history goes that the log does not keep.
    pub archive: Option<Archive>,
    /// What is kept of history that is neither in the log nor archived.
    pub keep: Option<Keep>,
    /// What raft keeps for followers that are a little behind; [`crate::TAIL`] by default.
    pub tail: Tail,
    pub found: Found,
    pub timings: Timings,
    /// The seed of all randomness in here: how long this server waits before it starts an election.
    pub seed: u64,
}

/// A place for old history, compressed; see [`journal::store::ArchiveSettings`].
#[derive(Clone, Debug)]
pub struct Archive {
    pub place: ArchivePlace,
    pub max_bytes: Option<u64>,
}

/// What is kept of history that leaves; see [`journal::store::KeepSettings`].
#[derive(Clone, Debug)]
pub struct Keep {
    /// Made when something is to be kept; used by one process at a time.
    pub dir: PathBuf,
    pub kinds: ObjectKinds,
    pub max_bytes: u64,
}

#[derive(Clone)]
pub enum ArchivePlace {
    /// Made if it is not there; used by one process at a time.
    Directory(PathBuf),
    /// Files that nobody else writes to.
    Files(Arc<dyn Files>),
}

impl fmt::Debug for ArchivePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchivePlace::Directory(path) => write!(f, "{}", path.display()),
            ArchivePlace::Files(_) => f.write_str("files elsewhere"),
        }
    }
}

/// What a server without a log does at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It founds a cluster of one server at once.
    Alone,
    /// It waits until [`RaftJournal::bootstrap`] is called, here or elsewhere, or until a leader adds it.
    Wait,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("open the archive of history in {path}", path = path.display())]
    Archive { path: PathBuf, source: StoreError },
    #[error("open the kept facts of history in {path}", path = path.display())]
    Kept { path: PathBuf, source: StoreError },
    #[error("the log belongs to other servers ({members:?}): this one is number {node}")]
    OtherServer { node: u64, members: Vec<u64> },
    #[error("start consensus: {0}")]
    Consensus(String),
    #[error("start a thread of the log: {0}")]
    Thread(std::io::Error),
    #[error("the runtime ended while the log was opened")]
    Runtime(#[from] JoinError),
}

/// A [`Journal`] kept by raft in the segment store. A server that founds a cluster of one leads it within milliseconds.
pub struct RaftJournal {
    pub(crate) raft: Raft,
    pub(crate) store: Arc<Store>,
    pub(crate) proposals: Arc<Proposals>,
    pub(crate) since_image: Arc<SinceImage>,
    pub(crate) tail: Tail,
    /// The image that a leader sends.
    pub(crate) arrival: Mutex<Option<Arrival>>,
    pub(crate) blocking: Blocking,
    pub(crate) network: Network,
    pub(crate) timings: Timings,
    /// When the leader that this server follows last contacted it.
    pub(crate) last_contact: Mutex<Option<Instant>>,
    /// Before this no vote is given or asked for: until then there may be a leader that relies on having contacted
    /// this server before it was started anew.
    pub(crate) votes_from: Instant,
    pub(crate) reads: Reads,
    pub(crate) news: Sender<News>,
    /// Taken by the first shutdown.
    pub(crate) workers: Mutex<Option<Workers>>,
    pub(crate) life: Life,
    /// They end with it.
    pub(crate) tasks: Tasks,
    pub(crate) runtime: Handle,
}

impl RaftJournal {
    /// Reads one sealed segment or one image again; see [`Store::scrub`]. Blocks.
    ///
    /// # Errors
    /// As there.
    pub fn scrub(&self) -> Result<Option<String>, StoreError> {
        self.store.scrub()
    }

    /// What is kept of history, and where.
    pub fn history(&self) -> HistoryStatus {
        self.store.history()
    }

    /// As [`Store::verify_history`]. Blocks.
    ///
    /// # Errors
    /// As there.
    pub fn verify_history(&self, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        self.store.verify_history(index)
    }

    /// As [`Store::export_history`]. Blocks.
    ///
    /// # Errors
    /// As there.
    pub fn export_history(&self, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        self.store.export_history(index)
    }

    /// As [`Store::verify_kept`]. Blocks.
    ///
    /// # Errors
    /// As there.
    pub fn verify_kept(&self, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        self.store.verify_kept(index)
    }

    /// As [`Store::export_kept`]. Blocks.
    ///
    /// # Errors
    /// As there.
    pub fn export_kept(&self, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        self.store.export_kept(index)
    }

    /// The index of the last batch in the log here, committed or not; zero before the first.
    pub fn last_index(&self) -> Index {
        self.store.last().map_or(Index::ZERO, |last| self.store.batch_at(last.index))
    }

    /// Leaves consensus, writes what is queued, and closes the directory. Proposals in flight may or may not
    /// be found committed at the next start.
    pub async fn shutdown(&self) {
        if self.raft.shutdown().await.is_err() {
            tracing::warn!("consensus had ended before it was asked to");
        }
        self.tasks.end();
        // The notifier may have ended by itself, after a halt.
        self.news.send(News::Stop).await.unwrap_or(());
        let workers = self.workers.lock().take();
        if let Some(workers) = workers {
            workers.end(self.store.clone()).await;
        }
    }
}

impl Drop for RaftJournal {
    /// As [`RaftJournal::shutdown`], without waiting for it. Driven by steps it is a crash: what is queued is lost.
    fn drop(&mut self) {
        let Some(workers) = self.workers.lock().take() else { return };
        workers.abandon(&self.life);
        let raft = self.raft.clone();
        // The last owner closes the files.
        self.runtime.spawn(async move { raft.shutdown().await });
    }
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
        self.proposals.pass(term, &batch, |ticket| {
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
        let from = if from == Index(0) { self.horizon() } else { from };
        let batches = self.store.batches(from, self.committed(), max_bytes);
        batches.map_err(|error| match error {
            StoreError::Compacted { from, oldest } => ReadError::Compacted { from, oldest },
            other => ReadError::Failed { index: from, why: other.to_string() },
        })
    }

    fn kept(&self, from: Index, until: Index, max_bytes: usize) -> Result<Vec<EncodedBatch>, ReadError> {
        let parts = self.store.kept(from, until, max_bytes);
        parts.map_err(|error| ReadError::Failed { index: from, why: error.to_string() })
    }

    fn kept_spans(&self) -> Vec<KeptSpan> {
        self.store.kept_spans()
    }

    fn committed(&self) -> Index {
        self.proposals.committed()
    }

    fn horizon(&self) -> Index {
        self.store.horizon()
    }

    fn keep(&self, image: Image) -> Result<(), KeepError> {
        self.keep_image(image)
    }

    fn unkept_bytes(&self) -> u64 {
        self.since_image.unkept()
    }

    fn read_index(&self, freshness: Freshness, callback: IndexCallback) {
        self.reads.ask(freshness, callback);
    }
}

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::Index;
use journal::{FrameError, Journal, ReadError};
use model::AllocId;
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

use crate::entries::Position;
use crate::follow::{Progress, Shared, follow};
use crate::index::EntityIndex;
use crate::transition::{Transition, Walk};

/// Why a history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("history's index: {0}")]
    Index(#[from] fjall::Error),
    #[error("history's directory: {0}")]
    Directory(#[from] std::io::Error),
    #[error("history's log: {0}")]
    Log(#[from] ReadError),
    #[error("history's log: {0}")]
    Batch(#[from] FrameError),
    /// Try again later.
    #[error("history is indexed up to {cursor} and does not reach {wanted} yet")]
    Behind { cursor: Index, wanted: Index },
    #[error("history is not kept any more: {0}")]
    Stopped(String),
}

/// The audit: every allocation's life, also after it was stopped or purged, as far back as the log is kept.
///
/// Calls block on the disk: make them from a thread that may.
pub struct History {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Removed with the last user.
    _temporary: Option<TempDir>,
}

impl History {
    /// Opens the index in `dir` and begins to follow the log in a thread of its own. Without a directory, the index
    /// goes with the server.
    ///
    /// # Errors
    /// The directory cannot be used or another process holds it. A damaged index is rebuilt.
    pub fn open(dir: Option<PathBuf>, journal: Arc<dyn Journal>) -> Result<Arc<History>, HistoryError> {
        let (dir, temporary) = match dir {
            Some(dir) => (dir, None),
            None => {
                let temporary = TempDir::with_prefix("sojourn-history-")?;
                (temporary.path().join("index"), Some(temporary))
            }
        };
        let shared = Arc::new(Shared {
            journal,
            index: EntityIndex::open(&dir)?,
            progress: Mutex::new(Progress::default()),
            work: Condvar::new(),
            moved: Condvar::new(),
        });
        let following = shared.clone();
        let thread =
            std::thread::Builder::new().name("history".to_string()).spawn(move || follow(&following))?;
        Ok(Arc::new(History { shared, thread: Mutex::new(Some(thread)), _temporary: temporary }))
    }

    /// Up to where the log is indexed.
    pub fn cursor(&self) -> Index {
        self.shared.progress.lock().cursor
    }

    /// The life of an allocation up to at least `at`, oldest first. Empty when the log never spoke of it.
    ///
    /// # Errors
    /// [`HistoryError::Behind`] when the index does not reach `at` within `patience`.
    pub fn transitions(
        &self,
        alloc: AllocId,
        at: Index,
        patience: Duration,
    ) -> Result<Vec<Transition>, HistoryError> {
        self.reach(at, patience)?;
        let positions = self.shared.index.events_of(alloc)?;
        let mut walk = Walk::of(alloc);
        // Events of one batch are neighbours: each batch is read once.
        for same in positions.chunk_by(|a, b| a.index == b.index) {
            self.read(&mut walk, same)?;
        }
        Ok(walk.transitions)
    }

    fn read(&self, walk: &mut Walk, same: &[Position]) -> Result<(), HistoryError> {
        let index = same[0].index;
        match self.shared.journal.read(index, 1) {
            Ok(batches) => {
                let batch = batches.first().filter(|batch| batch.index() == index);
                let batch = batch.ok_or(HistoryError::Stopped(format!("batch {index} is not in the log")))?;
                Ok(same.iter().try_for_each(|at| walk.add(batch, at.ordinal))?)
            }
            // What is no longer kept is left out; the rest is shown.
            Err(ReadError::Compacted { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn reach(&self, wanted: Index, patience: Duration) -> Result<(), HistoryError> {
        let until = Instant::now() + patience;
        let mut progress = self.shared.progress.lock();
        while progress.cursor < wanted {
            if let Some(why) = &progress.failed {
                return Err(HistoryError::Stopped(why.clone()));
            }
            self.shared.work.notify_one();
            if progress.closed || self.shared.moved.wait_until(&mut progress, until).timed_out() {
                return Err(HistoryError::Behind { cursor: progress.cursor, wanted });
            }
        }
        Ok(())
    }

    /// Ends the thread and makes the index durable. Also done when the last user drops it.
    pub fn shutdown(&self) {
        self.shared.progress.lock().closed = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of history had panicked before the shutdown");
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.shutdown();
    }
}

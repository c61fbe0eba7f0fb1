//! The segment store: entries and this server's own notes, appended, synced in groups, never rewritten.
//!
//! One thread writes. Whatever is queued while it syncs becomes the next group: one write, one `fdatasync`, then
//! the callbacks. Reads come from memory for the newest entries and from the files for the rest.
//!
//! The bytes are described in [`record`] and [`segment`], what happens after a crash in [`recovery`].

mod contents;
mod files;
mod reading;
mod record;
mod recovery;
mod segment;
mod spare;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use base::Index;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::frame::{BATCH_BYTES_MAX, EncodedBatch, FrameError};
use contents::Contents;
pub use contents::TAIL_BYTES;
pub use files::{Directory, File, Files};
use spare::Maker;
pub use writer::GROUP_BYTES_MAX;
use writer::{Op, Queue, Writer};

/// The usual length of a segment: twice the largest batch, and a fraction of a second to fill with zeros.
pub const SEGMENT_BYTES: u64 = 2 * BATCH_BYTES_MAX as u64;

/// Called, from the writer's thread, when the disk failed in a way that nobody can go on from. What was not
/// acknowledged by then never is.
pub type Fatal = Arc<dyn Fn(&str) + Send + Sync>;

/// Called from the writer's thread when what was asked for can no longer be lost. Must not block.
pub type Done = Box<dyn FnOnce() + Send>;

/// What the log and its place in it are called by raft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogId {
    pub index: u64,
    pub term: u64,
}

/// One entry of the replicated log. Indexes are raft's: 0, 1, 2 and so on, batches or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub index: u64,
    pub term: u64,
    pub payload: Payload,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    Batch(EncodedBatch),
    /// What a new leader writes to commit what it found.
    Blank,
    /// The consensus library's membership, as its adapter encodes it.
    Membership(Bytes),
}

impl Payload {
    /// In bytes.
    pub fn len(&self) -> usize {
        match self {
            Payload::Batch(batch) => batch.bytes().len(),
            Payload::Blank => 0,
            Payload::Membership(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The length of new segments; [`SEGMENT_BYTES`] but for tests. A larger record gets a larger segment.
    pub segment_bytes: u64,
}

/// What is wrong with the files of the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error("the log in {path} is in use by another process", path = path.display())]
    InUse { path: PathBuf },
    /// Something that was safely written is not there any more, or is something else.
    #[error("the log is damaged in segment {segment} at byte {offset}: {why}")]
    Damaged { segment: String, offset: u64, why: String },
    #[error("the log in segment {segment} at byte {offset} cannot be read: {source}")]
    Unreadable { segment: String, offset: u64, source: FrameError },
    #[error("the log in segment {segment} at byte {offset} cannot be read: {why}")]
    Newer { segment: String, offset: u64, why: String },
    /// The caller broke the order of the log.
    #[error("{0}")]
    OutOfOrder(String),
    #[error("the log has stopped")]
    Stopped,
}

impl StoreError {
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        move |source| StoreError::Io { doing, source }
    }
}

/// Reports and ends the process: what [`Fatal`] is outside of tests.
pub fn abort(why: &str) {
    tracing::error!(why, "the log cannot go on: ending the process so that nothing unsafe is acknowledged");
    eprintln!("sojourn: the log cannot go on: {why}");
    std::process::abort();
}

/// The log's files, open and recovered. Dropping it writes what is queued.
pub struct Store {
    shared: Arc<Shared>,
    maker: Maker,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    queue: Queue,
    contents: Mutex<Contents>,
}

impl Store {
    /// Reads every record, cuts a torn tail off, and starts the writer.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a record is bad that was safely written; nothing is changed then.
    pub fn open(files: Arc<dyn Files>, settings: Settings, fatal: Fatal) -> Result<Store, StoreError> {
        let recovered = recovery::recover(&*files)?;
        let shared = Arc::new(Shared { queue: Queue::default(), contents: Mutex::new(recovered.contents) });
        let spare_bytes = settings.segment_bytes.max(segment::len_for(record::size_with(0)));
        let (maker, spares) = spare::start(files.clone(), spare_bytes, fatal.clone())
            .map_err(StoreError::io("look for a spare segment"))?;
        let writer =
            Writer::new(files, spares, spare_bytes, shared.clone(), recovered.active, recovered.chain);
        let thread = std::thread::Builder::new().name("log-writer".into());
        let writer =
            thread.spawn(move || writer.run(&fatal)).map_err(StoreError::io("start the log's writer"))?;
        Ok(Store { shared, maker, writer: Mutex::new(Some(writer)) })
    }

    /// Takes entries that follow the last one. They can be read at once; `done` says when they are safe.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] when they do not follow; none of them is taken then.
    pub fn append(&self, entries: Vec<Entry>, done: Done) -> Result<(), StoreError> {
        let mut contents = self.shared.contents.lock();
        let before = contents.next;
        for entry in &entries {
            if let Some(why) = contents.refusal(entry) {
                contents.truncate(before);
                return Err(StoreError::OutOfOrder(why));
            }
            contents.push(entry.clone());
        }
        // Under the lock, so that the queue has the order of the contents.
        self.shared.queue.put(Op::Append { entries, done })
    }

    /// Makes the entries from `from` on void, those not yet written too. Until `done` is called, nothing else
    /// may be asked for.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] when one of them is committed.
    pub fn truncate(&self, from: u64, done: Done) -> Result<(), StoreError> {
        let committed = self.shared.contents.lock().committed;
        if committed.is_some_and(|committed| committed.index >= from) {
            return Err(StoreError::OutOfOrder(format!("entry {from} is committed and cannot be made void")));
        }
        self.shared.queue.put(Op::Truncate { from, done })
    }

    /// Notes for whom this server voted, in the consensus library's own form.
    pub fn save_vote(&self, vote: Bytes, done: Done) -> Result<(), StoreError> {
        self.shared.queue.put(Op::Vote { vote, done })
    }

    /// Notes that entries up to here are committed. It is written soon, and synced with the next group.
    pub fn save_committed(&self, upto: LogId) -> Result<(), StoreError> {
        if self.committed() >= Some(upto) {
            return Ok(());
        }
        self.shared.queue.put(Op::Committed { upto })
    }

    /// Notes that raft needs the entries up to here no more. They stay: history is made of them.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] beyond the last entry: that takes a snapshot, and a log that does not begin at 0.
    pub fn purge(&self, upto: LogId, done: Done) -> Result<(), StoreError> {
        if Some(upto) > self.last() {
            return Err(StoreError::OutOfOrder(format!(
                "entry {} is not in the log and cannot be purged",
                upto.index
            )));
        }
        self.shared.queue.put(Op::Purged { upto, done })
    }

    pub fn vote(&self) -> Option<Bytes> {
        self.shared.contents.lock().vote.clone()
    }

    pub fn committed(&self) -> Option<LogId> {
        self.shared.contents.lock().committed
    }

    pub fn purged(&self) -> Option<LogId> {
        self.shared.contents.lock().purged
    }

    /// The last entry, written or not.
    pub fn last(&self) -> Option<LogId> {
        self.shared.contents.lock().last()
    }

    /// The index of the last batch at or before an entry; 0 when there is none.
    pub fn batch_at(&self, raft_index: u64) -> Index {
        self.shared.contents.lock().batch_at(raft_index)
    }

    /// The disk has no space for another segment. What is accepted still fits into the one in use, within
    /// reason: refuse new writes now.
    pub fn is_full(&self) -> bool {
        self.maker.is_full()
    }

    /// Writes what is queued, ends the threads and lets go of the directory. From now on everything is refused but
    /// reads.
    pub fn close(&self) {
        self.maker.close();
        self.shared.queue.close();
        if let Some(writer) = self.writer.lock().take() {
            // Its panic was reported by the writer itself.
            let _ = writer.join();
        }
        self.maker.join();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

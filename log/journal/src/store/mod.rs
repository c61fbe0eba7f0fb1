//! The segment store: entries and this server's own notes, appended, synced in groups, never rewritten.
//!
//! One thread writes, or the caller of [`Store::step`]. Whatever is queued while it syncs becomes the next group: one write,
//! one `fdatasync`, then the callbacks. Reads come from memory for the newest entries and from the files for the rest.
//! Images of the state stand beside the segments; what they hold the outcome of may go, see [`Retention`].
//!
//! The bytes are described in [`record`], [`segment`] and [`image`], what happens after a crash in [`recovery`].

mod archive;
mod contents;
mod diagnosis;
mod files;
mod history_files;
mod image;
mod images;
mod kept_facts;
mod places;
mod position;
mod queue;
mod reader;
mod reading;
mod record;
mod recovery;
mod repair;
mod retention;
mod scan;
mod scrub;
mod segment;
#[cfg(feature = "simulation")]
pub mod simulated;
mod spare;
mod walk;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::Index;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::frame::{BATCH_BYTES_MAX, EncodedBatch, FrameError};
use archive::Archive;
pub use archive::{ArchiveSettings, ArchiveStatus, HISTORY_SUFFIX, HistoryFile, KEPT_SUFFIX, verify_file};
use contents::Contents;
pub use contents::TAIL_BYTES;
pub use files::{Directory, File, Files};
pub use history_files::HistoryStatus;
pub use image::ImageMeta;
use images::Images;
pub use images::{IMAGE_FILES_MAX, IMAGES_KEPT};
use kept_facts::Kept;
pub use kept_facts::{KeepSettings, KeptSpan, KeptStatus};
pub use queue::GROUP_BYTES_MAX;
use queue::{Op, Queue};
pub use reader::Reader;
pub use record::Chain;
pub use repair::{Damage, Repair, repair};
pub use retention::{RETENTION, Retention};
use spare::Maker;
use writer::{Stop, Writer};

/// The usual length of a segment, once there are some: twice the largest batch, and a fraction of a second to fill with zeros.
pub const SEGMENT_BYTES: u64 = 2 * BATCH_BYTES_MAX as u64;

/// Called, from the writer's thread, when the disk failed for good. What was not
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

#[derive(Clone)]
pub struct Settings {
    /// The usual length of segments; [`SEGMENT_BYTES`] but for tests. The first are shorter, and a larger record gets a larger segment.
    pub segment_bytes: u64,
    /// [`RETENTION`] by default.
    pub retention: Retention,
    /// Where segments go before they are removed; without it they are gone.
    pub archive: Option<ArchiveSettings>,
    /// What is kept of history that leaves all of these; without it nothing is.
    pub keep: Option<KeepSettings>,
    pub driving: Driving,
}

/// Who does the store's work.
#[derive(Clone)]
pub enum Driving {
    /// Threads of its own: one writes, one makes segments ahead.
    Threads,
    /// The caller of [`Store::step`]. `on_work` is called each time that there is something to do; it may come from any
    /// thread, and may call back.
    Steps { on_work: Arc<dyn Fn() + Send + Sync> },
}

/// What is wrong with the files of the log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error("the log in {path} is in use by another process", path = path.display())]
    InUse { path: PathBuf },
    /// Something that was safely written is not there any more, or is something else.
    #[error("the log is damaged in {} {file} at byte {offset}: {why}", noun(file))]
    Damaged { file: String, offset: u64, why: String },
    #[error("the log in segment {segment} at byte {offset} cannot be read: {source}")]
    Unreadable { segment: String, offset: u64, source: FrameError },
    #[error("the log in {} {file} at byte {offset} cannot be read: {why}", noun(file))]
    Newer { file: String, offset: u64, why: String },
    #[error("batch {from} is no longer kept: the oldest is {oldest}")]
    Compacted { from: Index, oldest: Index },
    /// As [`StoreError::Compacted`], in raft's indexes.
    #[error("entry {entry} is not in the log: it begins with entry {oldest}")]
    Removed { entry: u64, oldest: u64 },
    /// There is nothing to repair.
    #[error("nothing in the log is damaged")]
    Undamaged,
    /// The caller broke the order of the log.
    #[error("{0}")]
    OutOfOrder(String),
    #[error("the log has stopped")]
    Stopped,
}

/// What a file of the log is called in a sentence.
fn noun(file: &str) -> &'static str {
    match file {
        file if file.ends_with(".img") => "image",
        file if file.ends_with(KEPT_SUFFIX) || file == "kept.tmp" => "file of kept facts",
        file if file.ends_with(HISTORY_SUFFIX) || file.ends_with(".tmp") => "archived file",
        _ => "segment",
    }
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

/// The log's files, open and recovered. Dropping it writes what is queued, unless it is driven by steps: then what
/// was not written is lost, as in a crash, but for a [`Store::close`] before.
pub struct Store {
    shared: Arc<Shared>,
    /// None once it is closed.
    files: Mutex<Option<Arc<dyn Files>>>,
    retention: Retention,
    archive: Option<Archive>,
    kept: Option<Kept>,
    driver: Driver,
}

enum Driver {
    Threads { maker: Maker, writer: Mutex<Option<JoinHandle<()>>> },
    Steps { writer: Mutex<Option<Box<Writer>>>, full: Arc<AtomicBool>, on_work: Arc<dyn Fn() + Send + Sync> },
}

struct Shared {
    queue: Queue,
    contents: Mutex<Contents>,
    images: Mutex<Images>,
    /// Held while an image is kept, installed or read: one at a time.
    keeping: Mutex<()>,
    /// Held while a segment that was passed by is read.
    placing: Mutex<()>,
    /// Held while something is read only to see that it can be.
    scrubbed: Mutex<scrub::Progress>,
    fatal: Fatal,
}

impl Shared {
    fn new(contents: Contents, images: Images, fatal: Fatal) -> Shared {
        Shared {
            queue: Queue::default(),
            contents: Mutex::new(contents),
            images: Mutex::new(images),
            keeping: Mutex::default(),
            placing: Mutex::default(),
            scrubbed: Mutex::default(),
            fatal,
        }
    }

    /// The disk failed for good.
    fn die(&self, why: &str) {
        self.queue.close();
        (self.fatal)(why);
    }
}

impl Store {
    /// Reads the images' tables and every record that no image holds the outcome of, cuts a torn tail off, and starts
    /// the writer.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when a record is bad that was safely written; nothing is changed then.
    pub fn open(files: Arc<dyn Files>, settings: Settings, fatal: Fatal) -> Result<Store, StoreError> {
        let recovered = recovery::recover(&*files)?;
        let archive = settings.archive.map(|settings| Archive::open(settings, archive::WHOLE)).transpose()?;
        let kept = settings.keep.map(Kept::open).transpose()?;
        let shared = Arc::new(Shared::new(recovered.contents, recovered.images, fatal.clone()));
        let usual = settings.segment_bytes.max(segment::len_for(0, record::size_with(0)));
        let spare_bytes = segment::bytes_of(recovered.resume.number + 1, usual);
        let writer = |spares| Writer::new(files.clone(), spares, usual, shared.clone(), recovered.resume);
        let driver = match settings.driving {
            Driving::Threads => {
                let (maker, spares) = spare::start(files.clone(), spare_bytes, fatal)
                    .map_err(StoreError::io("look for a spare segment"))?;
                let (writer, thread) = (writer(spares), std::thread::Builder::new());
                let thread = thread.name("log-writer".into()).spawn(move || writer.run());
                let thread = thread.map_err(StoreError::io("start the log's writer"))?;
                Driver::Threads { maker, writer: Mutex::new(Some(thread)) }
            }
            Driving::Steps { on_work } => {
                let (spares, full) = spare::inline(files.clone(), spare_bytes)
                    .map_err(StoreError::io("look for a spare segment"))?;
                Driver::Steps { writer: Mutex::new(Some(Box::new(writer(spares)))), full, on_work }
            }
        };
        let files = Mutex::new(Some(files));
        Ok(Store { shared, files, retention: settings.retention, archive, kept, driver })
    }

    /// Does the writer's next group, in the caller's thread: writes, syncs, calls back. False when there was none, or
    /// when the disk is full: try again when there may be space. A failing disk is reported to [`Fatal`].
    ///
    /// # Panics
    /// If the store has threads for that.
    pub fn step(&self) -> bool {
        let Driver::Steps { writer, .. } = &self.driver else { panic!("the store is driven by its threads") };
        let mut writer = writer.lock();
        let Some(running) = writer.as_mut() else { return false };
        match running.step() {
            Ok(worked) => worked,
            Err(stop) => {
                *writer = None;
                drop(writer);
                if let Stop::Failed(why) = stop {
                    self.shared.die(&why);
                }
                false
            }
        }
    }

    fn ask(&self, op: Op) -> Result<(), StoreError> {
        self.shared.queue.put(op)?;
        self.tell_work();
        Ok(())
    }

    fn tell_work(&self) {
        if let Driver::Steps { on_work, .. } = &self.driver {
            on_work();
        }
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
                contents.forget_from(before);
                return Err(StoreError::OutOfOrder(why));
            }
            contents.push(entry.clone());
        }
        // Under the lock, so that the queue has the order of the contents.
        self.shared.queue.put(Op::Append { entries, done })?;
        drop(contents);
        self.tell_work();
        Ok(())
    }

    /// Makes the entries from `from` on void, those not yet written too. Until `done` is called, nothing else
    /// may be asked for.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] when one of them is committed.
    pub fn truncate(&self, from: u64, done: Done) -> Result<(), StoreError> {
        let committed = self.shared.contents.lock().notes.committed;
        if committed.is_some_and(|committed| committed.index >= from) {
            return Err(StoreError::OutOfOrder(format!("entry {from} is committed and cannot be made void")));
        }
        self.ask(Op::Truncate { from, done })
    }

    /// Notes for whom this server voted, in the consensus library's own form.
    pub fn save_vote(&self, vote: Bytes, done: Done) -> Result<(), StoreError> {
        self.ask(Op::Vote { vote, done })
    }

    /// Notes that entries up to here are committed. It is written soon, and synced with the next group.
    pub fn save_committed(&self, upto: LogId) -> Result<(), StoreError> {
        if self.committed() >= Some(upto) {
            return Ok(());
        }
        self.ask(Op::Committed { upto })
    }

    /// Notes that raft needs the entries up to here no more. They stay as [`Settings::retention`] says: history is
    /// made of them.
    ///
    /// # Errors
    /// [`StoreError::OutOfOrder`] beyond [`Store::last`]: that takes an image, see [`Store::install`].
    pub fn purge(&self, upto: LogId, done: Done) -> Result<(), StoreError> {
        if Some(upto) > self.last() {
            return Err(StoreError::OutOfOrder(format!(
                "entry {} is not in the log and cannot be purged",
                upto.index
            )));
        }
        self.ask(Op::Purged { upto, done })
    }

    pub fn vote(&self) -> Option<Bytes> {
        self.shared.contents.lock().notes.vote.clone()
    }

    pub fn committed(&self) -> Option<LogId> {
        self.shared.contents.lock().notes.committed
    }

    /// What raft needs no more, or, since a repair put it aside, cannot have.
    pub fn purged(&self) -> Option<LogId> {
        let contents = self.shared.contents.lock();
        contents.notes.purged.max(contents.base.last())
    }

    /// The last entry, written or not. A log that holds none but continues an image returns the image's last one.
    pub fn last(&self) -> Option<LogId> {
        self.shared.contents.lock().last()
    }

    /// One past the raft index of the last entry that is safe.
    pub fn written(&self) -> u64 {
        self.shared.contents.lock().written
    }

    /// The raft index of the oldest entry held, or of the next one if there is none.
    pub fn first(&self) -> u64 {
        self.shared.contents.lock().base.next
    }

    /// The oldest batch that can be read, in the log or in the archive, or the next one if there is none.
    pub fn horizon(&self) -> Index {
        let base = self.shared.contents.lock().base;
        let archived = self.archive.as_ref().and_then(|archive| archive.horizon(base));
        archived.unwrap_or(Index(base.batch + 1))
    }

    /// The index of the last batch at or before an entry; 0 when there is none. For an entry that is not held any more,
    /// that of the last batch before the log.
    pub fn batch_at(&self, raft_index: u64) -> Index {
        self.shared.contents.lock().batch_at(raft_index)
    }

    /// The term of an entry, if the log holds it or begins right after it.
    pub fn term_of(&self, index: u64) -> Option<u64> {
        self.shared.contents.lock().term_of(index)
    }

    /// The entry that batch `index` is in, if the log holds it.
    pub fn entry_of(&self, index: Index) -> Option<LogId> {
        let contents = self.shared.contents.lock();
        if index < contents.horizon() || index > contents.last_batch() {
            return None;
        }
        let entry = contents.raft_index_of(index);
        contents.term_of(entry).map(|term| LogId { index: entry, term })
    }

    /// The disk has no space for another segment. What is accepted still fits into the one in use, within
    /// reason: refuse new writes now.
    pub fn is_full(&self) -> bool {
        match &self.driver {
            Driver::Threads { maker, .. } => maker.is_full(),
            Driver::Steps { full, .. } => full.load(Ordering::Relaxed),
        }
    }

    /// Writes what is queued, ends the threads and lets go of the directory. From now on everything is refused but
    /// reads.
    pub fn close(&self) {
        // After the image that is being kept, if one is.
        let _one = self.shared.keeping.lock();
        *self.files.lock() = None;
        self.archive.iter().for_each(Archive::close);
        self.kept.iter().for_each(Kept::close);
        match &self.driver {
            Driver::Threads { maker, writer } => {
                maker.close();
                self.shared.queue.close();
                if let Some(writer) = writer.lock().take() {
                    // Its panic was reported by the writer itself.
                    let _ = writer.join();
                }
                maker.join();
            }
            Driver::Steps { writer, .. } => {
                self.shared.queue.close();
                while self.step() {}
                *writer.lock() = None;
            }
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        match self.driver {
            Driver::Threads { .. } => self.close(),
            Driver::Steps { .. } => self.shared.queue.close(),
        }
    }
}

//! The archive: what was removed from the log, compressed, in a directory of its own.
//!
//! A file is written under another name, synced, read back and verified, and only then gets its name; the segment that it
//! stands for goes after that. So a crash leaves what is in both, never what is in neither. What the archive holds
//! counts as history as far as it leads on to the log without a gap.

mod packed;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base::{Index, Time};
use bytes::Bytes;
use parking_lot::Mutex;

use super::files::{File, Files};
use super::position::Position;
use super::{EncodedBatch, Entry, Payload, StoreError};
pub(super) use packed::{Form, Head, Packed, Packer, write};

/// Decompressed blocks that are kept for the next reader. When one more is needed, those that were not used for the longest
/// time go.
const CACHE_BYTES: usize = 64 << 20;
/// Files that are kept open.
const OPEN_MAX: usize = 16;
/// Written at once.
const CHUNK: usize = 1 << 20;

/// Where old history goes.
#[derive(Clone)]
pub struct ArchiveSettings {
    /// A directory that nobody else writes to.
    pub files: Arc<dyn Files>,
    /// Of all files together; when they are more, the oldest go, but never the newest one. Without it the disk is the limit.
    pub max_bytes: Option<u64>,
}

/// What is in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveStatus {
    /// Files that lead on to the log, and their bytes.
    pub files: u64,
    pub bytes: u64,
    /// What these files take when they are not compressed.
    pub raw_bytes: u64,
    pub max_bytes: Option<u64>,
    /// The oldest batch in them; `None` without one.
    pub oldest: Option<Index>,
    /// Files that do not lead on to the log, because something after them is missing, and their bytes.
    pub apart_files: u64,
    pub apart_bytes: u64,
    /// Files that are not as they were written.
    pub damaged: Vec<String>,
    /// Why a segment could not be archived the last time.
    pub failed: Option<String>,
}

/// Which files a directory is opened for.
#[derive(Clone, Copy)]
pub(super) struct Naming {
    suffix: &'static str,
    /// What one is called that is being written.
    unfinished: &'static str,
}

/// Files of whole entries.
pub(super) const WHOLE: Naming = Naming { suffix: packed::SUFFIX, unfinished: "archive.tmp" };
/// Files of kept facts.
pub(super) const PARTS: Naming = Naming { suffix: packed::PART_SUFFIX, unfinished: "kept.tmp" };

#[derive(Clone)]
pub(super) struct Listed {
    pub head: Head,
    pub bytes: u64,
    /// Of kept ones.
    pub facts: u64,
}

#[derive(Default)]
struct Kept {
    /// In the order of their entries.
    files: Vec<Listed>,
    damaged: Vec<String>,
    failed: Option<String>,
}

/// What was read last; used last stands last.
#[derive(Default)]
struct Recent {
    files: VecDeque<Arc<Packed>>,
    /// By the file's first entry, the one after its last, and the number of the block in it.
    blocks: VecDeque<((u64, u64, usize), Bytes)>,
    bytes: usize,
}

pub(super) struct Archive {
    /// None once it is closed.
    files: Mutex<Option<Arc<dyn Files>>>,
    naming: Naming,
    max_bytes: Option<u64>,
    kept: Mutex<Kept>,
    recent: Mutex<Recent>,
}

impl Archive {
    /// Reads what is there. A damaged file is left alone and not used.
    pub fn open(settings: ArchiveSettings, naming: Naming) -> Result<Archive, StoreError> {
        let ArchiveSettings { files, max_bytes } = settings;
        // The last process may have died before it did.
        files.sync_dir().map_err(StoreError::io("sync the archive's directory"))?;
        let names = files.list().map_err(StoreError::io("list the archive"))?;
        let mut kept = Kept::default();
        for name in names {
            if name == naming.unfinished {
                files.remove(&name).map_err(StoreError::io("remove an unfinished archived file"))?;
            }
            if !name.ends_with(naming.suffix) {
                continue;
            }
            match open(&*files, &name) {
                Ok(file) => kept.files.push(Listed::of(&file)),
                Err(error @ StoreError::Damaged { .. }) => {
                    tracing::error!(%error, "a file of history is damaged: it is not read");
                    kept.damaged.push(name);
                }
                Err(error) => return Err(error),
            }
        }
        kept.files.sort_by_key(|file| file.head.start.next);
        let files = Mutex::new(Some(files));
        Ok(Archive { files, naming, max_bytes, kept: Mutex::new(kept), recent: Mutex::default() })
    }

    /// Lets go of the directory. What is not open or in memory cannot be read any more.
    pub fn close(&self) {
        *self.files.lock() = None;
    }

    pub(super) fn files(&self) -> Result<Arc<dyn Files>, StoreError> {
        self.files.lock().clone().ok_or(StoreError::Stopped)
    }

    /// The oldest batch that can be read up to a log that begins at `base`.
    pub fn horizon(&self, base: Position) -> Option<Index> {
        let kept = self.kept.lock();
        let run = kept.run(base);
        kept.files[run].first().map(|file| file.head.first())
    }

    /// Batches from `from` to `upto` that stand before `base`, as many as fit `max_bytes`, but always one.
    pub fn batches(
        &self,
        base: Position,
        span: (Index, Index),
        max_bytes: usize,
    ) -> Result<Vec<EncodedBatch>, StoreError> {
        let (from, _) = span;
        let run = {
            let kept = self.kept.lock();
            let run = &kept.files[kept.run(base)];
            let oldest = run.first().map_or(Index(base.batch + 1), |file| file.head.first());
            if from < oldest {
                return Err(StoreError::Compacted { from, oldest });
            }
            let first = run.partition_point(|file| file.head.last() < from);
            // Enough for any answer: a caller that wants more asks again.
            let with_batches = run[first..].iter().filter(|file| file.head.last() >= file.head.first());
            with_batches.take(OPEN_MAX).map(|file| file.head.clone()).collect::<Vec<_>>()
        };
        let mut taken = Taken::new(span, max_bytes);
        for head in run {
            let file = match self.opened(&head) {
                // Removed since it was looked up.
                Err(StoreError::Io { .. }) if !self.has(&head) && taken.batches.is_empty() => {
                    let oldest = self.horizon(base).unwrap_or(Index(base.batch + 1));
                    return Err(StoreError::Compacted { from, oldest });
                }
                file => file?,
            };
            let first = file.block_of(from);
            for nth in first..file.blocks() {
                file.walk(nth, &self.block(&file, nth)?, |_, entry| {
                    taken.take(entry);
                    Ok(())
                })?;
                if taken.full {
                    return Ok(taken.batches);
                }
            }
        }
        Ok(taken.batches)
    }

    pub(super) fn has(&self, head: &Head) -> bool {
        self.kept.lock().files.iter().any(|file| file.head == *head)
    }

    pub(super) fn opened(&self, head: &Head) -> Result<Arc<Packed>, StoreError> {
        let mut recent = self.recent.lock();
        let known = recent.files.iter().position(|file| file.head == *head);
        let file = match known.and_then(|at| recent.files.remove(at)) {
            Some(file) => file,
            None => {
                let file = open(&*self.files()?, &head.name())?;
                if file.head != *head {
                    return Err(packed::damaged(&head.name(), 0, "it is another file than before"));
                }
                Arc::new(file)
            }
        };
        if recent.files.len() == OPEN_MAX {
            recent.files.pop_front();
        }
        recent.files.push_back(file.clone());
        Ok(file)
    }

    pub(super) fn block(&self, file: &Packed, nth: usize) -> Result<Bytes, StoreError> {
        let key = (file.head.start.next, file.head.end.next, nth);
        let mut recent = self.recent.lock();
        if let Some(at) = recent.blocks.iter().position(|(known, _)| *known == key) {
            let known = recent.blocks.remove(at).expect("it was found there");
            recent.blocks.push_back(known.clone());
            return Ok(known.1);
        }
        // Others may read meanwhile, at worst the same block.
        drop(recent);
        let block = file.block(nth)?;
        let mut recent = self.recent.lock();
        recent.blocks.push_back((key, block.clone()));
        recent.bytes += block.len();
        while recent.bytes > CACHE_BYTES
            && let Some((_, oldest)) = recent.blocks.pop_front()
        {
            recent.bytes -= oldest.len();
        }
        Ok(block)
    }

    /// Makes a file safe, unless it is there already.
    pub fn put(&self, head: &Head, bytes: &[u8]) -> Result<(), StoreError> {
        self.put_in_place_of(None, head, bytes)
    }

    /// As [`Archive::put`]; `old` is removed after that.
    pub fn put_in_place_of(&self, old: Option<&Head>, head: &Head, bytes: &[u8]) -> Result<(), StoreError> {
        let (name, files) = (head.name(), self.files()?);
        if self.has(head) && verified(&*files, &name).is_ok_and(|found| found.head == *head) {
            return Ok(());
        }
        let written = write_file(&*files, self.naming.unfinished, head, bytes);
        if written.is_err() {
            // What found no space must not take what is left of it; the next start removes it otherwise.
            let _ = files.remove(self.naming.unfinished);
        }
        let found = written?;
        let mut kept = self.kept.lock();
        kept.failed = None;
        kept.damaged.retain(|damaged| *damaged != name);
        kept.files.retain(|file| file.head.name() != name);
        kept.files.push(Listed { head: head.clone(), bytes: bytes.len() as u64, facts: found.facts() });
        kept.files.retain(|file| old != Some(&file.head));
        kept.files.sort_by_key(|file| file.head.start.next);
        drop(kept);
        if let Some(old) = old {
            files.remove(&old.name()).map_err(StoreError::io("remove an archived file"))?;
            files.sync_dir().map_err(StoreError::io("sync the archive's directory"))?;
        }
        Ok(())
    }

    /// All files, in the order of their entries.
    pub fn listed(&self) -> Vec<Listed> {
        self.kept.lock().files.clone()
    }

    /// Removes files that another one makes up for: a crash may leave both.
    pub fn remove_repeated(&self) -> Result<(), StoreError> {
        let all = self.listed();
        let holds = |other: &Head, head: &Head| {
            other != head
                && (other.form, other.start) == (head.form, head.start)
                && other.end.next > head.end.next
        };
        for file in all.iter().filter(|file| all.iter().any(|other| holds(&other.head, &file.head))) {
            let files = self.files()?;
            files.remove(&file.head.name()).map_err(StoreError::io("remove an archived file"))?;
            files.sync_dir().map_err(StoreError::io("sync the archive's directory"))?;
            self.kept.lock().files.retain(|known| known.head != file.head);
        }
        Ok(())
    }

    /// Notes why a segment could not be archived.
    pub fn failed(&self, error: &StoreError) {
        self.kept.lock().failed = Some(error.to_string());
    }

    /// Removes the oldest files as long as there are too many bytes, each after `leave` agrees.
    pub fn shrink(&self, mut leave: impl FnMut(&Head) -> Result<(), StoreError>) -> Result<(), StoreError> {
        while let Some(oldest) = self.surplus() {
            leave(&oldest)?;
            let files = self.files()?;
            files.remove(&oldest.name()).map_err(StoreError::io("remove an archived file"))?;
            files.sync_dir().map_err(StoreError::io("sync the archive's directory"))?;
            self.kept.lock().files.retain(|file| file.head != oldest);
        }
        Ok(())
    }

    fn surplus(&self) -> Option<Head> {
        let kept = self.kept.lock();
        let bytes: u64 = kept.files.iter().map(|file| file.bytes).sum();
        let too_many = kept.files.len() > 1 && self.max_bytes.is_some_and(|most| bytes > most);
        too_many.then(|| kept.files[0].head.clone())
    }

    pub fn status(&self, base: Position) -> ArchiveStatus {
        let kept = self.kept.lock();
        let run = kept.run(base);
        let (apart, whole) = (&kept.files[..run.start], &kept.files[run]);
        let sum = |files: &[Listed]| files.iter().map(|file| file.bytes).sum();
        ArchiveStatus {
            files: whole.len() as u64,
            bytes: sum(whole),
            raw_bytes: whole.iter().map(|file| file.head.raw).sum(),
            max_bytes: self.max_bytes,
            oldest: whole.first().map(|file| file.head.first()),
            apart_files: apart.len() as u64,
            apart_bytes: sum(apart),
            damaged: kept.damaged.clone(),
            failed: kept.failed.clone(),
        }
    }

    /// Whether all files take more than twice as much as they may.
    pub fn is_far_too_long(&self) -> bool {
        let bytes: u64 = self.kept.lock().files.iter().map(|file| file.bytes).sum();
        self.max_bytes.is_some_and(|most| bytes > most.saturating_mul(2))
    }

    /// Names of files that are not as they were written, and why one could not be written the last time.
    pub fn troubles(&self) -> (Vec<String>, Option<String>) {
        let kept = self.kept.lock();
        (kept.damaged.clone(), kept.failed.clone())
    }

    /// The file that holds batch `index`, which stands before `base`.
    pub fn file_of(&self, base: Position, index: Index) -> Result<Arc<Packed>, StoreError> {
        let head = {
            let kept = self.kept.lock();
            let run = &kept.files[kept.run(base)];
            let at = run.partition_point(|file| file.head.last() < index);
            run.get(at).filter(|file| file.head.first() <= index).map(|file| file.head.clone())
        };
        let oldest = || self.horizon(base).unwrap_or(Index(base.batch + 1));
        self.opened(&head.ok_or_else(|| StoreError::Compacted { from: index, oldest: oldest() })?)
    }
}

impl Kept {
    /// The files that lead on to a log that begins at `base`. What the log still has may be here too, behind them.
    fn run(&self, base: Position) -> Range<usize> {
        let end = self.files.partition_point(|file| file.head.start.next < base.next);
        let (mut first, mut meets) = (end, base);
        while first > 0 && self.files[first - 1].head.end == meets {
            first -= 1;
            meets = self.files[first].head.start;
        }
        first..end
    }
}

impl Listed {
    fn of(file: &Packed) -> Listed {
        Listed { head: file.head.clone(), bytes: file.bytes, facts: file.facts() }
    }
}

/// What an answer is made of.
pub(super) struct Taken {
    pub from: Index,
    upto: Index,
    max_bytes: usize,
    bytes: usize,
    pub full: bool,
    pub batches: Vec<EncodedBatch>,
}

impl Taken {
    pub fn new((from, upto): (Index, Index), max_bytes: usize) -> Taken {
        Taken { from, upto, max_bytes, bytes: 0, full: false, batches: Vec::new() }
    }

    pub fn take(&mut self, entry: Entry) {
        let Payload::Batch(batch) = entry.payload else { return };
        if self.full || batch.index() < self.from {
            return;
        }
        self.bytes += batch.bytes().len();
        self.full = batch.index() > self.upto || (self.bytes > self.max_bytes && !self.batches.is_empty());
        if !self.full {
            self.batches.push(batch);
        }
    }
}

fn open(files: &dyn Files, name: &str) -> Result<Packed, StoreError> {
    let file: Arc<dyn File> = files.open(name).map_err(StoreError::io("open an archived file"))?;
    Packed::open(name, file)
}

fn verified(files: &dyn Files, name: &str) -> Result<Packed, StoreError> {
    let file = open(files, name)?;
    file.verify()?;
    Ok(file)
}

/// Makes a file safe under another name, reads it back, and gives it its name.
fn write_file(files: &dyn Files, draft: &str, head: &Head, bytes: &[u8]) -> Result<Packed, StoreError> {
    let doing = || StoreError::io("write to the archive");
    let file = files.create_sparse(draft, bytes.len() as u64).map_err(doing())?;
    for (chunk, nth) in bytes.chunks(CHUNK).zip(0u64..) {
        file.write_at(chunk, nth * CHUNK as u64).map_err(doing())?;
    }
    file.sync().map_err(StoreError::io("sync an archived file"))?;
    let found = verified(files, draft)?;
    if found.head != *head {
        return Err(packed::damaged(draft, 0, "it is not what was written"));
    }
    files.rename(draft, &head.name()).map_err(StoreError::io("name an archived file"))?;
    files.sync_dir().map_err(StoreError::io("sync the archive's directory"))?;
    Ok(found)
}

/// A file of history: entries that follow each other, archived or exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    pub name: String,
    pub first: Index,
    /// Below `first` when there is no batch in it.
    pub last: Index,
    pub first_time: Time,
    pub last_time: Time,
    pub bytes: u64,
    /// When it is not compressed.
    pub raw_bytes: u64,
    /// The chains before and after its entries: what follows begins with the one that this ends with.
    pub begins: String,
    pub ends: String,
}

impl HistoryFile {
    pub(super) fn of(head: &Head, bytes: u64) -> HistoryFile {
        HistoryFile {
            name: head.name(),
            first: head.first(),
            last: head.last(),
            first_time: Time(head.first_time),
            last_time: head.last_time(),
            bytes,
            raw_bytes: head.raw,
            begins: chain_text(head.start),
            ends: chain_text(head.end),
        }
    }
}

/// The raft index of the next entry, and the chain.
pub(super) fn chain_text(at: Position) -> String {
    format!("{}:{:032x}", at.next, u128::from_be_bytes(at.chain.0))
}

/// Reads one file of an archive or an export and compares all of it with its checksums and the chain. Whoever reads several
/// has to compare where each ends with where the next begins.
///
/// # Errors
/// [`StoreError::Damaged`] where it is not what was written.
pub fn verify_file(name: &str, file: Arc<dyn File>) -> Result<HistoryFile, StoreError> {
    let packed = Packed::open(name, file)?;
    packed.verify()?;
    Ok(HistoryFile::of(&packed.head, packed.bytes))
}

/// The ending of the names of archived and exported files.
pub const HISTORY_SUFFIX: &str = packed::SUFFIX;
/// The ending of the names of files with kept facts.
pub const KEPT_SUFFIX: &str = packed::PART_SUFFIX;

/// How much the records of an archived segment are compressed.
pub(super) const LEVEL: i32 = packed::LEVEL;

#[cfg(all(test, feature = "simulation"))]
mod tests {
    use super::super::simulated::Disk;
    use super::*;
    use crate::frame::encode;
    use model::{Actor, Batch, CommandRecord, Digest, RequestId};

    /// A batch of about a megabyte: nearly a block of its own.
    fn large(index: u64) -> Entry {
        let event = model::event::NodeMessagesEmitted {
            node: model::NodeId(base::Uuid::from(1)),
            messages: vec![model::event::NodeMessage::new("Test", &"x".repeat(1 << 20), Time(0))],
        };
        let batch = encode(&Batch {
            epoch: model::EPOCH,
            index: Index(index),
            previous: Index(index - 1),
            digest: Digest::default(),
            time: Time(index as i64),
            proposer: base::Uuid::from(1),
            commands: vec![CommandRecord {
                request: RequestId(base::Uuid::from(1)),
                kind: 1,
                actor: Actor::ANONYMOUS,
            }],
            events: vec![model::LoggedEvent { command: 0, event: event.into() }],
        });
        Entry { index: index - 1, term: 1, payload: Payload::Batch(batch) }
    }

    #[test]
    fn what_is_decompressed_is_kept_up_to_a_limit() {
        const BATCHES: u64 = 100;
        let archive =
            Archive::open(ArchiveSettings { files: Arc::new(Disk::new(1)), max_bytes: None }, WHOLE).unwrap();
        let mut packer = Packer::new(Form::Whole, Position::default(), LEVEL).unwrap();
        (1..=BATCHES).for_each(|index| packer.push(&large(index)).unwrap());
        let (head, bytes) = packer.finish().unwrap();
        archive.put(&head, &bytes).unwrap();
        let held = |archive: &Archive| {
            let recent = archive.recent.lock();
            assert_eq!(recent.bytes, recent.blocks.iter().map(|(_, block)| block.len()).sum::<usize>());
            (recent.bytes, recent.blocks.len())
        };
        let read = |index: u64| archive.batches(head.end, (Index(index), Index(BATCHES)), 1).unwrap();
        (1..=BATCHES).for_each(|index| assert_eq!(read(index)[0].index(), Index(index)));
        let (bytes, blocks) = held(&archive);
        assert!(bytes <= CACHE_BYTES && bytes > CACHE_BYTES - (2 << 20), "{bytes}");
        // The last one is at hand.
        read(BATCHES);
        assert_eq!(held(&archive).1, blocks);
        assert_eq!(read(1)[0].index(), Index(1));
    }
}

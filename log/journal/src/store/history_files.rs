//! History file by file: what there is of it, whether it is whole, and copies of it.

use base::Index;

use super::archive::{ArchiveStatus, Form, Head, HistoryFile, Packer, chain_text, write};
use super::kept_facts::KeptStatus;
use super::position::Position;
use super::record::Spot;
use super::{Entry, Retention, Store, StoreError, archive, segment};

/// Read from a segment at once.
const READ_BYTES: usize = 4 << 20;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryStatus {
    pub retention: Retention,
    /// The oldest batch that can be read, here or in the archive.
    pub oldest: Index,
    /// The oldest batch in the log.
    pub log_oldest: Index,
    pub segments: u64,
    /// Of all segments.
    pub segment_bytes: u64,
    /// `None` without an archive.
    pub archive: Option<ArchiveStatus>,
    /// What is kept of entries that are neither here nor there; `None` where nothing is.
    pub kept: Option<KeptStatus>,
}

/// The committed part of a segment.
struct Part {
    number: u64,
    start: Position,
    /// One past its last entry.
    end: u64,
    bytes: u64,
}

impl Store {
    pub fn history(&self) -> HistoryStatus {
        let oldest = self.horizon();
        let contents = self.shared.contents.lock();
        let (base, log_oldest) = (contents.base, contents.horizon());
        let segments = contents.segments.len() as u64;
        let segment_bytes = contents.segments.iter().map(|segment| segment.bytes).sum();
        drop(contents);
        let archive = self.archive.as_ref().map(|archive| archive.status(base));
        let kept = self.kept.as_ref().map(|kept| kept.status(oldest));
        let retention = self.retention;
        HistoryStatus { retention, oldest, log_oldest, segments, segment_bytes, archive, kept }
    }

    /// Reads all of the file that batch `index` is in, and compares it with its checksums and the chain. `None` when no
    /// batch of that index is committed. Blocks, as long as reading a segment takes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where something is not what was written, [`StoreError::Compacted`] below the horizon.
    pub fn verify_history(&self, index: Index) -> Result<Option<HistoryFile>, StoreError> {
        if let Some(file) = self.archived_file(index)? {
            file.verify()?;
            return Ok(Some(HistoryFile::of(&file.head, file.bytes)));
        }
        let Some(part) = self.part(index)? else { return Ok(None) };
        let (mut at, mut times, mut raw) = (part.start, None, 0);
        self.each_entry(part.start.next..part.end, |entry| {
            let mut record = Vec::new();
            at = write(entry, &mut record, Spot { segment: part.number, offset: raw }, at);
            raw += record.len() as u64;
            if let super::Payload::Batch(batch) = &entry.payload {
                let time = batch.time();
                times = Some((times.map_or(time, |(first, _)| first), time));
            }
            Ok(())
        })?;
        if at != self.shared.position_before(part.end)? {
            let why = "its entries do not lead to where the next segment begins".to_string();
            return Err(StoreError::Damaged { file: segment::name(part.number), offset: 0, why });
        }
        let (first_time, last_time) = times.unwrap_or_default();
        Ok(Some(HistoryFile {
            name: segment::name(part.number),
            first: Index(part.start.batch + 1),
            last: Index(at.batch),
            first_time,
            last_time,
            bytes: part.bytes,
            raw_bytes: raw,
            begins: chain_text(part.start),
            ends: chain_text(at),
        }))
    }

    /// A copy of the file that batch `index` is in, as an archive has it; of the segment in use what is committed. `None` when
    /// no batch of that index is committed. Takes memory for a segment.
    ///
    /// # Errors
    /// As [`Store::verify_history`].
    pub fn export_history(&self, index: Index) -> Result<Option<(HistoryFile, Vec<u8>)>, StoreError> {
        if let Some(file) = self.archived_file(index)? {
            return Ok(Some((HistoryFile::of(&file.head, file.bytes), file.whole()?)));
        }
        let Some(part) = self.part(index)? else { return Ok(None) };
        let end = self.shared.position_before(part.end)?;
        let (head, bytes) = self.pack(part.start, end, archive::LEVEL)?;
        Ok(Some((HistoryFile::of(&head, bytes.len() as u64), bytes)))
    }

    /// The bytes of an archived file with the entries between two places in the log.
    pub(super) fn pack(
        &self,
        start: Position,
        end: Position,
        level: i32,
    ) -> Result<(Head, Vec<u8>), StoreError> {
        let io = || StoreError::io("compress a segment of the log");
        let mut packer = Packer::new(Form::Whole, start, level).map_err(io())?;
        self.each_entry(start.next..end.next, |entry| packer.push(entry).map_err(io()))?;
        let (head, bytes) = packer.finish().map_err(io())?;
        if head.end != end {
            return Err(StoreError::OutOfOrder(format!(
                "the entries from {} on do not lead to entry {}",
                start.next, end.next
            )));
        }
        Ok((head, bytes))
    }

    pub(super) fn each_entry(
        &self,
        range: std::ops::Range<u64>,
        mut each: impl FnMut(&Entry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut at = range.start;
        while at < range.end {
            let entries = self.entries(at..range.end, READ_BYTES)?;
            let Some(last) = entries.last() else { return Ok(()) };
            at = last.index + 1;
            entries.iter().try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// The archived file that a batch is in, if the log does not have it.
    fn archived_file(&self, index: Index) -> Result<Option<std::sync::Arc<archive::Packed>>, StoreError> {
        let base = self.shared.contents.lock().base;
        match &self.archive {
            Some(archive) if index.0 <= base.batch => archive.file_of(base, index).map(Some),
            _ => Ok(None),
        }
    }

    fn part(&self, index: Index) -> Result<Option<Part>, StoreError> {
        let contents = self.shared.contents.lock();
        let oldest = contents.horizon();
        if index < oldest {
            return Err(StoreError::Compacted { from: index, oldest });
        }
        let committed = contents.notes.committed.map_or(0, |committed| committed.index + 1);
        if index > contents.last_batch() || contents.raft_index_of(index) >= committed.min(contents.written) {
            return Ok(None);
        }
        let entry = contents.raft_index_of(index);
        let at = contents.segments.partition_point(|segment| segment.start.next <= entry) - 1;
        let segment = &contents.segments[at];
        let next = contents.segments.get(at + 1).map_or(contents.written, |next| next.start.next);
        let (number, start, bytes) = (segment.file.number, segment.start, segment.bytes);
        Ok(Some(Part { number, start, end: next.min(committed), bytes }))
    }
}

//! Reads entries and batches, from memory where they are new, else from the files. Every read compares checksums.

use std::ops::Range;

use base::Index;
use bytes::Bytes;

use super::contents::{Found, Offset, SegmentFile};
use super::position::Position;
use super::record::{self, Bad, Chain, HEADER, Header, Spot};
use super::scan::{bad_record, damaged, scan_sealed};
use super::{EncodedBatch, Entry, Payload, Shared, Store, StoreError, segment};

/// Read from a file at once: enough to make a scan sequential, little enough to be kept alive by one of its batches.
const CHUNK: u64 = 1 << 20;
/// What follows the last record's beginning in a chunk, as a guess of that record's length.
const LAST_RECORD: u64 = 4 << 10;
/// Entries looked up under one lock.
const RUN: u64 = 4096;

impl Store {
    /// Entries of `range`, as far as they exist: as many as fit `max_bytes` of payload, but always one if there is one.
    ///
    /// # Errors
    /// [`StoreError::Removed`] when the first of them is not kept any more.
    pub fn entries(&self, range: Range<u64>, max_bytes: usize) -> Result<Vec<Entry>, StoreError> {
        self.shared.entries(range, max_bytes)
    }

    /// Batches from `from` (at least 1) to `upto`, both included, as far as they exist: as many as fit `max_bytes`,
    /// but always one if there is one. What is in the archive ends where the log begins.
    ///
    /// # Errors
    /// [`StoreError::Compacted`] when `from` lies below the [`Store::horizon`].
    pub fn batches(
        &self,
        from: Index,
        upto: Index,
        max_bytes: usize,
    ) -> Result<Vec<EncodedBatch>, StoreError> {
        let range = {
            let contents = self.shared.contents.lock();
            let (oldest, base) = (contents.horizon(), contents.base);
            if from < oldest {
                drop(contents);
                return match &self.archive {
                    Some(archive) => archive.batches(base, (from, upto), max_bytes),
                    None => Err(StoreError::Compacted { from, oldest }),
                };
            }
            let upto = upto.min(contents.last_batch());
            if from > upto {
                return Ok(Vec::new());
            }
            contents.raft_index_of(from)..contents.raft_index_of(upto) + 1
        };
        let batch = |entry: Entry| match entry.payload {
            Payload::Batch(batch) => Some(batch),
            Payload::Blank | Payload::Membership(_) => None,
        };
        let entries = match self.entries(range, max_bytes) {
            // Removed since it was looked up: it is in the archive now, or nowhere.
            Err(StoreError::Removed { .. }) => return self.batches(from, upto, max_bytes),
            entries => entries?,
        };
        // The first entry is a batch, so one comes even if it is larger than allowed.
        Ok(entries.into_iter().filter_map(batch).collect())
    }
}

impl Shared {
    /// See [`Store::entries`].
    pub fn entries(&self, range: Range<u64>, max_bytes: usize) -> Result<Vec<Entry>, StoreError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut at = range.start;
        while at < range.end {
            let more = self.some_entries(at..range.end)?;
            if more.is_empty() {
                break;
            }
            for entry in more {
                bytes += entry.payload.len();
                if bytes > max_bytes && !entries.is_empty() {
                    return Ok(entries);
                }
                at = entry.index + 1;
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// One or more entries from the beginning of `range`, as it is convenient; none at the end of the log.
    fn some_entries(&self, range: Range<u64>) -> Result<Vec<Entry>, StoreError> {
        loop {
            match self.find(range.clone())? {
                Found::Nowhere => return Ok(Vec::new()),
                Found::Memory(entries) => return Ok(entries),
                Found::File(segment, offsets) => return read_run(&segment, range.start, &offsets),
                Found::Unread(segment) => self.index(&segment)?,
            }
        }
    }

    fn find(&self, range: Range<u64>) -> Result<Found, StoreError> {
        let contents = self.contents.lock();
        let oldest = contents.base.next;
        if range.start < oldest {
            return Err(StoreError::Removed { entry: range.start, oldest });
        }
        Ok(contents.find(range, RUN))
    }

    /// Finds the entries in a sealed segment that was passed by so far.
    fn index(&self, segment: &SegmentFile) -> Result<(), StoreError> {
        // One at a time: each takes memory for a whole segment.
        let _one = self.indexing.lock();
        if !self.contents.lock().is_unread(segment.number) {
            return Ok(());
        }
        let scanned = scan_sealed(segment)?;
        self.contents.lock().indexed(segment.number, scanned.summary.lowest.next, scanned.offsets);
        Ok(())
    }

    /// Where the log stands before entry `next`; the entry before that is written.
    pub fn position_before(&self, next: u64) -> Result<Position, StoreError> {
        loop {
            let (found, term, batch) = {
                let contents = self.contents.lock();
                if next == contents.base.next {
                    return Ok(contents.base);
                }
                let last = next - 1;
                let term = contents.term_of(last).filter(|_| last < contents.written);
                let term = term.ok_or(StoreError::Removed { entry: last, oldest: contents.base.next })?;
                (contents.find_written(last), term, contents.batch_at(last).0)
            };
            match found {
                Found::File(segment, offsets) => {
                    let chain = chain_at(&segment, offsets[0].bytes())?;
                    return Ok(Position { next, term, batch, chain });
                }
                Found::Unread(segment) => self.index(&segment)?,
                Found::Nowhere | Found::Memory(_) => unreachable!("a written entry is in a file"),
            }
        }
    }
}

/// The entries at `offsets` of one segment, the first of which is entry `first`: at least that one.
fn read_run(segment: &SegmentFile, first: u64, offsets: &[Offset]) -> Result<Vec<Entry>, StoreError> {
    let start = offsets[0].bytes();
    let spread = offsets[offsets.len() - 1].bytes() - start;
    let mut chunk = read_chunk(segment, start, (spread + LAST_RECORD).min(CHUNK))?;
    let spot = |offset| Spot { segment: segment.number, offset };
    let bad = |bad| bad_record(segment.number, start, bad, "");
    let whole = Header::read(&chunk, spot(start)).map(|header| header.size()).map_err(bad)?;
    if whole > chunk.len() as u64 {
        chunk = read_chunk(segment, start, whole)?;
    }
    let mut entries = Vec::with_capacity(offsets.len());
    for (offset, index) in offsets.iter().map(|offset| offset.bytes()).zip(first..) {
        let rest = chunk.slice(((offset - start) as usize).min(chunk.len())..);
        let complete = Header::read(&rest, spot(offset)).is_ok_and(|it| it.size() <= rest.len() as u64);
        if !complete && !entries.is_empty() {
            break;
        }
        entries.push(read_entry(segment, offset, rest, index)?);
    }
    Ok(entries)
}

fn read_entry(segment: &SegmentFile, offset: u64, bytes: Bytes, index: u64) -> Result<Entry, StoreError> {
    let number = segment.number;
    let (header, payload) = record::read(&bytes, Spot { segment: number, offset })
        .map_err(|bad| bad_record(number, offset, bad, ""))?;
    let payload = bytes.slice(HEADER..HEADER + payload.len());
    let unreadable = |source| StoreError::Unreadable { segment: segment::name(number), offset, source };
    let entry = record::entry(&header, payload).map_err(unreadable)?;
    let wrong = || damaged(number, offset, &format!("it is not entry {index}"));
    entry.filter(|entry| entry.index == index).ok_or_else(wrong)
}

fn read_chunk(segment: &SegmentFile, start: u64, len: u64) -> Result<Bytes, StoreError> {
    let end = segment.file.size().map_err(StoreError::io("measure a segment"))?;
    let mut bytes = vec![0; len.min(end.saturating_sub(start)) as usize];
    segment.file.read_at(&mut bytes, start).map_err(StoreError::io("read the log"))?;
    Ok(Bytes::from(bytes))
}

fn chain_at(segment: &SegmentFile, offset: u64) -> Result<Chain, StoreError> {
    let bytes = read_chunk(segment, offset, HEADER as u64)?;
    let header = Header::read(&bytes, Spot { segment: segment.number, offset });
    Ok(header.map_err(|bad: Bad| bad_record(segment.number, offset, bad, ""))?.chain)
}

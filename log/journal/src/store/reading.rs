//! Reads entries and batches, from memory where they are new, else from the files. Every read compares checksums.

use std::ops::Range;

use base::Index;
use bytes::Bytes;

use super::contents::{Found, InFile, SegmentFile};
use super::position::Position;
use super::record::{self, HEADER, Header, Spot};
use super::scan::{bad_record, damaged};
use super::walk::{CHUNK, Walk, places};
use super::{EncodedBatch, Entry, Payload, Shared, Store, StoreError, segment};

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
                Found::InFile(found) => return read(&found),
                Found::Unplaced(segment) => self.place(&segment)?,
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

    /// Looks for the entries of a sealed segment that was passed by so far.
    fn place(&self, segment: &SegmentFile) -> Result<(), StoreError> {
        // One at a time: others want the same segment, as a rule.
        let _one = self.placing.lock();
        if !self.contents.lock().is_unplaced(segment.number) {
            return Ok(());
        }
        let places = places(segment)?;
        self.contents.lock().placed(segment.number, places);
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
                Found::InFile(found) => {
                    let chain = header(&found)?.chain;
                    return Ok(Position { next, term, batch, chain });
                }
                Found::Unplaced(segment) => self.place(&segment)?,
                Found::Nowhere | Found::Memory(_) => unreachable!("a written entry is in a file"),
            }
        }
    }
}

/// One or more of the entries: those that are read at once.
fn read(found: &InFile) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    let Some(from) = found.runs.first() else { return Err(missing(found)) };
    let whole = found.behind.map_or(CHUNK, |behind| behind - from.offset);
    let mut walk = Walk::new(&found.segment, whole.min(CHUNK));
    for run in &found.runs {
        walk.go_to(run.offset);
        for index in run.first..run.end {
            if index >= found.first && !entries.is_empty() && !walk.holds_entry() {
                return Ok(entries);
            }
            let (header, offset) = walk.entry()?;
            if index >= found.first {
                entries.push(read_entry(&found.segment, offset, walk.read(offset, header.size())?, index)?);
            }
        }
    }
    Ok(entries)
}

/// What the record of the first of the entries says.
fn header(found: &InFile) -> Result<Header, StoreError> {
    let Some(run) = found.runs.first() else { return Err(missing(found)) };
    let mut walk = Walk::new(&found.segment, CHUNK);
    walk.go_to(run.offset);
    for _ in run.first..found.first {
        walk.entry()?;
    }
    Ok(walk.entry()?.0)
}

fn missing(found: &InFile) -> StoreError {
    damaged(found.segment.number, 0, &format!("entry {} is not in it", found.first))
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

//! Reads entries and batches, from memory where they are new, else from the files. Every read compares checksums.

use std::ops::Range;

use base::Index;
use bytes::Bytes;

use super::contents::{Contents, Place, Segment};
use super::record::{self, Bad, Chain, HEADER, Header};
use super::{EncodedBatch, Entry, Payload, Store, StoreError, segment};

/// Read from a file at once: enough to make a scan sequential, little enough to be kept alive by one of its batches.
const CHUNK: u64 = 1 << 20;
/// What follows the last record's beginning in a chunk, as a guess of that record's length.
const LAST_RECORD: u64 = 4 << 10;
/// Entries looked up under one lock.
const RUN: u64 = 4096;

impl Store {
    /// Entries of `range`, as far as they exist: as many as fit `max_bytes` of payload, but always one if there is one.
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

    /// Batches from `from` (at least 1) to `upto`, both included, as far as they exist: as many as fit `max_bytes`,
    /// but always one if there is one.
    pub fn batches(
        &self,
        from: Index,
        upto: Index,
        max_bytes: usize,
    ) -> Result<Vec<EncodedBatch>, StoreError> {
        let range = {
            let contents = self.shared.contents.lock();
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
        // The first entry is a batch, so one comes even if it is larger than allowed.
        Ok(self.entries(range, max_bytes)?.into_iter().filter_map(batch).collect())
    }

    /// One or more entries from the beginning of `range`, as it is convenient; none at the end of the log.
    fn some_entries(&self, range: Range<u64>) -> Result<Vec<Entry>, StoreError> {
        let (segment, places) = {
            let contents = self.shared.contents.lock();
            let end = range.end.min(contents.next).min(range.start.saturating_add(RUN));
            if range.start >= end {
                return Ok(Vec::new());
            }
            if range.start >= contents.tail_start() {
                let wanted = (end - range.start) as usize;
                return Ok(contents.tail_from(range.start).take(wanted).cloned().collect());
            }
            let end = end.min(contents.tail_start());
            let places = &contents.places[range.start as usize..end as usize];
            let together = places.iter().take_while(|place| place.segment == places[0].segment).count();
            (contents.segments[places[0].segment as usize].clone(), places[..together].to_vec())
        };
        read_run(&segment, range.start, &places)
    }
}

/// The entries at `places` of one segment, the first of which is entry `first`: at least that one.
fn read_run(segment: &Segment, first: u64, places: &[Place]) -> Result<Vec<Entry>, StoreError> {
    let start = places[0].offset();
    let spread = places[places.len() - 1].offset() - start;
    let mut chunk = read_chunk(segment, start, (spread + LAST_RECORD).min(CHUNK))?;
    let whole =
        Header::read(&chunk).map(|header| header.size()).map_err(|bad| damaged(segment, start, bad))?;
    if whole > chunk.len() as u64 {
        chunk = read_chunk(segment, start, whole)?;
    }
    let mut entries = Vec::with_capacity(places.len());
    for (place, index) in places.iter().zip(first..) {
        let rest = chunk.slice(((place.offset() - start) as usize).min(chunk.len())..);
        let complete = Header::read(&rest).is_ok_and(|header| header.size() <= rest.len() as u64);
        if !complete && !entries.is_empty() {
            break;
        }
        entries.push(read_entry(segment, place.offset(), rest, index)?);
    }
    Ok(entries)
}

fn read_entry(segment: &Segment, offset: u64, bytes: Bytes, index: u64) -> Result<Entry, StoreError> {
    let (header, payload) = record::read(&bytes).map_err(|bad| damaged(segment, offset, bad))?;
    let payload = bytes.slice(HEADER..HEADER + payload.len());
    let unreadable =
        |source| StoreError::Unreadable { segment: segment::name(segment.number), offset, source };
    let entry = record::entry(&header, payload).map_err(unreadable)?;
    entry.filter(|entry| entry.index == index).ok_or_else(|| StoreError::Damaged {
        segment: segment::name(segment.number),
        offset,
        why: format!("it is not entry {index}"),
    })
}

fn read_chunk(segment: &Segment, start: u64, len: u64) -> Result<Bytes, StoreError> {
    let end = segment.file.size().map_err(StoreError::io("measure a segment"))?;
    let mut bytes = vec![0; len.min(end.saturating_sub(start)) as usize];
    segment.file.read_at(&mut bytes, start).map_err(StoreError::io("read the log"))?;
    Ok(Bytes::from(bytes))
}

/// The chain at the last entry, which is written.
pub(super) fn last_chain(contents: &Contents) -> Result<Chain, StoreError> {
    let Some(place) = contents.places.last() else { return Ok(Chain::default()) };
    let segment = &contents.segments[place.segment as usize];
    let header = read_chunk(segment, place.offset(), HEADER as u64)?;
    Ok(Header::read(&header).map_err(|bad| damaged(segment, place.offset(), bad))?.chain)
}

fn damaged(segment: &Segment, offset: u64, bad: Bad) -> StoreError {
    let segment = segment::name(segment.number);
    match bad {
        Bad::Newer { .. } => StoreError::Newer { segment, offset, why: bad.to_string() },
        Bad::Zeros | Bad::Header | Bad::Payload => {
            StoreError::Damaged { segment, offset, why: bad.to_string() }
        }
    }
}

//! Follows one segment from its first record to where it ends, and holds every record to what came before it.

use std::sync::Arc;

use bytes::Bytes;

use super::contents::{Contents, SegmentFile};
use super::files::File;
use super::places::{Offset, Places};
use super::position::{Begin, Notes, Position};
use super::record::{self, ALIGN, Bad, Header, Kind, MAGIC, Spot};
use super::segment::{self, Summary};
use super::{LogId, StoreError};

/// What is in a segment.
pub(super) struct Scanned {
    /// An image took the place of the segments before.
    pub reset: bool,
    pub begin: Begin,
    /// At the end.
    pub notes: Notes,
    pub summary: Summary,
    /// Of the entries from `summary.lowest` to `summary.end`.
    pub places: Places,
    pub end: End,
}

/// Where good records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Where the seal stands.
    Sealed(u64),
    /// What stands there is no record, or does not belong there.
    Bad(u64, Bad),
}

/// The bytes that a segment's file has for records.
///
/// # Errors
/// [`StoreError::Damaged`] when the file is not as long as it was made.
pub(super) fn read(segment: &SegmentFile) -> Result<Vec<u8>, StoreError> {
    let file = &segment.file;
    let len = file.size().map_err(StoreError::io("measure a segment"))?;
    let capacity = segment::capacity(&**file).map_err(StoreError::io("measure a segment"))?;
    let capacity =
        capacity.ok_or_else(|| damaged(segment.number, len, "the file is not as long as it was made"))?;
    let mut bytes = vec![0; capacity as usize];
    file.read_at(&mut bytes, 0).map_err(StoreError::io("read a segment"))?;
    Ok(bytes)
}

/// What the first record of a segment says.
pub(super) fn begin(number: u64, bytes: &[u8]) -> Result<(Begin, Header), Bad> {
    let (header, payload) = record::read(bytes, Spot { segment: number, offset: 0 })?;
    let begin = Begin::read(payload).filter(|_| matches!(header.kind, Kind::Begin | Kind::Reset));
    let begin = begin.ok_or(Bad::Chain)?;
    if header.chain != begin.position.chain.then(&header, payload) {
        return Err(Bad::Chain);
    }
    Ok((begin, header))
}

/// Follows the segment `number`, whose records lie in `bytes`. `Err(Ok(bad))` when it has no first record.
pub(super) fn scan(number: u64, bytes: &[u8]) -> Result<Scanned, Result<Bad, StoreError>> {
    let (begin, header) = self::begin(number, bytes).map_err(Ok)?;
    let mut scanned = Scanned {
        reset: header.kind == Kind::Reset,
        notes: begin.notes.clone(),
        summary: Summary::new(begin.position),
        places: Places::default(),
        end: End::Bad(0, Bad::Zeros),
        begin,
    };
    let mut at = header.size();
    loop {
        match scanned.next(Spot { segment: number, offset: at }, bytes).map_err(Err)? {
            Ok(header) if header.kind == Kind::Seal => {
                scanned.end = End::Sealed(at);
                return Ok(scanned);
            }
            Ok(header) => at += header.size(),
            Err(bad) => {
                scanned.end = End::Bad(at, bad);
                return Ok(scanned);
            }
        }
    }
}

/// A segment that must be complete.
pub(super) fn scan_sealed(segment: &SegmentFile) -> Result<Scanned, StoreError> {
    let bytes = read(segment)?;
    let number = segment.number;
    match scan(number, &bytes) {
        Ok(scanned) => match scanned.end {
            End::Sealed(_) => Ok(scanned),
            End::Bad(at, bad) => Err(incomplete(number, at, bad)),
        },
        Err(Ok(bad)) => Err(incomplete(number, 0, bad)),
        Err(Err(error)) => Err(error),
    }
}

impl Scanned {
    /// Takes the record at `spot`, if it is one and continues what came before.
    fn next(&mut self, spot: Spot, bytes: &[u8]) -> Result<Result<Header, Bad>, StoreError> {
        let (header, payload) = match record::read(&bytes[spot.offset as usize..], spot) {
            Ok(record) => record,
            Err(bad) => return Ok(Err(bad)),
        };
        if header.chain != self.summary.end.chain.then(&header, payload) {
            return Ok(Err(Bad::Chain));
        }
        let wrong = |why: &str| Err(damaged(spot.segment, spot.offset, why));
        let note = LogId { index: header.raft_index, term: header.term };
        match header.kind {
            Kind::Batch | Kind::Blank | Kind::Membership => self.entry(spot, &header, payload)?,
            Kind::Vote => self.notes.vote = Some(Bytes::copy_from_slice(payload)),
            Kind::Committed if note.index >= self.summary.end.next => {
                return wrong("it commits an entry that the log does not have");
            }
            Kind::Committed => self.notes.committed = self.notes.committed.max(Some(note)),
            Kind::Purged => self.notes.purged = self.notes.purged.max(Some(note)),
            Kind::Truncate => match Position::read(payload) {
                Some(to) if to.next > self.summary.end.next => return wrong("it makes void what never was"),
                Some(to) if self.notes.committed.is_some_and(|committed| to.next <= committed.index) => {
                    return wrong("it makes a committed entry void");
                }
                Some(to) => self.truncate(to),
                None => return wrong("it does not say where the log goes on"),
            },
            Kind::Seal if payload != self.summary.bytes() => {
                return wrong("the seal does not fit the records before it");
            }
            Kind::Seal => {}
            Kind::Begin | Kind::Reset => return wrong("a segment begins only once"),
        }
        if matches!(header.kind, Kind::Vote | Kind::Committed | Kind::Purged) {
            self.summary.note();
        }
        Ok(Ok(header))
    }

    fn entry(&mut self, spot: Spot, header: &Header, payload: &[u8]) -> Result<(), StoreError> {
        let end = self.summary.end;
        let follows = header.raft_index == end.next
            && header.term >= end.term
            && (header.kind != Kind::Batch || header.index == end.batch + 1);
        if !follows {
            let why = format!(
                "entry {} of term {} with batch {} does not follow entry {:?} with batch {}",
                header.raft_index,
                header.term,
                header.index,
                end.last(),
                end.batch
            );
            return Err(damaged(spot.segment, spot.offset, &why));
        }
        let unreadable = |source| StoreError::Unreadable {
            segment: segment::name(spot.segment),
            offset: spot.offset,
            source,
        };
        let entry = record::entry(header, Bytes::copy_from_slice(payload)).map_err(unreadable)?;
        self.summary.entry(&entry.expect("the kind is an entry's"), header.chain);
        self.places.push(header.raft_index, Offset::new(spot.offset));
        Ok(())
    }

    fn truncate(&mut self, to: Position) {
        self.places.truncate(to.next);
        self.summary.truncate(to);
    }

    /// Gives what was found to `contents`, as its last segment.
    pub fn put(self, contents: &mut Contents, segment: SegmentFile, bytes: u64) -> (Begin, Summary) {
        let sealed = matches!(self.end, End::Sealed(_));
        contents.take_segment(segment, bytes, &self.summary, Some(self.places), sealed);
        contents.notes = self.notes;
        (self.begin, self.summary)
    }
}

/// A record after `at` that was written when `at` was already synced.
pub(super) fn witness(number: u64, bytes: &[u8], at: u64) -> Option<u64> {
    let spot = |offset| Spot { segment: number, offset };
    // A payload may contain anything: as long as the header has its length, pass it.
    let skip = Header::read(&bytes[at as usize..], spot(at)).map_or(ALIGN as u64, |header| header.size());
    let mut later = at + skip;
    let end = used(bytes) as u64;
    while later < end {
        let here = &bytes[later as usize..];
        if here.starts_with(&MAGIC)
            && let Ok(header) = Header::read(here, spot(later))
            && later.saturating_sub(u64::from(header.lag)) > at
        {
            return Some(later);
        }
        later += ALIGN as u64;
    }
    None
}

/// The length without the zeros at the end.
pub(super) fn used(bytes: &[u8]) -> usize {
    const STEP: usize = 4096;
    let blank = |chunk: &[u8]| chunk == &[0; STEP][..chunk.len()];
    let chunks = bytes.chunks(STEP).enumerate();
    let Some((nth, chunk)) = chunks.rev().find(|(_, chunk)| !blank(chunk)) else { return 0 };
    nth * STEP + chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// There is no good record at `at`, and the segment was complete.
pub(super) fn incomplete(number: u64, at: u64, bad: Bad) -> StoreError {
    bad_record(number, at, bad, "and the segment was complete")
}

pub(super) fn bad_record(number: u64, at: u64, bad: Bad, how: &str) -> StoreError {
    match bad {
        Bad::Newer { .. } => {
            StoreError::Newer { file: segment::name(number), offset: at, why: bad.to_string() }
        }
        Bad::Zeros | Bad::Header | Bad::Payload | Bad::Chain if how.is_empty() => {
            damaged(number, at, &bad.to_string())
        }
        Bad::Zeros | Bad::Header | Bad::Payload | Bad::Chain => damaged(number, at, &format!("{bad}, {how}")),
    }
}

pub(super) fn damaged(number: u64, offset: u64, why: &str) -> StoreError {
    StoreError::Damaged { file: segment::name(number), offset, why: why.to_string() }
}

/// Opens a segment.
pub(super) fn open(files: &dyn super::Files, number: u64) -> Result<SegmentFile, StoreError> {
    let file: Arc<dyn File> = files.open(&segment::name(number)).map_err(StoreError::io("open a segment"))?;
    Ok(SegmentFile { number, file })
}

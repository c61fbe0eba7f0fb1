//! What a crash left behind: everything that was safe, and perhaps a torn end.
//!
//! The writer syncs a group before it writes the next one, and each record says how far before it that was
//! (`lag`). So a bad record is one of two things. If a later record says that it was safe, or it lies in a sealed
//! segment, it is damage, and the server must not go on as if the record had never been. Otherwise it belongs to
//! the last group, which nobody was told about: the log ends before it.

use std::sync::Arc;

use super::contents::{Contents, Place, Segment};
use super::files::{File, Files};
use super::record::{self, ALIGN, Bad, Chain, Header, Kind, MAGIC};
use super::segment::{self, SPARE, Summary, UNFINISHED};
use super::writer::Active;
use super::{LogId, StoreError, reading};

pub(super) struct Recovered {
    pub contents: Contents,
    pub chain: Chain,
    pub active: Option<Active>,
}

/// # Errors
/// See [`super::Store::open`].
pub(super) fn recover(files: &dyn Files) -> Result<Recovered, StoreError> {
    let names = files.list().map_err(StoreError::io("list the log's segments"))?;
    let numbers = segment::numbers(&names);
    let mut walk =
        Walk { contents: Contents::default(), chain: Chain::default(), summary: Summary::default() };
    let mut active = None;
    for (position, (number, expected)) in numbers.iter().copied().zip(1..).enumerate() {
        if number != expected {
            return Err(damaged(expected, 0, "the segment is missing"));
        }
        let file = files.open(&segment::name(number)).map_err(StoreError::io("open a segment"))?;
        active = walk.segment(number, file, position + 1 == numbers.len())?;
    }
    if let Some(active) = &active {
        cut(active)?;
    }
    remove_leftovers(files, &names)?;
    Ok(Recovered { contents: walk.contents, chain: walk.chain, active })
}

/// A spare that was not finished, or that is not what it should be.
fn remove_leftovers(files: &dyn Files, names: &[String]) -> Result<(), StoreError> {
    let io = StoreError::io;
    let broken = |name: &String| -> Result<bool, StoreError> {
        let file = files.open(name).map_err(io("open the spare segment"))?;
        Ok(segment::capacity(&*file).map_err(io("measure the spare segment"))?.is_none())
    };
    for name in names {
        if name == UNFINISHED || (name == SPARE && broken(name)?) {
            files.remove(name).map_err(io("remove an unfinished segment"))?;
        }
    }
    Ok(())
}

/// Makes everything after the last good record zero again.
fn cut(active: &Active) -> Result<(), StoreError> {
    let rest = read(&*active.file, active.end, active.capacity)?;
    let torn = used(&rest);
    if torn > 0 {
        tracing::warn!(offset = active.end, bytes = torn, "the log's end was torn by a crash: cut");
        active.file.write_at(&vec![0; torn], active.end).map_err(StoreError::io("cut the log's torn end"))?;
    }
    // Also without a cut: the last process may have died before it synced what it wrote, and the next record will
    // say that everything before it is safe.
    active.file.sync().map_err(StoreError::io("sync the recovered log"))
}

/// The length without the zeros at the end.
fn used(bytes: &[u8]) -> usize {
    const STEP: usize = 4096;
    let blank = |chunk: &[u8]| chunk == &[0; STEP][..chunk.len()];
    let chunks = bytes.chunks(STEP).enumerate();
    let Some((nth, chunk)) = chunks.rev().find(|(_, chunk)| !blank(chunk)) else { return 0 };
    nth * STEP + chunk.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn read(file: &dyn File, from: u64, to: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_at(&mut bytes, from).map_err(StoreError::io("read a segment"))?;
    Ok(bytes)
}

struct Walk {
    contents: Contents,
    chain: Chain,
    summary: Summary,
}

impl Walk {
    /// Takes every record of a segment. If it is not sealed, it is the one in use.
    fn segment(
        &mut self,
        number: u64,
        file: Arc<dyn File>,
        last: bool,
    ) -> Result<Option<Active>, StoreError> {
        let len = file.size().map_err(StoreError::io("measure a segment"))?;
        let capacity = segment::capacity(&*file).map_err(StoreError::io("measure a segment"))?;
        let capacity =
            capacity.ok_or_else(|| damaged(number, len, "the file is not as long as it was made"))?;
        let bytes = read(&*file, 0, capacity)?;
        let position = self.contents.segments.len();
        self.contents.segments.push(Segment { number, file: file.clone() });
        self.summary = Summary::default();
        let mut at = 0;
        loop {
            match record::read(&bytes[at as usize..]) {
                Ok((header, payload)) => {
                    self.record(number, Place::new(position, at), &header, payload)?;
                    if header.kind == Kind::Seal {
                        return Ok(None);
                    }
                    at += header.size();
                }
                Err(bad) => {
                    let end = end_or_damage(number, &bytes, at, bad, last)?;
                    let summary = self.summary;
                    return Ok(Some(Active { file, position, capacity, end, synced: end, summary }));
                }
            }
        }
    }

    fn record(
        &mut self,
        number: u64,
        place: Place,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let wrong = |why: &str| damaged(number, place.offset(), why);
        if header.chain != self.chain.then(header, payload) {
            return Err(wrong("the record does not continue the log before it"));
        }
        let note = LogId { index: header.raft_index, term: header.term };
        match header.kind {
            Kind::Batch | Kind::Blank | Kind::Membership => {
                return self.entry(number, place, header, payload);
            }
            Kind::Vote => self.contents.vote = Some(payload.to_vec().into()),
            Kind::Committed if note.index >= self.contents.next => {
                return Err(wrong("it commits an entry that the log does not have"));
            }
            Kind::Committed => self.contents.committed = Some(note),
            Kind::Purged => self.contents.purged = Some(note),
            Kind::Truncate
                if self.contents.committed.is_some_and(|committed| note.index <= committed.index) =>
            {
                return Err(wrong("it makes a committed entry void"));
            }
            Kind::Truncate => {
                self.contents.truncate(note.index);
                self.chain = reading::last_chain(&self.contents)?;
            }
            Kind::Seal if payload != self.summary.bytes() => {
                return Err(wrong("the seal does not fit the records before it"));
            }
            Kind::Seal => {}
        }
        self.summary.add(None);
        Ok(())
    }

    fn entry(
        &mut self,
        number: u64,
        place: Place,
        header: &Header,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let unreadable = |source| {
            let segment = segment::name(number);
            StoreError::Unreadable { segment, offset: place.offset(), source }
        };
        let bytes = bytes::Bytes::copy_from_slice(payload);
        let entry = record::entry(header, bytes).map_err(unreadable)?.expect("the kind is an entry's");
        if let Some(why) = self.contents.refusal(&entry) {
            return Err(damaged(number, place.offset(), &why));
        }
        self.contents.note(entry.index, entry.term, header.kind == Kind::Batch);
        self.contents.written(&[place]);
        self.summary.add(Some(&entry));
        self.chain = header.chain;
        Ok(())
    }
}

/// Where the log ends, given that there is no good record at `at`.
fn end_or_damage(number: u64, bytes: &[u8], at: u64, bad: Bad, last: bool) -> Result<u64, StoreError> {
    if let Bad::Newer { .. } = bad {
        return Err(StoreError::Newer { segment: segment::name(number), offset: at, why: bad.to_string() });
    }
    if !last {
        return Err(damaged(number, at, &format!("{bad}, and the segment was complete")));
    }
    match witness(bytes, at) {
        Some(later) => {
            Err(damaged(number, at, &format!("{bad}, and the record at byte {later} says it was safe")))
        }
        None => Ok(at),
    }
}

/// A record after `at` that was written when `at` was already synced.
fn witness(bytes: &[u8], at: u64) -> Option<u64> {
    // A payload may contain anything, also what looks like a record: as long as the header tells its length, pass it.
    let skip = Header::read(&bytes[at as usize..]).map_or(ALIGN as u64, |header| header.size());
    let mut later = at + skip;
    let end = used(bytes) as u64;
    while later < end {
        let here = &bytes[later as usize..];
        if here.starts_with(&MAGIC)
            && let Ok(header) = Header::read(here)
            && later.saturating_sub(u64::from(header.lag)) > at
        {
            return Some(later);
        }
        later += ALIGN as u64;
    }
    None
}

fn damaged(number: u64, offset: u64, why: &str) -> StoreError {
    StoreError::Damaged { segment: segment::name(number), offset, why: why.to_string() }
}

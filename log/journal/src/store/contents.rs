//! What the log holds, in memory: where each entry stands, and the newest ones themselves.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use base::Index;

use super::files::File;
use super::places::{Offset, Places, Run};
use super::position::{Notes, Position};
use super::segment::Summary;
use super::{Entry, LogId, Payload};

/// Newest entries kept in memory, in bytes of payload: they serve replication, fold and streams without a read.
/// Older ones are dropped once they are written; more is held only while the disk lags.
pub const TAIL_BYTES: usize = 32 << 20;

/// Segments whose places are kept in memory: 8 bytes for 128 entries, so some 40 MiB for 128 GiB of entries of 200 bytes. When one
/// more is needed, those of the one that was taken in first are forgotten, and looked for again when needed.
pub(super) const PLACED_MAX: usize = 2_048;

/// A segment's file and its number.
#[derive(Clone)]
pub(super) struct SegmentFile {
    pub number: u64,
    pub file: Arc<dyn File>,
}

pub(super) struct Segment {
    pub file: SegmentFile,
    /// Length of the file.
    pub bytes: u64,
    /// Before the first entry in it that counts. The next segment's start, or what is written, ends it.
    pub start: Position,
    /// None while it is in use.
    pub sealed: Option<Sealed>,
    /// Of the entries from `start` on; none when nobody looked for them yet.
    places: Option<Places>,
}

#[derive(Clone, Copy)]
pub(super) struct Sealed {
    /// Time of the last batch in it; 0 when it holds none.
    pub last_time: i64,
}

/// Entries follow each other without a gap from `base` on.
#[derive(Default)]
pub(super) struct Contents {
    pub segments: VecDeque<Segment>,
    /// Before the oldest entry held.
    pub base: Position,
    /// The last entries, up to and including the very last.
    tail: VecDeque<Entry>,
    tail_bytes: usize,
    /// First raft index and term of each run of entries of one term. Before the first run it is that of `base`.
    terms: Vec<(u64, u64)>,
    /// Raft indexes of entries without a batch. Batches are dense, so any batch's raft index follows from these few.
    others: Vec<u64>,
    /// One past the last raft index.
    pub next: u64,
    /// One past the last raft index that is written and synced. The rest stands in `tail`.
    pub written: u64,
    pub notes: Notes,
    /// The newest segment whose first record is synced; 0 when there is none.
    pub begun: u64,
    /// Numbers of the sealed segments that have places, the first taken in first.
    placed: VecDeque<u64>,
}

/// Where entries are found.
pub(super) enum Found {
    Nowhere,
    Memory(Vec<Entry>),
    InFile(InFile),
    /// In a segment whose places are not in memory.
    Unplaced(SegmentFile),
}

/// Entries in one segment.
pub(super) struct InFile {
    pub segment: SegmentFile,
    /// The first one that is looked for.
    pub first: u64,
    /// They lead from `first` or before to the last one.
    pub runs: Vec<Run>,
    /// Where the record begins that follows them, if that is known.
    pub behind: Option<u64>,
}

impl Contents {
    /// The last entry, or the one before the log if it holds none.
    pub fn last(&self) -> Option<LogId> {
        let index = self.next.checked_sub(1)?;
        Some(LogId { index, term: self.last_term() })
    }

    fn last_term(&self) -> u64 {
        self.terms.last().map_or(self.base.term, |(_, term)| *term)
    }

    /// The term of an entry, also of the one right before the oldest; `None` when it is not held.
    pub fn term_of(&self, index: u64) -> Option<u64> {
        if index + 1 < self.base.next || index >= self.next {
            return None;
        }
        Some(match self.terms.partition_point(|(first, _)| *first <= index) {
            0 => self.base.term,
            run => self.terms[run - 1].1,
        })
    }

    /// The log has this entry, or begins right after it.
    pub fn has(&self, id: LogId) -> bool {
        self.term_of(id.index) == Some(id.term)
    }

    /// The log has every entry after this one, and hangs on it.
    pub fn has_all_after(&self, id: LogId) -> bool {
        self.base.next <= id.index + 1 && self.has(id)
    }

    /// The index of the last batch.
    pub fn last_batch(&self) -> Index {
        Index(self.batches_before(self.next))
    }

    /// The index of the last batch at or before `raft_index`, as far as the log reaches.
    pub fn batch_at(&self, raft_index: u64) -> Index {
        Index(self.batches_before((raft_index + 1).clamp(self.base.next, self.next)))
    }

    fn batches_before(&self, end: u64) -> u64 {
        let others = self.others.partition_point(|other| *other < end) as u64;
        self.base.batch + (end - self.base.next) - others
    }

    /// The raft index of batch `index`, which is held.
    pub fn raft_index_of(&self, index: Index) -> u64 {
        let nth = index.0 - self.base.batch - 1;
        let mut batches_before =
            self.others.iter().zip(0..).map(|(other, others)| other - self.base.next - others);
        // Ascending, so a binary search would do; there is one per election or membership change.
        let others = batches_before.by_ref().take_while(|batches| *batches <= nth).count() as u64;
        self.base.next + nth + others
    }

    /// Why `entry` cannot be the next one.
    pub fn refusal(&self, entry: &Entry) -> Option<String> {
        if entry.index != self.next {
            return Some(format!("entry {} does not follow entry {:?}", entry.index, self.last()));
        }
        if self.last().is_some_and(|last| entry.term < last.term) {
            return Some(format!("entry {} goes back to term {}", entry.index, entry.term));
        }
        match &entry.payload {
            Payload::Batch(batch) if batch.index() != self.last_batch().next() => {
                Some(format!("batch {} does not follow batch {}", batch.index(), self.last_batch()))
            }
            _ => None,
        }
    }

    fn note_term(&mut self, first: u64, term: u64) {
        if self.last_term() != term {
            self.terms.push((first, term));
        }
    }

    /// Takes an entry that has no [`Contents::refusal`], and keeps it until it is written and no longer new.
    pub fn push(&mut self, entry: Entry) {
        self.note_term(entry.index, entry.term);
        if !matches!(entry.payload, Payload::Batch(_)) {
            self.others.push(entry.index);
        }
        self.next = entry.index + 1;
        self.tail_bytes += entry.payload.len();
        self.tail.push_back(entry);
    }

    /// The next entries were written to the last segment, here, and synced.
    pub fn written(&mut self, offsets: &[Offset]) {
        let places = self.segments.back_mut().and_then(|segment| segment.places.as_mut());
        if let Some(places) = places {
            (self.written..).zip(offsets).for_each(|(entry, offset)| places.push(entry, *offset));
        }
        self.written += offsets.len() as u64;
        while self.tail_bytes > TAIL_BYTES && self.tail_start() < self.written {
            let oldest = self.tail.pop_front().expect("the tail has bytes");
            self.tail_bytes -= oldest.payload.len();
        }
    }

    /// A segment begins where the log stands.
    pub fn begin(&mut self, file: SegmentFile, bytes: u64, start: Position) {
        let places = Some(Places::default());
        self.segments.push_back(Segment { file, bytes, start, sealed: None, places });
    }

    /// The last segment is complete.
    pub fn seal(&mut self, last_time: i64) {
        let segment = self.segments.back_mut().expect("a segment is in use");
        segment.sealed = Some(Sealed { last_time });
        let number = segment.file.number;
        self.remember(number);
    }

    /// Takes a whole segment as it was found, with the places of its entries or without.
    pub fn take_segment(
        &mut self,
        file: SegmentFile,
        bytes: u64,
        summary: &Summary,
        places: Option<Places>,
        sealed: bool,
    ) {
        let lowest = summary.lowest;
        self.truncate(lowest);
        summary.terms.iter().for_each(|(first, term)| self.note_term(*first, *term));
        self.others.extend_from_slice(&summary.others);
        self.next = summary.end.next;
        self.written = self.next;
        let (number, placed) = (file.number, places.is_some());
        let sealed = sealed.then_some(Sealed { last_time: summary.last_time });
        self.segments.push_back(Segment { file, bytes, start: lowest, sealed, places });
        if sealed.is_some() && placed {
            self.remember(number);
        }
    }

    /// The places of the entries of a sealed segment were looked for.
    pub fn placed(&mut self, number: u64, mut places: Places) {
        let Some(at) = self.segments.iter().position(|segment| segment.file.number == number) else { return };
        // What it holds may have become void since it was written, but never grows.
        places.truncate(self.end_of(at));
        self.segments[at].places = Some(places);
        self.remember(number);
    }

    fn remember(&mut self, number: u64) {
        self.placed.retain(|known| *known != number);
        self.placed.push_back(number);
        if self.placed.len() > PLACED_MAX {
            let oldest = self.placed.pop_front();
            let forget = self.segments.iter_mut().find(|segment| Some(segment.file.number) == oldest);
            if let Some(segment) = forget {
                segment.places = None;
            }
        }
    }

    /// One past the last raft index that is found in a segment.
    fn end_of(&self, segment: usize) -> u64 {
        self.segments.get(segment + 1).map_or(self.written, |next| next.start.next)
    }

    /// Drops the entries from `from` on, none of which is written.
    pub fn forget_from(&mut self, from: u64) {
        while self.tail.back().is_some_and(|entry| entry.index >= from) {
            let dropped = self.tail.pop_back().expect("there is a last one");
            self.tail_bytes -= dropped.payload.len();
        }
        self.terms.truncate(self.terms.partition_point(|(first, _)| *first < from));
        self.others.truncate(self.others.partition_point(|other| *other < from));
        self.next = self.next.min(from);
    }

    /// Drops the entries after `to`.
    pub fn truncate(&mut self, to: Position) {
        self.forget_from(to.next);
        self.written = self.written.min(to.next);
        for segment in self.segments.iter_mut().rev() {
            let keep = to.next.saturating_sub(segment.start.next);
            if let Some(places) = segment.places.as_mut() {
                places.truncate(to.next);
            }
            if keep > 0 {
                break;
            }
            segment.start = to;
        }
        if to.next < self.base.next {
            self.base = to;
        }
    }

    /// Drops everything: the log goes on after `base`, whose outcome is committed and kept elsewhere.
    pub fn reset(&mut self, base: Position) {
        let mut notes = std::mem::take(&mut self.notes);
        (notes.committed, notes.purged) = (notes.committed.max(base.last()), notes.purged.max(base.last()));
        *self = Contents { base, next: base.next, written: base.next, notes, ..Contents::default() };
    }

    /// Drops the oldest segment. There is a later one.
    pub fn forget_oldest(&mut self) {
        self.segments.pop_front();
        self.base = self.segments.front().expect("a later segment").start;
        let first = self.base.next;
        self.terms.drain(..self.terms.partition_point(|(run, _)| *run < first));
        self.others.drain(..self.others.partition_point(|other| *other < first));
    }

    fn tail_start(&self) -> u64 {
        self.next - self.tail.len() as u64
    }

    /// Where `range` begins to be found, which is not below the log: at most `most` entries.
    pub fn find(&self, range: Range<u64>, most: u64) -> Found {
        let (first, end) = (range.start, range.end.min(self.next).min(range.start.saturating_add(most)));
        if first >= end {
            return Found::Nowhere;
        }
        let tail = self.tail_start();
        if first < tail {
            return self.find_in_files(first, end.min(tail));
        }
        let entries = self.tail.range((first - tail) as usize..(end - tail) as usize);
        Found::Memory(entries.cloned().collect())
    }

    /// Where an entry is found in the files, which is written.
    pub fn find_written(&self, index: u64) -> Found {
        self.find_in_files(index, index + 1)
    }

    fn find_in_files(&self, first: u64, end: u64) -> Found {
        // The last of those that begin there: the ones before it hold nothing that counts.
        let at = self.segments.partition_point(|segment| segment.start.next <= first) - 1;
        let segment = &self.segments[at];
        let (file, last) = (segment.file.clone(), end.min(self.end_of(at)));
        let Some(places) = &segment.places else { return Found::Unplaced(file) };
        let (runs, behind) = places.runs(first, last);
        Found::InFile(InFile { segment: file, first, runs, behind })
    }

    /// The places of the segment `number` are not in memory.
    pub fn is_unplaced(&self, number: u64) -> bool {
        self.segments.iter().any(|segment| segment.file.number == number && segment.places.is_none())
    }

    /// The oldest batch that is held, or the first to come.
    pub fn horizon(&self) -> Index {
        Index(self.base.batch + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(index: u64, term: u64) -> Entry {
        Entry { index, term, payload: Payload::Blank }
    }

    /// Raft 0 1 2 3 4 5 holds - - 1 2 - 3, and `base` moves all of it.
    fn contents(base: Position) -> Contents {
        let mut contents = Contents::default();
        contents.reset(base);
        for (index, is_batch) in (base.next..).zip([false, false, true, true, false, true]) {
            contents.note_term(index, base.term + 1);
            if !is_batch {
                contents.others.push(index);
            }
            contents.next = index + 1;
        }
        contents
    }

    #[test]
    fn batches_and_entries_find_each_other() {
        for (base, batch) in [(0, 0), (100, 40)] {
            let position = Position { next: base, batch, ..Position::default() };
            let mut contents = contents(position);
            let raft = [1, 2, 3].map(|index| contents.raft_index_of(Index(batch + index)) - base);
            assert_eq!(raft, [2, 3, 5]);
            let batches = [0, 1, 2, 3, 4, 5].map(|raft| contents.batch_at(base + raft).0 - batch);
            assert_eq!(batches, [0, 0, 1, 2, 2, 3]);
            assert_eq!(contents.last_batch(), Index(batch + 3));
            contents.forget_from(base + 3);
            assert_eq!((contents.last_batch(), contents.next), (Index(batch + 1), base + 3));
            assert_eq!(contents.raft_index_of(Index(batch + 1)), base + 2);
        }
    }

    #[test]
    fn terms_are_known_from_the_entry_before_the_log_on() {
        let contents = contents(Position { next: 10, term: 4, ..Position::default() });
        assert_eq!(
            [8, 9, 10, 15, 16].map(|index| contents.term_of(index)),
            [None, Some(4), Some(5), Some(5), None]
        );
        let mut empty = Contents::default();
        assert_eq!((empty.last(), empty.term_of(0)), (None, None));
        empty.reset(Position { next: 10, term: 4, ..Position::default() });
        assert_eq!(empty.last(), Some(LogId { index: 9, term: 4 }));
    }

    #[test]
    fn an_entry_out_of_order_is_refused() {
        let mut contents = Contents::default();
        contents.push(blank(0, 5));
        assert!(contents.refusal(&blank(1, 5)).is_none());
        assert!(contents.refusal(&blank(2, 5)).is_some());
        assert!(contents.refusal(&blank(1, 4)).is_some());
    }
}

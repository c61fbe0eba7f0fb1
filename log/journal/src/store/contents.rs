//! What the log holds, in memory: where each entry stands, and the newest ones themselves.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Index;
use bytes::Bytes;

use super::files::File;
use super::{Entry, LogId, Payload};

/// Newest entries kept in memory, in bytes of payload: they serve replication, fold and streams without a read.
/// Older ones are dropped once they are written; more is held only while the disk lags.
pub const TAIL_BYTES: usize = 32 << 20;

/// Where an entry's record begins. Offsets are multiples of 16, so 32 bits reach 64 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Position in [`Contents::segments`].
    pub segment: u32,
    pub sixteenths: u32,
}

#[derive(Clone)]
pub(super) struct Segment {
    pub number: u64,
    pub file: Arc<dyn File>,
}

/// Entries have the raft indexes 0, 1, 2 and so on: none is missing and none is forgotten.
#[derive(Default)]
pub(super) struct Contents {
    pub segments: Vec<Segment>,
    /// By raft index. Shorter than the log: the rest is not written yet and stands in `tail`.
    pub places: Vec<Place>,
    /// The last entries, up to and including the very last.
    tail: VecDeque<Entry>,
    tail_bytes: usize,
    /// First raft index and term of each run of entries of one term.
    terms: Vec<(u64, u64)>,
    /// Raft indexes of entries without a batch. Batches are dense, so these few tell any batch's raft index.
    others: Vec<u64>,
    /// One past the last raft index.
    pub next: u64,
    pub vote: Option<Bytes>,
    pub committed: Option<LogId>,
    pub purged: Option<LogId>,
}

impl Place {
    pub fn new(segment: usize, offset: u64) -> Place {
        let segment = u32::try_from(segment).expect("fewer than 4 billion segments");
        Place { segment, sixteenths: u32::try_from(offset / 16).expect("segments are smaller than 64 GiB") }
    }

    pub fn offset(self) -> u64 {
        u64::from(self.sixteenths) * 16
    }
}

impl Contents {
    pub fn last(&self) -> Option<LogId> {
        let index = self.next.checked_sub(1)?;
        Some(LogId { index, term: self.terms.last().expect("an entry has a term").1 })
    }

    /// How many batches there are: the index of the last one.
    pub fn last_batch(&self) -> Index {
        Index(self.next - self.others.len() as u64)
    }

    /// The index of the last batch at or before `raft_index`.
    pub fn batch_at(&self, raft_index: u64) -> Index {
        let others = self.others.partition_point(|other| *other <= raft_index) as u64;
        Index((raft_index + 1).min(self.next).saturating_sub(others))
    }

    /// The raft index of batch `index`, which is at least 1.
    pub fn raft_index_of(&self, index: Index) -> u64 {
        let mut batches_before = self.others.iter().zip(0..).map(|(other, nth)| other - nth);
        // Ascending, so a binary search would do; there is one per election or membership change.
        let others = batches_before.by_ref().take_while(|batches| *batches < index.0).count() as u64;
        index.0 - 1 + others
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

    /// Notes an entry that has no [`Contents::refusal`], without keeping it.
    pub fn note(&mut self, index: u64, term: u64, is_batch: bool) {
        if self.terms.last().is_none_or(|(_, last)| *last != term) {
            self.terms.push((index, term));
        }
        if !is_batch {
            self.others.push(index);
        }
        self.next = index + 1;
    }

    /// Notes an entry and keeps it until it is written and no longer new.
    pub fn push(&mut self, entry: Entry) {
        self.note(entry.index, entry.term, matches!(entry.payload, Payload::Batch(_)));
        self.tail_bytes += entry.payload.len();
        self.tail.push_back(entry);
    }

    /// The next entries were written here.
    pub fn written(&mut self, places: &[Place]) {
        self.places.extend_from_slice(places);
        while self.tail_bytes > TAIL_BYTES && self.tail_start() < self.places.len() as u64 {
            let oldest = self.tail.pop_front().expect("the tail has bytes");
            self.tail_bytes -= oldest.payload.len();
        }
    }

    /// Drops the entries from `from` on.
    pub fn truncate(&mut self, from: u64) {
        while self.tail.back().is_some_and(|entry| entry.index >= from) {
            let dropped = self.tail.pop_back().expect("there is a last one");
            self.tail_bytes -= dropped.payload.len();
        }
        self.places.truncate(from as usize);
        self.terms.truncate(self.terms.partition_point(|(first, _)| *first < from));
        self.others.truncate(self.others.partition_point(|other| *other < from));
        self.next = self.next.min(from);
    }

    pub fn tail_start(&self) -> u64 {
        self.next - self.tail.len() as u64
    }

    /// The entries kept in memory from `from` on, which is at or after [`Contents::tail_start`].
    pub fn tail_from(&self, from: u64) -> impl Iterator<Item = &Entry> {
        self.tail.range((from - self.tail_start()) as usize..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_entries_find_each_other() {
        let mut contents = Contents::default();
        // Raft 0 1 2 3 4 5 holds - - 1 2 - 3.
        for (index, is_batch) in (0..).zip([false, false, true, true, false, true]) {
            contents.note(index, 1, is_batch);
        }
        assert_eq!([1, 2, 3].map(|index| contents.raft_index_of(Index(index))), [2, 3, 5]);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|raft| contents.batch_at(raft).0), [0, 0, 1, 2, 2, 3]);
        assert_eq!(contents.last_batch(), Index(3));
        contents.truncate(3);
        assert_eq!((contents.last_batch(), contents.next), (Index(1), 3));
        assert_eq!(contents.raft_index_of(Index(2)), 3);
    }

    #[test]
    fn an_entry_out_of_order_is_refused() {
        let mut contents = Contents::default();
        contents.note(0, 5, false);
        let blank = |index, term| Entry { index, term, payload: Payload::Blank };
        assert!(contents.refusal(&blank(1, 5)).is_none());
        assert!(contents.refusal(&blank(2, 5)).is_some());
        assert!(contents.refusal(&blank(1, 4)).is_some());
    }
}

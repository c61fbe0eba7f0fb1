//! What was applied since the last image: how many bytes, where it is in the log, and the members at each entry.

use std::collections::VecDeque;

use base::Index;
use parking_lot::Mutex;

use crate::config::StoredMembership;

/// What raft keeps of the log before an image, so that a follower that is a little behind is sent this and not an image:
/// so many entries or so many bytes, whichever is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub entries: u64,
    pub bytes: u64,
}

/// What is kept by default: about as much as it takes until the next image.
pub const TAIL: Tail = Tail { entries: 100_000, bytes: 64 << 20 };

/// Between two marks; what lies between is read from the log when it has to be known.
const MARK_BYTES: u64 = 64 << 10;

#[derive(Default)]
pub(crate) struct SinceImage(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// In effect at the image kept last, and since then.
    members: Vec<StoredMembership>,
    marks: VecDeque<Mark>,
    /// Of all batches that were applied.
    bytes: u64,
    /// Of those that the image kept last holds.
    kept: u64,
}

/// Up to batch `index`, which is in entry `entry`, it was so many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub index: Index,
    pub entry: u64,
    pub bytes: u64,
}

impl SinceImage {
    /// Everything before is in an image.
    pub fn restored(&self, members: StoredMembership, index: Index, entry: u64) {
        let mark = Mark { index, entry, bytes: 0 };
        *self.0.lock() = Inner { members: vec![members], marks: [mark].into(), bytes: 0, kept: 0 };
    }

    pub fn batch(&self, index: Index, entry: u64, bytes: usize) {
        let mut inner = self.0.lock();
        inner.bytes += bytes as u64;
        let last = inner.marks.back().map_or(0, |mark| mark.bytes);
        if inner.bytes - last >= MARK_BYTES {
            let mark = Mark { index, entry, bytes: inner.bytes };
            inner.marks.push_back(mark);
        }
    }

    pub fn members(&self, members: StoredMembership) {
        self.0.lock().members.push(members);
    }

    /// The members at `entry`.
    pub fn members_at(&self, entry: u64) -> StoredMembership {
        let inner = self.0.lock();
        let before = |members: &&StoredMembership| members.log_id().is_none_or(|id| id.index <= entry);
        inner.members.iter().rev().find(before).cloned().unwrap_or_default()
    }

    /// Bytes of batches that are in no image.
    pub fn unkept(&self) -> u64 {
        let inner = self.0.lock();
        inner.bytes - inner.kept
    }

    /// The last mark at or before batch `index`.
    pub fn mark_before(&self, index: Index) -> Mark {
        let inner = self.0.lock();
        inner.marks.iter().rev().find(|mark| mark.index <= index).copied().unwrap_or_default()
    }

    /// An image of everything up to `upto` is kept. Returns the entry up to which raft may forget.
    pub fn kept(&self, upto: Mark, tail: Tail) -> Option<u64> {
        let mut inner = self.0.lock();
        inner.kept = upto.bytes;
        let before = |members: &StoredMembership| members.log_id().is_none_or(|id| id.index <= upto.entry);
        let outdated = inner.members.partition_point(before).saturating_sub(1);
        inner.members.drain(..outdated);
        let far = |mark: &Mark| mark.bytes + tail.bytes <= upto.bytes;
        let too_large = inner.marks.partition_point(far);
        let first = too_large.checked_sub(1).map(|last| inner.marks[last].entry);
        // The last of them stays, to count from.
        inner.marks.drain(..too_large.saturating_sub(1));
        // The next image counts from here: the log may be gone from any earlier mark on by then.
        let place = inner.marks.partition_point(|mark| mark.index < upto.index);
        inner.marks.insert(place, upto);
        first.max(upto.entry.checked_sub(tail.entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_image_is_counted() {
        let since_image = SinceImage::default();
        (1..=10).for_each(|index| since_image.batch(Index(index), index, 40 << 10));
        assert_eq!(since_image.unkept(), 400 << 10);
        let before = since_image.mark_before(Index(5));
        assert_eq!(before, Mark { index: Index(4), entry: 4, bytes: 160 << 10 });
        assert_eq!(since_image.kept(Mark { index: Index(5), entry: 5, bytes: 200 << 10 }, TAIL), None);
        assert_eq!(since_image.unkept(), 200 << 10);
    }

    #[test]
    fn nothing_before_an_image_is_needed_for_the_next_one() {
        let since_image = SinceImage::default();
        (1..=3).for_each(|index| since_image.batch(Index(index), index, 30 << 10));
        let image = Mark { index: Index(2), entry: 2, bytes: 60 << 10 };
        since_image.kept(image, TAIL);
        assert_eq!(since_image.mark_before(Index(2)), image);
        assert_eq!(since_image.mark_before(Index(3)).index, Index(3));
        since_image.batch(Index(4), 4, 30 << 10);
        assert_eq!(since_image.mark_before(Index(4)).index, Index(3));
    }

    #[test]
    fn raft_keeps_a_tail_of_few_entries_or_few_bytes() {
        let small = SinceImage::default();
        (1..=150_000).for_each(|index| small.batch(Index(index), index, 100));
        let all = Mark { index: Index(150_000), entry: 150_000, bytes: 15_000_000 };
        assert_eq!(small.kept(all, TAIL), Some(50_000));
        let large = SinceImage::default();
        (1..=200).for_each(|index| large.batch(Index(index), index, 1 << 20));
        let all = Mark { index: Index(200), entry: 200, bytes: 200 << 20 };
        assert_eq!(large.kept(all, TAIL), Some(136));
    }
}

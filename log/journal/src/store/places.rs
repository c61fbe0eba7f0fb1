//! Where the entries of a segment stand: of some of them, from which the others are found by what each record says of its length.

use super::record::ALIGN;

/// Entries from one place to the next at most.
const STRIDE: u64 = 128;

/// Where an entry's record begins. Offsets are multiples of 16, so 32 bits reach 64 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset(u32);

/// Of one segment, ascending.
#[derive(Default)]
pub(super) struct Places {
    /// The first entry that has a place; the others count from there.
    first: u64,
    places: Vec<(u32, Offset)>,
    /// The next entry does not stand behind the one before it: records that became void lie between.
    interrupted: bool,
}

/// Entries of a segment that stand behind each other, from `offset` on. Records that are no entries may lie between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub first: u64,
    /// One past the last.
    pub end: u64,
    pub offset: u64,
}

impl Offset {
    pub fn new(bytes: u64) -> Offset {
        Offset(u32::try_from(bytes / ALIGN as u64).expect("segments are smaller than 64 GiB"))
    }

    pub fn bytes(self) -> u64 {
        u64::from(self.0) * ALIGN as u64
    }
}

impl Places {
    /// The next entry begins at `offset`.
    pub fn push(&mut self, entry: u64, offset: Offset) {
        if self.places.is_empty() {
            self.first = entry;
        }
        let place = u32::try_from(entry - self.first).expect("each entry of a segment takes bytes of it");
        let is_far = self.places.last().is_none_or(|(last, _)| u64::from(place - last) >= STRIDE);
        if is_far || self.interrupted {
            self.places.push((place, offset));
            self.interrupted = false;
        }
    }

    /// The entries from `to` on are void.
    pub fn truncate(&mut self, to: u64) {
        self.places.truncate(self.count_before(to));
        self.interrupted = true;
    }

    /// How the entries from `first` to `end` are found, which the segment holds: the first run begins at `first` or before. And where
    /// the record begins that follows the last run, if that is known.
    pub fn runs(&self, first: u64, end: u64) -> (Vec<Run>, Option<u64>) {
        let (from, to) = (self.count_before(first + 1).saturating_sub(1), self.count_before(end));
        let run = |at: usize| {
            let (place, offset) = self.places[at];
            let next = self.places.get(at + 1).map_or(end, |(next, _)| self.first + u64::from(*next));
            Run { first: self.first + u64::from(place), end: next.min(end), offset: offset.bytes() }
        };
        let behind = self.places.get(to).map(|(_, offset)| offset.bytes());
        ((from..to).map(run).collect(), behind)
    }

    /// Places of entries before that one.
    fn count_before(&self, entry: u64) -> usize {
        self.places.partition_point(|(place, _)| self.first + u64::from(*place) < entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of 64 bytes, from 1,000 on.
    fn places(entries: u64) -> Places {
        let mut places = Places::default();
        (0..entries).for_each(|nth| places.push(1_000 + nth, Offset::new(nth * 64)));
        places
    }

    fn run(first: u64, end: u64, offset: u64) -> Run {
        Run { first, end, offset }
    }

    #[test]
    fn an_entry_is_found_from_the_place_before_it() {
        let places = places(300);
        assert_eq!(places.places.len(), 3);
        assert_eq!(places.runs(1_000, 1_001), (vec![run(1_000, 1_001, 0)], Some(128 * 64)));
        assert_eq!(places.runs(1_127, 1_128), (vec![run(1_000, 1_128, 0)], Some(128 * 64)));
        let two = vec![run(1_000, 1_128, 0), run(1_128, 1_140, 128 * 64)];
        assert_eq!(places.runs(1_100, 1_140), (two, Some(256 * 64)));
        assert_eq!(places.runs(1_299, 1_300), (vec![run(1_256, 1_300, 256 * 64)], None));
    }

    #[test]
    fn what_became_void_lies_between_two_runs() {
        let mut places = places(10);
        places.truncate(1_004);
        (0..3).for_each(|nth| places.push(1_004 + nth, Offset::new(8_000 + nth * 64)));
        let both = vec![run(1_000, 1_004, 0), run(1_004, 1_007, 8_000)];
        assert_eq!(places.runs(1_002, 1_007), (both, None));
        assert_eq!(places.runs(1_003, 1_004), (vec![run(1_000, 1_004, 0)], Some(8_000)));
        assert_eq!(places.runs(1_005, 1_006), (vec![run(1_004, 1_006, 8_000)], None));
        // Below the first: the segment begins anew.
        places.truncate(700);
        places.push(700, Offset::new(9_008));
        assert_eq!(places.runs(700, 701), (vec![run(700, 701, 9_008)], None));
    }
}

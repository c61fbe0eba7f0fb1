use std::collections::{BTreeMap, BTreeSet};

use state::alloc::Alloc;

/// Which numbers of a group's allocation names are in use, and how often.
#[derive(Clone, Debug)]
pub struct Names {
    taken: BTreeMap<u32, u32>,
    count: u32,
}

impl Names {
    /// Of allocations in their order.
    pub fn new<'a>(count: u32, allocs: impl Iterator<Item = &'a Alloc>) -> Names {
        let mut taken: Vec<(u32, u32)> = Vec::new();
        for alloc in allocs {
            match taken.last_mut() {
                Some((index, holders)) if *index == alloc.name_index => *holders += 1,
                _ => taken.push((alloc.name_index, 1)),
            }
        }
        debug_assert!(taken.is_sorted_by(|a, b| a.0 < b.0), "allocations come in the order of their names");
        Names { taken: taken.into_iter().collect(), count }
    }

    fn take(&mut self, index: u32) {
        *self.taken.entry(index).or_default() += 1;
    }

    /// Frees and returns the `wanted` highest numbers.
    pub fn highest(&mut self, wanted: usize) -> BTreeSet<u32> {
        let highest: BTreeSet<u32> = self.taken.keys().rev().take(wanted).copied().collect();
        self.taken.retain(|index, _| !highest.contains(index));
        highest
    }

    /// One allocation less has this number.
    pub fn free(&mut self, index: u32) {
        if let Some(holders) = self.taken.get_mut(&index) {
            *holders -= 1;
            if *holders == 0 {
                self.taken.remove(&index);
            }
        }
    }

    pub fn is_shared(&self, index: u32) -> bool {
        self.taken.get(&index).is_some_and(|holders| *holders > 1)
    }

    /// Takes numbers: the lowest free ones below the count, and if those run out 0, 1, 2 and so on again.
    pub fn next(&mut self, wanted: usize) -> Vec<u32> {
        let free = (0..self.count).filter(|index| !self.taken.contains_key(index));
        let next: Vec<u32> = free.chain(0..).take(wanted).collect();
        next.iter().for_each(|index| self.take(*index));
        next
    }

    /// Numbers for canaries: first those of allocations that they may replace, then free ones, both below the count and
    /// not `held` by other canaries; if those run out, the count and above.
    pub fn next_canaries(
        &mut self,
        wanted: usize,
        held: &BTreeSet<u32>,
        replaced: &BTreeSet<u32>,
    ) -> Vec<u32> {
        let is_ours = |index: &u32| *index < self.count && !held.contains(index);
        let replaced: Vec<u32> = replaced.iter().copied().filter(is_ours).collect();
        let free = (0..self.count).filter(|index| is_ours(index) && !self.taken.contains_key(index));
        let above = (self.count..).filter(|index| !held.contains(index));
        let next: Vec<u32> = replaced.iter().copied().chain(free).chain(above).take(wanted).collect();
        // A canary shares the number of what it may replace.
        next.iter().filter(|index| !replaced.contains(index)).for_each(|index| self.take(*index));
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u32, taken: &[u32]) -> Names {
        let mut names = Names { taken: BTreeMap::new(), count };
        taken.iter().for_each(|index| names.take(*index));
        names
    }

    /// B44.
    #[test]
    fn the_next_names_are_the_lowest_free_ones_and_then_overlap() {
        assert_eq!(names(8, &[0, 1, 2, 3, 4, 6]).next(4), [5, 7, 0, 1]);
        assert_eq!(names(3, &[]).next(2), [0, 1]);
    }

    /// B45.
    #[test]
    fn the_highest_names_leave() {
        let mut taken = names(10, &[0, 1, 5, 9]);
        assert_eq!(taken.highest(3), BTreeSet::from([9, 5, 1]));
        assert_eq!(taken.next(3), [1, 2, 3]);
        assert_eq!(names(10, &[0, 1, 5, 9]).highest(9), BTreeSet::from([0, 1, 5, 9]));
    }

    /// B46, B47.
    #[test]
    fn canaries_are_named_after_what_they_may_replace() {
        let all = BTreeSet::from([0, 1, 2]);
        assert_eq!(names(3, &[0, 1, 2]).next_canaries(5, &BTreeSet::new(), &all), [0, 1, 2, 3, 4]);
        assert_eq!(names(3, &[0, 1, 2]).next_canaries(1, &BTreeSet::from([0]), &all), [1]);
        assert_eq!(names(4, &[0, 1]).next_canaries(3, &BTreeSet::from([4]), &BTreeSet::from([1])), [1, 2, 3]);
    }

    #[test]
    fn a_shared_name_loses_one_holder_at_a_time() {
        let mut taken = names(3, &[0, 0, 1]);
        assert!(taken.is_shared(0) && !taken.is_shared(1));
        taken.free(0);
        assert!(!taken.is_shared(0));
        assert_eq!(taken.next(1), [2]);
    }
}

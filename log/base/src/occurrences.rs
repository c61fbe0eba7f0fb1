use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what others can have happen as often as they like, and says when that is worth a line in a log: each time the
/// number doubles. So nobody fills the disk.
#[derive(Debug, Default)]
pub struct Occurrences(AtomicU64);

impl Occurrences {
    /// It happened once more. The number, if there is to be a line about it.
    pub fn add(&self) -> Option<u64> {
        self.add_many(1)
    }

    /// It happened that many times more. The number, if there is to be a line about it.
    pub fn add_many(&self, more: u64) -> Option<u64> {
        let before = self.0.fetch_add(more, Ordering::Relaxed);
        let count = before + more;
        (before.checked_ilog2() != count.checked_ilog2()).then_some(count)
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_each_time_the_number_doubles() {
        let seen = Occurrences::default();
        let lines: Vec<u64> = (0..20).filter_map(|_| seen.add()).collect();
        assert_eq!((lines, seen.count()), (vec![1, 2, 4, 8, 16], 20));
        assert_eq!([seen.add_many(0), seen.add_many(5), seen.add_many(100)], [None, None, Some(125)]);
        assert_eq!(Occurrences::default().add_many(3), Some(3));
    }
}

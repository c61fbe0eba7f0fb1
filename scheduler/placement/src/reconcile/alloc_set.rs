use base::Index;
use model::AllocId;
use state::alloc::Alloc;

/// The order of allocations wherever it matters: by number in the name, then by age, then by id.
pub type Order = (u32, Index, AllocId);

pub fn order(alloc: &Alloc) -> Order {
    (alloc.name_index, alloc.created, alloc.id)
}

/// Allocations in their order. A set is made at once, read often, and loses few: so it is a sorted list, in which what was
/// removed leaves a gap. A job may have 100,000.
#[derive(Clone, Debug, Default)]
pub struct AllocSet<'a> {
    rows: Vec<(Order, Option<&'a Alloc>)>,
    /// Rows that are no gaps.
    len: usize,
}

impl<'a> AllocSet<'a> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn remove(&mut self, alloc: &Alloc) -> bool {
        let removed = self.find(alloc).and_then(|row| self.rows[row].1.take());
        self.len -= usize::from(removed.is_some());
        removed.is_some()
    }

    pub fn contains(&self, alloc: &Alloc) -> bool {
        self.find(alloc).is_some_and(|row| self.rows[row].1.is_some())
    }

    pub fn append(&mut self, other: AllocSet<'a>) {
        if !other.is_empty() {
            *self = self.iter().chain(other.iter()).collect();
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Alloc> {
        self.rows.iter().filter_map(|(_, alloc)| *alloc)
    }

    fn find(&self, alloc: &Alloc) -> Option<usize> {
        let order = order(alloc);
        self.rows.binary_search_by(|row| row.0.cmp(&order)).ok()
    }
}

impl<'a> FromIterator<&'a Alloc> for AllocSet<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Alloc>>(allocs: I) -> AllocSet<'a> {
        let mut rows: Vec<_> = allocs.into_iter().map(|alloc| (order(alloc), Some(alloc))).collect();
        if !rows.is_sorted_by(|a, b| a.0 < b.0) {
            rows.sort_unstable_by_key(|row| row.0);
            rows.dedup_by_key(|row| row.0);
        }
        AllocSet { len: rows.len(), rows }
    }
}

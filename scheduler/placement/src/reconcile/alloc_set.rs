use std::collections::BTreeMap;

use base::Index;
use model::AllocId;
use state::alloc::Alloc;

/// The order of allocations wherever it matters: by number in the name, then by age, then by id.
pub type Order = (u32, Index, AllocId);

pub fn order(alloc: &Alloc) -> Order {
    (alloc.name_index, alloc.created, alloc.id)
}

/// Allocations in their order.
#[derive(Clone, Debug, Default)]
pub struct AllocSet<'a>(BTreeMap<Order, &'a Alloc>);

impl<'a> AllocSet<'a> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn insert(&mut self, alloc: &'a Alloc) {
        self.0.insert(order(alloc), alloc);
    }

    pub fn remove(&mut self, alloc: &Alloc) -> bool {
        self.0.remove(&order(alloc)).is_some()
    }

    pub fn contains(&self, alloc: &Alloc) -> bool {
        self.0.contains_key(&order(alloc))
    }

    pub fn append(&mut self, other: AllocSet<'a>) {
        self.0.extend(other.0);
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Alloc> {
        self.0.values().copied()
    }
}

impl<'a> FromIterator<&'a Alloc> for AllocSet<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Alloc>>(allocs: I) -> AllocSet<'a> {
        AllocSet(allocs.into_iter().map(|alloc| (order(alloc), alloc)).collect())
    }
}

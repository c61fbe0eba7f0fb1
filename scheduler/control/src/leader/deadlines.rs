//! Deadlines by key.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Time};

/// At most one deadline for each key.
#[derive(Debug)]
pub struct Deadlines<K> {
    of: BTreeMap<K, Time>,
    /// A set, not a heap: a key that gets another deadline must lose its old one at once, or live keys would fill the
    /// queue with dead entries.
    queue: BTreeSet<(Time, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Deadlines { of: BTreeMap::new(), queue: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    pub fn set(&mut self, key: K, deadline: Time) {
        self.forget(key);
        self.of.insert(key, deadline);
        self.queue.insert((deadline, key));
    }

    /// Not later than `deadline`: an earlier one stays.
    pub fn set_by(&mut self, key: K, deadline: Time) {
        let sooner = self.of.get(&key).map_or(deadline, |own| deadline.min(*own));
        self.set(key, sooner);
    }

    pub fn forget(&mut self, key: K) {
        if let Some(deadline) = self.of.remove(&key) {
            self.queue.remove(&(deadline, key));
        }
    }

    /// All come so much later; earlier, if it is negative.
    pub fn shift(&mut self, by: Duration) {
        self.of.values_mut().for_each(|deadline| *deadline = deadline.plus(by));
        self.queue = self.of.iter().map(|(key, deadline)| (*deadline, *key)).collect();
    }

    pub fn clear(&mut self) {
        self.of.clear();
        self.queue.clear();
    }

    pub fn get(&self, key: K) -> Option<Time> {
        self.of.get(&key).copied()
    }

    /// The earliest of all.
    pub fn next(&self) -> Option<Time> {
        self.queue.first().map(|(deadline, _)| *deadline)
    }

    /// Removes and returns the key that has been due for longest, if any is due.
    pub fn take_due(&mut self, now: Time) -> Option<K> {
        let (_, key) = self.queue.first().copied().filter(|(deadline, _)| *deadline <= now)?;
        self.forget(key);
        Some(key)
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

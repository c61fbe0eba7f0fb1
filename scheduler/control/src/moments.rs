//! What has to be looked at, and when.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;

/// At most one moment for each key.
#[derive(Debug)]
pub struct Moments<K> {
    of: BTreeMap<K, Time>,
    /// A set, not a heap: what gets another moment leaves its old one at once.
    queue: BTreeSet<(Time, K)>,
}

impl<K> Default for Moments<K> {
    fn default() -> Self {
        Moments { of: BTreeMap::new(), queue: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Moments<K> {
    pub fn set(&mut self, key: K, moment: Time) {
        self.forget(key);
        self.of.insert(key, moment);
        self.queue.insert((moment, key));
    }

    /// Not later than `moment`: what is due sooner stays so.
    pub fn set_by(&mut self, key: K, moment: Time) {
        let sooner = self.of.get(&key).map_or(moment, |own| moment.min(*own));
        self.set(key, sooner);
    }

    pub fn forget(&mut self, key: K) {
        if let Some(moment) = self.of.remove(&key) {
            self.queue.remove(&(moment, key));
        }
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
        self.queue.first().map(|(moment, _)| *moment)
    }

    /// Takes out what has been due for longest, if anything is.
    pub fn take_due(&mut self, now: Time) -> Option<K> {
        let (_, key) = self.queue.first().copied().filter(|(moment, _)| *moment <= now)?;
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

//! Updates that the servers have not acknowledged yet: the latest of each allocation, sent in batches.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::document::Allocation;

use crate::alloc::status;
use crate::store::Store;

/// Ordinary changes are sent every so many ticks; a changed client status at the next one.
const TYPICAL_TICKS: u32 = 5;

/// Updates sent in one call; the rest goes with the next tick.
const BATCH_MAX: usize = 512;

/// Holds at most one update an allocation, and what was last acknowledged of each.
#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<String, Allocation>,
    acknowledged: BTreeMap<String, Allocation>,
    ticks: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Urgency {
    /// The server knows all of it.
    None,
    Typical,
    Urgent,
}

impl Queue {
    /// What to send at this tick; empty for nothing. What the server knows already is dropped.
    fn take(&mut self) -> Vec<Allocation> {
        let acknowledged = &self.acknowledged;
        self.waiting.retain(|id, update| urgency(update, acknowledged.get(id)) > Urgency::None);
        let urgent = self
            .waiting
            .iter()
            .any(|(id, update)| urgency(update, self.acknowledged.get(id)) == Urgency::Urgent);
        self.ticks += 1;
        if !urgent && !self.ticks.is_multiple_of(TYPICAL_TICKS) {
            return Vec::new();
        }
        let rest = self.waiting.keys().nth(BATCH_MAX).cloned();
        let rest = rest.map(|first| self.waiting.split_off(&first)).unwrap_or_default();
        std::mem::replace(&mut self.waiting, rest).into_values().collect()
    }

    /// Puts back what could not be sent, unless something newer waits.
    fn put_back(&mut self, batch: Vec<Allocation>) {
        for update in batch {
            self.waiting.entry(update.id.clone()).or_insert(update);
        }
    }
}

fn urgency(update: &Allocation, acknowledged: Option<&Allocation>) -> Urgency {
    match acknowledged {
        None if update.client_status == "failed" => Urgency::Urgent,
        None => Urgency::Typical,
        Some(known) if known.client_status != update.client_status => Urgency::Urgent,
        Some(known) if known != update => Urgency::Typical,
        Some(_) => Urgency::None,
    }
}

/// The queue between the allocations and the sender.
#[derive(Debug)]
pub struct Updates {
    queue: Mutex<Queue>,
    store: Store,
}

impl Updates {
    pub fn new(store: Store) -> Updates {
        Updates { queue: Mutex::default(), store }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what waits for this allocation.
    pub fn put(&self, update: Allocation) {
        self.lock().waiting.insert(update.id.clone(), update);
    }

    /// Sends at the next tick even what the server acknowledged before: its state may have been restored since.
    pub fn put_again(&self, update: Allocation) {
        let mut queue = self.lock();
        queue.acknowledged.remove(&update.id);
        queue.ticks = TYPICAL_TICKS - 1;
        queue.waiting.insert(update.id.clone(), update);
    }

    /// What was acknowledged to an earlier agent.
    pub fn restore(&self, acknowledged: Allocation) {
        self.lock().acknowledged.insert(acknowledged.id.clone(), acknowledged);
    }

    /// The servers have acknowledged that this allocation has ended.
    pub fn is_end_known(&self, alloc_id: &str) -> bool {
        self.lock()
            .acknowledged
            .get(alloc_id)
            .is_some_and(|update| status::is_terminal(&update.client_status))
    }

    pub fn forget(&self, alloc_id: &str) {
        let mut queue = self.lock();
        queue.waiting.remove(alloc_id);
        queue.acknowledged.remove(alloc_id);
    }

    pub fn take(&self) -> Vec<Allocation> {
        self.lock().take()
    }

    pub fn put_back(&self, batch: Vec<Allocation>) {
        self.lock().put_back(batch);
    }

    pub fn acknowledge(&self, batch: Vec<Allocation>) {
        for update in &batch {
            self.store.put_acknowledged(update);
        }
        let mut queue = self.lock();
        queue.acknowledged.extend(batch.into_iter().map(|update| (update.id.clone(), update)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(status: &str, description: &str) -> Allocation {
        Allocation {
            id: "a1".into(),
            client_status: status.into(),
            client_description: description.into(),
            ..Allocation::default()
        }
    }

    /// How many ticks pass until the update is sent.
    fn ticks_until_sent(updates: &Updates) -> Option<usize> {
        (1..=10).find(|_| !updates.take().is_empty())
    }

    #[test]
    fn a_changed_status_goes_at_once_and_the_rest_within_a_second() {
        let updates = Updates::new(Store::disabled());
        updates.put(update("failed", ""));
        assert_eq!(ticks_until_sent(&updates), Some(1), "failed, and unknown so far");
        updates.acknowledge(vec![update("running", "")]);
        updates.put(update("running", "x"));
        assert_eq!(ticks_until_sent(&updates), Some(4));
        updates.put(update("complete", ""));
        assert_eq!(ticks_until_sent(&updates), Some(1));
        updates.put(update("running", ""));
        assert_eq!(ticks_until_sent(&updates), None, "known");
        updates.put_again(update("running", ""));
        assert_eq!(ticks_until_sent(&updates), Some(1), "known, and sent again");
    }

    #[test]
    fn what_failed_to_be_sent_gives_way_to_what_is_newer() {
        let updates = Updates::new(Store::disabled());
        updates.put(update("failed", "old"));
        let batch = updates.take();
        updates.put(update("failed", "new"));
        updates.put_back(batch);
        assert_eq!(updates.take()[0].client_description, "new");
    }
}

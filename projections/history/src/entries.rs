use std::collections::BTreeSet;

use base::Index;
use journal::{EncodedBatch, FrameError};
use model::{AllocId, Event, JobKey, NodeId, Topic};

/// An event in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub index: Index,
    pub ordinal: u16,
}

/// What some batches add to the index, gathered to be written at once.
///
/// A purge names only its job, so the index also keeps which allocations a job owns, until it is purged.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub events: Vec<(AllocId, Position)>,
    pub owned: BTreeSet<(JobKey, AllocId)>,
    pub disowned: BTreeSet<(JobKey, AllocId)>,
}

impl Entries {
    /// Adds what a batch says. `stored` returns the allocations of a job that were written before.
    ///
    /// # Errors
    /// Whatever `stored` fails with, and a payload that cannot be read.
    pub fn add<E: From<FrameError>>(
        &mut self,
        batch: &EncodedBatch,
        stored: impl Fn(&JobKey) -> Result<Vec<AllocId>, E>,
    ) -> Result<(), E> {
        for (ordinal, row) in batch.rows().enumerate() {
            if !matches!(row.topic, Topic::Allocation | Topic::Job) {
                continue;
            }
            let at = Position { index: batch.index(), ordinal: ordinal as u16 };
            match batch.event(&row)? {
                Event::AllocsPlaced(placed) => {
                    self.owned.extend(placed.ids.iter().map(|id| (placed.key.clone(), *id)));
                    self.events.extend(placed.ids.iter().map(|id| (*id, at)));
                }
                Event::JobPurged(purged) => {
                    let before = stored(&purged.key)?;
                    self.purge(&purged.key, before, at);
                }
                other => self.events.extend(other.subject().allocs().iter().map(|id| (*id, at))),
            }
        }
        Ok(())
    }

    fn purge(&mut self, key: &JobKey, stored: Vec<AllocId>, at: Position) {
        let mut ids: BTreeSet<AllocId> =
            stored.into_iter().filter(|id| !self.disowned.contains(&(key.clone(), *id))).collect();
        ids.extend(self.owned.iter().filter(|(owner, _)| owner == key).map(|(_, id)| *id));
        for id in ids {
            self.owned.remove(&(key.clone(), id));
            self.disowned.insert((key.clone(), id));
            self.events.push((id, at));
        }
    }
}

/// The node a placement put an allocation on.
pub(crate) fn node_of(event: &model::event::AllocsPlaced, alloc: AllocId) -> Option<NodeId> {
    let at = event.ids.iter().position(|id| *id == alloc)?;
    event.nodes.get(at).copied()
}

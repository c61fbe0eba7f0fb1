use std::collections::BTreeSet;

use base::Index;
use journal::{EncodedBatch, FrameError};
use model::{AllocId, EvalId, Event, JobKey, NodeId, RequestId, Topic};

use crate::object::{Object, about};

/// An event in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub index: Index,
    pub ordinal: u16,
}

impl Position {
    /// The next place in the order of the log, whether or not there is an event.
    pub(crate) fn next(self) -> Position {
        match self.ordinal.checked_add(1) {
            Some(ordinal) => Position { ordinal, ..self },
            None => Position { index: self.index.next(), ordinal: 0 },
        }
    }
}

/// What some batches add to the index, gathered to be written at once.
///
/// A purge names only its job, so the index also keeps which allocations a job owns, until it is purged.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub events: Vec<(AllocId, Position)>,
    /// By the key of the object.
    pub objects: Vec<(Vec<u8>, Position)>,
    pub owned: BTreeSet<(JobKey, AllocId)>,
    pub disowned: BTreeSet<(JobKey, AllocId)>,
    /// Commands that have a name.
    pub requests: BTreeSet<(RequestId, Index)>,
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
        let named = batch.commands()?.into_iter().map(|command| command.request);
        let named = named.filter(|request| *request != RequestId::default());
        self.requests.extend(named.map(|request| (request, batch.index())));
        // The evaluation whose plan the command brought: what the plan changed follows in the same command.
        let mut plan: Option<(u16, EvalId)> = None;
        for (ordinal, row) in batch.rows().enumerate() {
            if row.left_out || matches!(row.topic, Topic::Cluster | Topic::Other) {
                continue;
            }
            let at = Position { index: batch.index(), ordinal: ordinal as u16 };
            let event = batch.event(&row)?;
            if let Event::PlanCommitted(committed) = &event {
                plan = Some((row.command, committed.eval));
            }
            let planned_by = plan.filter(|(command, _)| *command == row.command).map(|(_, eval)| eval);
            let objects: BTreeSet<Object> = about(&event, planned_by).into_iter().collect();
            self.objects.extend(objects.iter().map(|object| (object.key(), at)));
            match event {
                Event::AllocsPlaced(placed) => {
                    self.owned.extend(placed.ids.iter().map(|id| (placed.key.clone(), *id)));
                    let replaced = placed.previous.iter().filter(|id| **id != AllocId::default());
                    self.events.extend(placed.ids.iter().chain(replaced).map(|id| (*id, at)));
                }
                Event::AllocsPreempted(preempted) => {
                    self.events.extend(preempted.allocs.iter().chain([&preempted.by]).map(|id| (*id, at)));
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

/// The allocation that took the place of another, with its node.
pub(crate) fn successor_of(event: &model::event::AllocsPlaced, alloc: AllocId) -> Option<(AllocId, NodeId)> {
    let at = event.previous.iter().position(|id| *id == alloc)?;
    Some((*event.ids.get(at)?, *event.nodes.get(at)?))
}

/// The node a placement put an allocation on.
pub(crate) fn node_of(event: &model::event::AllocsPlaced, alloc: AllocId) -> Option<NodeId> {
    let at = event.ids.iter().position(|id| *id == alloc)?;
    event.nodes.get(at).copied()
}

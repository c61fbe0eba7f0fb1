use std::collections::BTreeSet;

use base::Index;
use journal::frame::Topic;
use journal::{EncodedBatch, FrameError};
use model::{AllocId, Event, JobKey, NodeId};

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
    /// Adds what a batch says. `stored` tells the allocations of a job that were written before.
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
                other => self.events.extend(allocs_of(&other).iter().map(|id| (*id, at))),
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

/// The allocations that an event names.
pub(crate) fn allocs_of(event: &Event) -> &[AllocId] {
    match event {
        Event::AllocsPlaced(e) => &e.ids,
        Event::AllocsUpdatedInPlace(e) => &e.allocs,
        Event::AllocsStopped(e) => &e.allocs,
        Event::AllocsPreempted(e) => &e.allocs,
        Event::AllocsMarkedUnknown(e) => &e.allocs,
        Event::AllocsReconnected(e) => &e.allocs,
        Event::AllocReported(e) => std::slice::from_ref(&e.alloc),
        Event::AllocTransitionRequested(e) => &e.allocs,
        Event::AllocHealthSet(e) => &e.allocs,
        Event::ClusterFounded(_)
        | Event::NodeRegistered(_)
        | Event::NodeUpdated(_)
        | Event::NodeStatusChanged(_)
        | Event::NodeEligibilityChanged(_)
        | Event::NodeMessagesEmitted(_)
        | Event::NodeDrainStarted(_)
        | Event::NodeDrainUpdated(_)
        | Event::NodeDrainEnded(_)
        | Event::NodeDeregistered(_)
        | Event::NodeAllocsReported(_)
        | Event::JobRegistered(_)
        | Event::JobStopped(_)
        | Event::JobPurged(_)
        | Event::JobStabilityChanged(_)
        | Event::JobLaunched(_)
        | Event::JobScaled(_)
        | Event::JobVersionTagged(_)
        | Event::JobVersionUntagged(_)
        | Event::DeploymentCreated(_)
        | Event::DeploymentGoalsChanged(_)
        | Event::DeploymentStatusChanged(_)
        | Event::DeploymentPromoted(_)
        | Event::EvalCreated(_)
        | Event::EvalUpdated(_)
        | Event::EvalAcked(_)
        | Event::EvalsCanceled(_)
        | Event::PlanCommitted(_)
        | Event::NodePoolUpserted(_)
        | Event::NodePoolDeleted(_)
        | Event::NamespaceUpserted(_)
        | Event::NamespaceDeleted(_)
        | Event::AutopilotConfigured(_)
        | Event::SchedulerConfigured(_)
        | Event::VolumeRegistered(_)
        | Event::VolumeDeregistered(_)
        | Event::StateChunkGiven(_)
        | Event::StateRestored(_) => &[],
    }
}

/// The node a placement put an allocation on.
pub(crate) fn node_of(event: &model::event::AllocsPlaced, alloc: AllocId) -> Option<NodeId> {
    let at = event.ids.iter().position(|id| *id == alloc)?;
    event.nodes.get(at).copied()
}

use std::collections::BTreeMap;
use std::sync::Arc;

use base::Index;
use model::event::{NodePoolDeleted, NodePoolUpserted};

use super::state::{Pool, Pools};
use crate::Moment;

impl Pools {
    pub(crate) fn upserted(&mut self, at: Moment, event: &NodePoolUpserted) {
        let document = event.document.read();
        let pools = self.change(at.index);
        let created = pools.get(&event.name).map_or(at.index, |before| before.created);
        pools.insert(event.name.clone(), Pool { document, created, modified: at.index });
    }

    pub(crate) fn deleted(&mut self, at: Moment, event: &NodePoolDeleted) {
        self.change(at.index).remove(&event.name).expect("the event names a pool that was made");
    }

    /// The pools are those of another state: whoever waits for a change has one.
    pub(crate) fn restored(&mut self, now: Index) {
        self.change(now);
    }

    /// Nothing was created or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        let changed = self.changed.min(limit);
        for pool in self.change(changed).values_mut() {
            (pool.created, pool.modified) = (pool.created.min(limit), pool.modified.min(limit));
        }
    }

    fn change(&mut self, now: Index) -> &mut BTreeMap<String, Pool> {
        (self.changed, self.hash) = (now, None);
        Arc::make_mut(&mut self.by_name)
    }
}

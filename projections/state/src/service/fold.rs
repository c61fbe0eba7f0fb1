use base::Index;
use model::AllocId;
use model::event::{ServicesDeregistered, ServicesRegistered};

use super::state::{Registered, Services};
use crate::moment::Moment;

impl Services {
    pub(crate) fn registered(&mut self, at: Moment, event: &ServicesRegistered) {
        let content = self.change();
        content.changed = at.index;
        let mut rows = content.of_alloc(event.alloc).to_vec();
        for service in &event.services {
            let known = rows.iter().position(|row| row.service.id == service.id);
            let row = Registered {
                service: service.clone(),
                alloc: event.alloc,
                key: event.key.clone(),
                node: event.node,
                datacenter: event.datacenter.clone(),
                created: known.map_or(at.index, |known| rows[known].created),
                modified: at.index,
            };
            match known {
                Some(known) => rows[known] = row,
                None => rows.push(row),
            }
        }
        content.set(event.alloc, rows);
    }

    pub(crate) fn deregistered(&mut self, at: Moment, event: &ServicesDeregistered) {
        let content = self.change();
        content.changed = at.index;
        let mut rows = content.of_alloc(event.alloc).to_vec();
        for id in &event.services {
            let known = rows.iter().position(|row| row.service.id == *id);
            rows.remove(known.expect("the event names instances that are known"));
        }
        content.set(event.alloc, rows);
    }

    /// Everything is as in the state that was restored. A cluster without services keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Services) {
        if self.changed().max(before.changed()) > Index::ZERO {
            self.change().changed = now;
        }
    }

    /// Nothing was created or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.changed() == Index::ZERO {
            return;
        }
        let mut allocs: Vec<AllocId> = self.iter().map(|row| row.alloc).collect();
        allocs.dedup();
        let content = self.change();
        content.changed = content.changed.min(limit);
        for alloc in allocs {
            let mut rows = content.of_alloc(alloc).to_vec();
            for row in &mut rows {
                (row.created, row.modified) = (row.created.min(limit), row.modified.min(limit));
            }
            content.set(alloc, rows);
        }
    }
}

//! What happened to pools of nodes, as the stream lists it: one that is gone as it was before.

use model::document::NodePool;
use model::{Batch, Event};
use state::State;
pub(crate) use state::pool::document;

use crate::entries::{Entry, NODE_POOL, Object};

/// Entries for all pools that a batch names, once each, to stand behind everything else of the batch: ids of events that
/// readers have stored stay what they were. What came and went within the batch was never seen by anybody.
pub(crate) fn entries(before: &State, after: &State, batch: &Batch) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (fact, logged) in batch.events.iter().enumerate() {
        let name = match &logged.event {
            Event::NodePoolUpserted(e) => &e.name,
            Event::NodePoolDeleted(e) => &e.name,
            _ => continue,
        };
        if entries.iter().any(|listed| listed.key == *name) {
            continue;
        }
        let (now, was) = (document(&after.pools, name), document(&before.pools, name));
        let kind = if now.is_some() { "NodePoolUpserted" } else { "NodePoolDeleted" };
        if let Some(pool) = now.or(was) {
            entries.push(entry(kind, pool, logged.command, fact as u16));
        }
    }
    entries
}

fn entry(kind: &'static str, pool: NodePool, command: u16, fact: u16) -> Entry {
    Entry {
        topic: NODE_POOL,
        kind,
        key: pool.name.clone(),
        namespace: String::new(),
        filter_keys: Vec::new(),
        object: Object::Pool(Box::new(pool)),
        command,
        fact,
    }
}

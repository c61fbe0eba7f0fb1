//! What nodes read: the looks of `gateway/server/src/rpc/{node,alloc}.rs`, which wait for news.

use model::document::Allocation;
use model::{AllocId, NodeId};
use state::State;

use super::call::{Ask, Reply};

/// A question that is answered as soon as there is something newer than the asker knows.
pub enum Query {
    Assigned { node: NodeId, min_index: u64, count: Option<usize> },
    Allocs { ids: Vec<AllocId>, min_index: u64 },
}

impl Query {
    /// # Panics
    /// If the question is not one that waits for news.
    pub fn of(ask: &Ask) -> Query {
        match ask {
            Ask::Assigned { node, min_index, .. } => {
                Query::Assigned { node: *node, min_index: *min_index, count: None }
            }
            Ask::Allocs { ids, min_index } => Query::Allocs {
                ids: ids.iter().map(|id| id.parse().expect("nodes ask for what they were told")).collect(),
                min_index: *min_index,
            },
            other => panic!("{} does not wait for news", other.name()),
        }
    }

    /// The answer on this state, and whether it is newer than what the asker knows.
    pub fn look(&mut self, state: &State) -> (bool, Reply) {
        match self {
            Query::Assigned { node, min_index, count } => {
                let (index, reply) = assigned(state, *node, count);
                (*min_index == 0 || index > *min_index, reply)
            }
            Query::Allocs { ids, min_index } => {
                let found: Vec<_> = ids.iter().filter_map(|id| state.allocs.lookup(*id)).collect();
                let newest = found.iter().map(|alloc| alloc.modified).max();
                let index = newest.unwrap_or(state.tables.allocs).0;
                let over = *min_index == 0 || index > *min_index;
                let documents = |alloc: &&state::alloc::Alloc| state::alloc::document(state, alloc);
                let found: Vec<Allocation> =
                    if over { found.iter().map(documents).collect() } else { Vec::new() };
                (over, Reply::Allocs(found))
            }
        }
    }
}

fn assigned(state: &State, node: NodeId, count: &mut Option<usize>) -> (u64, Reply) {
    let Some(row) = state.nodes.find(node) else {
        let index = state.tables.nodes.0.max(1);
        return (state.tables.nodes.0, Reply::Assigned { index, allocs: Default::default() });
    };
    let rows = &state.nodes.load(row).allocs;
    let shrunk = count.replace(rows.len()).is_none_or(|before| before > rows.len());
    let newest = rows.iter().map(|row| state.allocs.get(*row).modified.0).max();
    let index = newest.filter(|_| !shrunk).unwrap_or(state.tables.allocs.0);
    let allocs = rows.iter().map(|row| state.allocs.get(*row));
    let allocs = allocs.map(|alloc| (alloc.id.to_string(), alloc.alloc_modified.0)).collect();
    (index, Reply::Assigned { index: index.max(1), allocs })
}

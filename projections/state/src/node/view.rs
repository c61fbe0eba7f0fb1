use model::NodeId;
use model::document::{DrainMetadata, DrainStrategy, Map, Node};

use super::state::{Drain, Nodes};
use crate::State;
use crate::row::NodeRow;

/// The node as Nomad's API shows it: without its secret.
pub fn document(nodes: &Nodes, row: NodeRow) -> Node {
    let (hot, cold) = (nodes.hot(row), nodes.cold(row));
    Node {
        id: cold.id.to_string(),
        status: hot.status.to_string(),
        scheduling_eligibility: hot.eligibility.to_string(),
        status_updated_at: cold.status_updated.secs(),
        events: cold.messages.iter().map(|(message, index)| message.document(*index)).collect(),
        computed_class: nodes.class_name(hot.class).to_string(),
        create_index: cold.created.0,
        modify_index: hot.modified.0,
        last_missed_heartbeat_index: hot.silent_since.0,
        last_alloc_update_index: hot.allocs_reported.0,
        drain: cold.draining().is_some(),
        drain_strategy: cold.draining().map(strategy),
        last_drain: cold.drain.as_ref().map(last_drain),
        ..Node::clone(&cold.document)
    }
}

fn strategy(drain: &Drain) -> DrainStrategy {
    DrainStrategy {
        deadline: drain.order.deadline.into(),
        ignore_system_jobs: drain.order.ignore_system_jobs,
        force_deadline: drain.order.force_at.into(),
        started_at: drain.started.into(),
    }
}

/// The drain that is under way, or the last one.
pub fn last_drain(drain: &Drain) -> DrainMetadata {
    DrainMetadata {
        started_at: drain.started.into(),
        updated_at: drain.updated.into(),
        status: drain.status.to_string(),
        accessor_id: drain.order.accessor.clone(),
        meta: drain.order.meta.iter().cloned().collect(),
    }
}

/// What a node's agent polls: its allocations, each with the index of the last change that concerns the agent, and the
/// index of the answer.
///
/// `known` is how many allocations the same query has seen before. A node that is not known has no allocations, which
/// is no error: its agent may ask before it has registered.
///
/// Source: `Node.GetClientAllocs`.
pub fn assigned(state: &State, node: NodeId, known: &mut Option<usize>) -> (u64, Map<String, u64>) {
    let Some(row) = state.nodes.find(node) else {
        return (state.tables.nodes.0, Map::default());
    };
    let rows = &state.nodes.load(row).allocs;
    let shrunk = known.replace(rows.len()).is_none_or(|before| before > rows.len());
    let newest = rows.iter().map(|row| state.allocs.get(*row).modified.0).max();
    // Allocations that were collected leave no newer one behind: only the table's index says that they are gone.
    let index = newest.filter(|_| !shrunk).unwrap_or(state.tables.allocs.0);
    let allocs = rows.iter().map(|row| state.allocs.get(*row));
    (index, allocs.map(|alloc| (alloc.id.to_string(), alloc.alloc_modified.0)).collect())
}

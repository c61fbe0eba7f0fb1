use model::document::Node;

use super::state::{NodeRow, Nodes};

/// The node as the contract shows it: without its secret.
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
        ..Node::clone(&cold.document)
    }
}

use model::document::{DrainMetadata, DrainStrategy, Map, Node};
use model::{AllocId, NodeId};

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
    let index = assigned_index(state, node, known);
    let rows = state.nodes.find(node).map_or(&[][..], |row| &state.nodes.load(row).allocs);
    let allocs = rows.iter().map(|row| state.allocs.get(*row));
    (index, allocs.map(|alloc| (alloc.id.to_string(), alloc.alloc_modified.0)).collect())
}

/// The index of [`assigned`], without the allocations.
pub fn assigned_index(state: &State, node: NodeId, known: &mut Option<usize>) -> u64 {
    let Some(row) = state.nodes.find(node) else { return state.tables.nodes.0 };
    let rows = &state.nodes.load(row).allocs;
    let shrunk = known.replace(rows.len()).is_none_or(|before| before > rows.len());
    let newest = rows.iter().map(|row| state.allocs.get(*row).modified.0).max();
    // Allocations that were collected leave no newer one behind: only the table's index says that they are gone.
    newest.filter(|_| !shrunk).unwrap_or(state.tables.allocs.0)
}

/// The allocations of a node that have yet to end and want the data of a previous one on another node: each with that one
/// and the digest of the secret of its node.
pub fn migrations(state: &State, node: NodeId) -> Vec<(AllocId, AllocId, [u8; 32])> {
    let Some(row) = state.nodes.find(node) else { return Vec::new() };
    let own = state.nodes.load(row).allocs.iter().map(|row| state.allocs.get(*row));
    let wanted = own.filter(|alloc| alloc.takes_room()).filter_map(|alloc| {
        // The job is looked at last: of most allocations it need not be decoded.
        let previous = state.allocs.lookup(alloc.previous?)?;
        let from = state.nodes.find(previous.node_id).filter(|from| *from != row)?;
        let disk = alloc.version.group(&alloc.group)?.ephemeral_disk.as_ref()?;
        if disk.sticky != Some(true) || disk.migrate != Some(true) {
            return None;
        }
        Some((alloc.id, previous.id, state.nodes.cold(from).secret_hash))
    });
    wanted.collect()
}

/// The release of Nomad that a node speaks like, as far as its first two numbers; `None` if it does not say.
pub fn nomad_release(node: &Node) -> Option<(u32, u32)> {
    let version = node.attributes.get("nomad.version")?;
    let mut numbers = version.split(['.', '-', '+']).map_while(|number| number.parse().ok());
    Some((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_a_node_is_what_its_version_begins_with() {
        let release = |version: &str| {
            let attributes = [("nomad.version".to_string(), version.to_string())].into_iter().collect();
            nomad_release(&Node { attributes, ..Node::default() })
        };
        for (version, expected) in [
            ("1.11.0", (1, 11)),
            ("1.12.3-beta.1", (1, 12)),
            ("2.0.0+ent", (2, 0)),
            ("1.7-beta", (1, 7)),
            ("1.10.9", (1, 10)),
            ("0.12.0", (0, 12)),
            ("", (0, 0)),
            ("x", (0, 0)),
        ] {
            assert_eq!(release(version), Some(expected), "{version}");
        }
        assert_eq!(nomad_release(&Node::default()), None);
    }
}

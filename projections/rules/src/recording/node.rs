//! Nodes: what they say of themselves, their status, eligibility and drains.

use base::Time;
use model::document::Node;
use model::event::{
    DrainOrder, NodeDeregistered, NodeDrainEnded, NodeDrainStarted, NodeDrainUpdated, NodeEligibilityChanged,
    NodeMessage, NodeMessagesEmitted, NodeRegistered, NodeStatusChanged, NodeUpdated,
};
use model::{Doc, DrainStatus, Eligibility, NodeId, NodeStatus};
use state::node::NodeRow;

use super::Seen;
use crate::node::{computed_class, decide};

pub(super) fn observed(seen: &mut Seen, document: &Node) -> Option<(String, u64, Time)> {
    let node: NodeId = document.id.parse().ok()?;
    let described = Node { scheduling_eligibility: String::new(), ..decide::described(document) };
    let class = match document.computed_class.as_str() {
        "" => computed_class(&described),
        class => class.to_string(),
    };
    match seen.state.nodes.find(node) {
        // No secret has this hash: nobody can speak for the node here.
        None => seen.add(NodeRegistered {
            node,
            document: Doc::of(&described),
            computed_class: class,
            secret_hash: [0; 32],
        }),
        Some(row) => {
            let (hot, cold) = (seen.state.nodes.hot(row), seen.state.nodes.cold(row));
            if cold.document.bytes() != Doc::of(&described).0
                || seen.state.nodes.class_name(hot.class) != class
            {
                seen.add(NodeUpdated { node, document: Doc::of(&described), computed_class: class });
            }
        }
    }
    let row = seen.state.nodes.find(node)?;
    let from = seen.state.nodes.hot(row).status;
    if let Some(to) = NodeStatus::from_word(&document.status).filter(|to| *to != from) {
        seen.add(NodeStatusChanged { node, from, to, message: None });
    }
    drain(seen, node, row, document);
    let eligibility = Eligibility::from_word(&document.scheduling_eligibility);
    if let Some(to) = eligibility.filter(|to| *to != seen.state.nodes.hot(row).eligibility) {
        seen.add(NodeEligibilityChanged { node, to, message: newest_message(document, seen) });
    }
    messages(seen, node, row, document);
    let happened = Time(document.status_updated_at.saturating_mul(1_000_000_000));
    Some((format!("node/{node}"), document.modify_index, happened))
}

pub(super) fn gone(seen: &mut Seen, node: NodeId) -> String {
    if seen.state.nodes.find(node).is_some() {
        seen.add(NodeDeregistered { node });
    }
    format!("node/{node}")
}

fn drain(seen: &mut Seen, node: NodeId, row: NodeRow, document: &Node) {
    let message = newest_message(document, seen);
    let last = document.last_drain.clone().unwrap_or_default();
    let meta: Vec<(String, String)> = last.meta.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let known = seen.state.nodes.cold(row).draining().map(|drain| drain.order.clone());
    match (&document.drain_strategy, known) {
        (Some(strategy), known) => {
            let order = DrainOrder {
                deadline: strategy.deadline.0,
                force_at: strategy.force_deadline.time(),
                ignore_system_jobs: strategy.ignore_system_jobs,
                meta,
                accessor: last.accessor_id,
            };
            match known {
                None => seen.add(NodeDrainStarted { node, order, message }),
                Some(known) if known != order => seen.add(NodeDrainUpdated { node, order, message }),
                Some(_) => {}
            }
        }
        (None, Some(_)) => seen.add(NodeDrainEnded {
            node,
            status: DrainStatus::from_word(&last.status)
                .filter(|status| *status != DrainStatus::Draining)
                .unwrap_or(DrainStatus::Complete),
            eligible: document.scheduling_eligibility == Eligibility::Eligible.word(),
            meta,
            accessor: last.accessor_id,
            message,
        }),
        (None, None) => {}
    }
}

/// Entries of the node's own list that are not here yet.
fn messages(seen: &mut Seen, node: NodeId, row: NodeRow, document: &Node) {
    let known = &seen.state.nodes.cold(row).messages;
    let of = |message: &NodeMessage| (message.subsystem.clone(), message.text.clone(), message.time);
    let all = document.events.iter().map(message);
    let new: Vec<NodeMessage> =
        all.filter(|new| known.iter().all(|(known, _)| of(known) != of(new))).collect();
    if !new.is_empty() {
        seen.add(NodeMessagesEmitted { node, messages: new });
    }
}

fn message(event: &model::document::NodeEvent) -> NodeMessage {
    NodeMessage {
        text: event.message.clone(),
        subsystem: event.subsystem.clone(),
        details: event.details.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        time: event.timestamp.time(),
    }
}

fn newest_message(document: &Node, seen: &Seen) -> NodeMessage {
    let newest = document.events.iter().last().map(message);
    newest.unwrap_or_else(|| NodeMessage::new("Cluster", "observed", seen.at.time))
}

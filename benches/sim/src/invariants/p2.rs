//! P2: a node that was silent is not given work before it has reported what it runs; registering sets no status.

use model::{Event, NodeStatus};
use state::State;
use state::node::NodeRow;

use crate::fact::{Check, Fact, Folded};
use crate::witness::Witness;

#[derive(Default)]
pub struct NoWorkBeforeReport;

impl Check for NoWorkBeforeReport {
    fn sentence(&self) -> &'static str {
        "P2 a node that was silent takes no work before it told what it runs; registering sets no status"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let asked_for_status = matches!(folded.record.kind, 11 | 12);
        for event in folded.events {
            match event {
                Event::NodeStatusChanged(e) => {
                    if !asked_for_status {
                        return Err(format!(
                            "command {} moved the status of node {}",
                            folded.record.kind, e.node
                        ));
                    }
                    let row = folded.before.nodes.find(e.node).ok_or("an unknown node changed")?;
                    if e.to == NodeStatus::Ready {
                        may_be_ready(folded.before, row)?;
                    }
                }
                Event::AllocsPlaced(e) => nodes_take_work(folded, &e.nodes)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn may_be_ready(before: &State, row: NodeRow) -> Result<(), String> {
    let hot = before.nodes.hot(row);
    let id = before.nodes.cold(row).id;
    if hot.status == NodeStatus::Disconnected {
        return Err(format!("node {id} went from disconnected to ready"));
    }
    let mut allocs = before.nodes.load(row).allocs.iter().map(|alloc| before.allocs.get(*alloc));
    let silent_before = hot.silent_since.0 > 0;
    if silent_before && allocs.any(|alloc| !alloc.is_terminal()) && hot.allocs_reported <= hot.silent_since {
        return Err(format!("node {id} is ready, silent since {}, without a report", hot.silent_since));
    }
    Ok(())
}

fn nodes_take_work(folded: &Folded<'_>, nodes: &[model::NodeId]) -> Result<(), String> {
    for node in nodes {
        let row = folded.before.nodes.find(*node).ok_or_else(|| format!("{node} is not known"))?;
        if !folded.before.nodes.hot(row).takes_work() {
            return Err(format!(
                "work was placed on {node}, which is {}",
                folded.before.nodes.hot(row).status
            ));
        }
    }
    Ok(())
}

//! Monitors the drain of a node.

use std::collections::BTreeMap;
use std::time::Duration;

use model::document::Allocation;
use sdk::{Client, Query};

use crate::call::{Doing, Outcome, now};
use crate::layout;
use crate::output::{OutputStyle, write_out};

/// How often the node and its allocations are read.
const POLL: Duration = Duration::from_secs(1);

pub(crate) fn begin(style: &OutputStyle, id: &str) {
    print_line(style, "Ctrl-C to stop monitoring: will not cancel the node drain");
    print_line(style, &format!("Node \"{id}\" drain strategy set"));
}

/// Prints what happens to the node's allocations. The exit code is 0 once the drain is complete and its allocations
/// have ended; 1 when the drain was cancelled.
///
/// # Errors
/// When a request fails.
pub(crate) async fn drain(client: &Client, style: &OutputStyle, id: &str) -> Outcome {
    let mut watch = Watch::default();
    let mut drained = false;
    loop {
        let node = client.node(id, Query::new()).await.doing("reading node")?.value;
        let allocs = client.node_allocations(id, Query::new()).await.doing("reading allocations")?.value;
        watch.update(&allocs).iter().for_each(|line| print_line(style, line));
        if node.drain_strategy.is_none() && !drained {
            let status = node.last_drain.as_ref().map(|drain| drain.status.as_str());
            print_line(style, &how_it_ended(&node.id, status));
            if status != Some("complete") {
                return Ok(1);
            }
            drained = true;
        }
        if drained && allocs.iter().all(|alloc| has_ended(alloc) || stays(alloc)) {
            print_line(style, &format!("All allocations on node \"{id}\" have stopped"));
            return Ok(0);
        }
        tokio::time::sleep(POLL).await;
    }
}

fn how_it_ended(node: &str, status: Option<&str>) -> String {
    match status {
        Some("complete") => format!("Drain complete for node {node}"),
        Some(_) => format!("Drain canceled for node {node}"),
        None => format!("No drain strategy set for node {node}"),
    }
}

fn has_ended(alloc: &Allocation) -> bool {
    layout::alloc::is_over(&alloc.client_status)
}

/// The drain does not move it.
fn stays(alloc: &Allocation) -> bool {
    alloc.desired_status == "run" && !is_moving(alloc)
}

fn is_moving(alloc: &Allocation) -> bool {
    alloc.desired_transition.migrate == Some(true)
}

/// What was already printed about allocations.
#[derive(Default)]
struct Watch {
    seen: BTreeMap<String, Seen>,
}

#[derive(Clone, PartialEq)]
struct Seen {
    moving: bool,
    stopping: bool,
    status: String,
}

impl Watch {
    /// What is new since the last time.
    fn update(&mut self, allocs: &[Allocation]) -> Vec<String> {
        let mut lines = Vec::new();
        for alloc in allocs {
            let id = &alloc.id;
            let seen = Seen {
                moving: is_moving(alloc),
                stopping: alloc.desired_status == "stop",
                status: alloc.client_status.clone(),
            };
            let before = self.seen.insert(id.clone(), seen.clone());
            // It had ended before the drain.
            if before.is_none() && has_ended(alloc) {
                continue;
            }
            let was = before.unwrap_or(Seen { moving: false, stopping: false, status: seen.status.clone() });
            if seen.moving && !was.moving {
                lines.push(format!("Alloc \"{id}\" marked for migration"));
            }
            if seen.moving && seen.stopping && !was.stopping {
                lines.push(format!("Alloc \"{id}\" draining"));
            }
            if seen.status != was.status {
                lines.push(format!("Alloc \"{id}\" status {} -> {}", was.status, seen.status));
            }
        }
        lines
    }
}

fn print_line(style: &OutputStyle, line: &str) {
    write_out(format!("{}: {line}\n", style.time(now().0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alloc(migrate: bool, desired: &str, client: &str) -> Allocation {
        let mut alloc = Allocation { id: "a".to_string(), ..Allocation::default() };
        (alloc.desired_status, alloc.client_status) = (desired.to_string(), client.to_string());
        alloc.desired_transition.migrate = migrate.then_some(true);
        alloc
    }

    #[test]
    fn each_step_is_printed_once() {
        let mut watch = Watch::default();
        let mut said = |alloc| watch.update(&[alloc]);
        assert!(said(alloc(false, "run", "running")).is_empty());
        assert_eq!(said(alloc(true, "run", "running")), ["Alloc \"a\" marked for migration"]);
        assert_eq!(said(alloc(true, "stop", "running")), ["Alloc \"a\" draining"]);
        assert_eq!(said(alloc(true, "stop", "complete")), ["Alloc \"a\" status running -> complete"]);
        assert!(said(alloc(true, "stop", "complete")).is_empty());
    }

    #[test]
    fn allocations_that_had_ended_are_not_printed() {
        assert!(Watch::default().update(&[alloc(true, "stop", "complete")]).is_empty());
    }
}

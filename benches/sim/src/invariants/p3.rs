//! P3: what a silent node says about its allocations is refused and writes nothing.

use model::{Event, NodeId};

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct SilentNodesAreRefused;

impl Check for SilentNodesAreRefused {
    fn sentence(&self) -> &'static str {
        "P3 what a silent node reports is refused and writes nothing"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let silent = |node: NodeId| {
            let row = folded.before.nodes.find(node);
            row.is_none_or(|row| folded.before.nodes.hot(row).status.is_silent())
        };
        for event in folded.events {
            let node = match event {
                Event::AllocReported(e) => e.node,
                Event::NodeAllocsReported(e) => e.node,
                _ => continue,
            };
            if silent(node) {
                return Err(format!("batch {} holds a report of silent node {node}", folded.batch.index));
            }
        }
        Ok(())
    }
}

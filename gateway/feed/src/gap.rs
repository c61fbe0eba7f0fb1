//! What a recorder could not see any more of the cluster that it follows, as the stream lists it.

use model::{Batch, Event};
use serde::Serialize;

use crate::entries::{Entry, Object, RECORDING};

/// Between these indexes of that cluster nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct GapDocument {
    pub source: String,
    /// Everything up to here was seen.
    pub from: u64,
    /// And everything from here on.
    pub to: u64,
    pub reason: String,
}

/// Entries for all gaps that a batch names.
pub(crate) fn entries(batch: &Batch) -> impl Iterator<Item = Entry> {
    let gaps = batch.events.iter().enumerate().filter_map(|(fact, logged)| match &logged.event {
        Event::ObservationGap(gap) => Some((fact, logged.command, gap)),
        _ => None,
    });
    gaps.map(|(fact, command, gap)| Entry {
        topic: RECORDING,
        kind: "ObservationGap",
        // As histories name it.
        key: "recording".to_string(),
        namespace: String::new(),
        filter_keys: Vec::new(),
        object: Object::Gap(Box::new(GapDocument {
            source: gap.source.clone(),
            from: gap.from,
            to: gap.to,
            reason: gap.reason.clone(),
        })),
        command,
        fact: fact as u16,
    })
}

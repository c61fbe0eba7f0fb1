//! What was chosen between an allocation whose node came back and its replacement.

use std::collections::{BTreeMap, BTreeSet};

use base::Index;
use history::Transition;
use model::document::Reconnect;
use model::{AllocId, ClientStatus};

use super::super::decisions::{Past, Recorded, decisions};
use super::again;

/// Decisions that are made again for one answer: each takes a state of the past. The newest are.
const DECISIONS_MAX: usize = 16;

/// The choices that an allocation was part of, by the index of their batch, as the scheduler makes them again. What cannot be made
/// again, because the log does not reach back, is left out.
pub(crate) fn reconnects(
    past: Past<'_>,
    alloc: AllocId,
    transitions: &[Transition],
) -> BTreeMap<Index, Reconnect> {
    let planned: BTreeSet<Index> =
        transitions.iter().filter(|one| one.eval.is_some()).map(|one| one.index).collect();
    // It was unknown itself, or it is stopped because another one is known again.
    let may_be_choice = |index: Index| {
        transitions.iter().any(|one| match one.index < index {
            true => one.new.client == Some(ClientStatus::Unknown),
            false => one.index == index && one.description.starts_with(placement::ORIGINAL_BACK),
        })
    };
    let chosen = planned.into_iter().rev().filter(|index| may_be_choice(*index)).flat_map(|index| {
        let of_batch = past.batch(index).ok().flatten().and_then(|batch| batch.decode().ok());
        let of_batch = of_batch.map(|batch| decisions(&batch)).unwrap_or_default().into_iter();
        of_batch.filter(|one| decides(one, alloc)).map(move |one| (index, one))
    });
    let id = alloc.to_string();
    let made = chosen.take(DECISIONS_MAX).filter_map(|(index, one)| {
        let reasons = again(past, one.eval, one.snapshot, one.seed, one.now).ok()?;
        let mut all = reasons.groups.into_values().flat_map(|group| group.reconnects.0);
        Some((index, all.find(|choice| choice.original == id || choice.replacement == id)?))
    });
    made.collect()
}

/// Whether it stays or goes.
fn decides(decision: &Recorded, alloc: AllocId) -> bool {
    let effects = &decision.effects;
    let is_decided = effects.reconnected.contains(&alloc) || effects.stopped.contains(&alloc);
    is_decided && !decision.is_quarantined()
}

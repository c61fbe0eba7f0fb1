//! What may have followed from a fact: those that name one of its objects. Each is asked what it followed from.

use std::collections::BTreeSet;

use journal::ReadError;
use model::{Event, Subject};

use super::links::{is_drain, verdict};
use super::reading::Reading;
use crate::entries::Position;
use crate::history::HistoryError;
use crate::index::{Side, What};
use crate::object::Object;

/// Later facts about one object that are looked at.
const OF_OBJECT_MAX: usize = 128;
/// Allocations and evaluations of one fact whose later facts are looked at.
const NAMED_MAX: usize = 64;
/// Log after a drain in which the allocations are looked for that it moves.
const AFTER_DRAIN_BYTES: usize = 1 << 20;

impl Reading<'_> {
    /// What followed from a fact, in the order of the log.
    pub fn effects(&mut self, at: Position, event: &Event) -> Result<Vec<Position>, HistoryError> {
        let mut found = Vec::new();
        for place in self.candidates(at, event)? {
            let Some(other) = self.event(place)? else { continue };
            if self.causes(place, &other)?.iter().any(|link| link.from == at) {
                found.push(place);
            }
        }
        Ok(found)
    }

    fn candidates(&mut self, at: Position, event: &Event) -> Result<BTreeSet<Position>, HistoryError> {
        let mut places = self.beside(at)?;
        for object in objects(event) {
            places.extend(self.around(What::Object(&object), Side::After(at), OF_OBJECT_MAX)?);
        }
        let placed = match event {
            Event::AllocsPlaced(placed) => placed.ids.as_slice(),
            Event::AllocsPreempted(preempted) => preempted.allocs.as_slice(),
            other => other.subject().allocs(),
        };
        self.cut_short |= placed.len() > NAMED_MAX;
        for alloc in placed.iter().take(NAMED_MAX) {
            places.extend(self.around(What::Alloc(*alloc), Side::After(at), OF_OBJECT_MAX)?);
        }
        if verdict(event).is_some() {
            // Deployments are advanced by their allocations' health, and have their job evaluated.
            if let Some(key) = self.job(event)? {
                places.extend(self.around(
                    What::Object(&Object::Job(key)),
                    Side::After(at),
                    OF_OBJECT_MAX,
                )?);
            }
            for alloc in placed.iter().take(NAMED_MAX) {
                if let Some((_, Some(deployment))) = self.placement(*alloc)? {
                    let object = Object::Deployment(deployment);
                    places.extend(self.around(What::Object(&object), Side::After(at), OF_OBJECT_MAX)?);
                }
            }
        }
        if is_drain(event) {
            places.extend(self.transitions_after(at)?);
        }
        Ok(places)
    }

    /// What the same command decided besides.
    fn beside(&mut self, at: Position) -> Result<BTreeSet<Position>, HistoryError> {
        let Some(batch) = self.batch(at.index)? else { return Ok(BTreeSet::new()) };
        let command = batch.command_of(at.ordinal);
        let same = batch.events.iter().filter(|(_, logged)| logged.command == command);
        let places = same.map(|(ordinal, _)| Position { index: at.index, ordinal: *ordinal });
        Ok(places.filter(|place| *place != at).collect())
    }

    /// A drain names no allocations, and they do not name it.
    fn transitions_after(&mut self, at: Position) -> Result<Vec<Position>, HistoryError> {
        let batches = match self.shared.journal.read(at.index.next(), AFTER_DRAIN_BYTES) {
            Err(ReadError::Compacted { .. }) => {
                self.gone = true;
                return Ok(Vec::new());
            }
            read => read?,
        };
        let last = batches.last().map(|batch| batch.index());
        self.cut_short |= last.is_some_and(|last| last < self.shared.journal.committed());
        let mut found = Vec::new();
        for batch in &batches {
            for (ordinal, row) in batch.rows().enumerate() {
                if matches!(batch.event(&row)?, Event::AllocTransitionRequested(_)) {
                    found.push(Position { index: batch.index(), ordinal: ordinal as u16 });
                }
            }
        }
        Ok(found)
    }
}

/// Objects whose later facts may have followed from a fact.
fn objects(event: &Event) -> Vec<Object> {
    let mut objects = match event.subject() {
        Subject::Job(key) => vec![Object::Job(key.clone())],
        Subject::Node(id) => vec![Object::Node(id)],
        Subject::Evals(ids) => ids.iter().take(NAMED_MAX).map(|id| Object::Eval(*id)).collect(),
        Subject::Deployment(id) => vec![Object::Deployment(id)],
        Subject::Allocs(_) | Subject::Cluster => Vec::new(),
    };
    match event {
        // The evaluation after it names it, and is known as one of the job.
        Event::EvalCreated(created) => objects.push(Object::Job(created.eval.key.clone())),
        Event::AllocHealthSet(set) => objects.push(Object::Deployment(set.deployment)),
        _ => {}
    }
    objects
}

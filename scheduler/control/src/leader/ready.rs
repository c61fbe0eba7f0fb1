//! The evaluations that wait for a worker.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Index, Time};
use model::JobType;
use state::eval::{Eval, EvalRow};

/// More urgent first: higher priority, then the older.
type Urgency = (Reverse<u32>, Index, EvalRow);

/// By how urgent they are for each type of scheduler, and by how long they wait.
#[derive(Debug, Default)]
pub struct Ready {
    by_urgency: BTreeMap<JobType, BTreeMap<Urgency, Time>>,
    by_age: BTreeSet<(Time, EvalRow)>,
}

fn urgency(row: EvalRow, eval: &Eval) -> Urgency {
    (Reverse(eval.facts.priority), eval.created, row)
}

impl Ready {
    pub fn insert(&mut self, row: EvalRow, eval: &Eval, now: Time) {
        let of_type = self.by_urgency.entry(eval.facts.kind).or_default();
        // One that waits already goes on waiting.
        let since = *of_type.entry(urgency(row, eval)).or_insert(now);
        self.by_age.insert((since, row));
    }

    pub fn remove(&mut self, row: EvalRow, eval: &Eval) {
        let of_type = self.by_urgency.get_mut(&eval.facts.kind);
        if let Some(since) = of_type.and_then(|of_type| of_type.remove(&urgency(row, eval))) {
            self.by_age.remove(&(since, row));
        }
    }

    /// The most urgent of these types.
    pub fn pop(&mut self, types: &[JobType]) -> Option<(JobType, EvalRow)> {
        let heads =
            types.iter().filter_map(|kind| Some((*self.by_urgency.get(kind)?.first_key_value()?.0, *kind)));
        let (urgency, kind) = heads.min()?;
        let since = self.by_urgency.get_mut(&kind)?.remove(&urgency)?;
        self.by_age.remove(&(since, urgency.2));
        Some((kind, urgency.2))
    }

    /// How long the one waits that waits the longest.
    pub fn longest_wait(&self, now: Time) -> Duration {
        self.by_age.first().map_or(Duration::ZERO, |(since, _)| now.since(*since))
    }

    pub fn clock_moved(&mut self, by: Duration) {
        self.by_urgency.values_mut().flat_map(BTreeMap::values_mut).for_each(|since| *since = since.plus(by));
        self.by_age =
            std::mem::take(&mut self.by_age).into_iter().map(|(since, row)| (since.plus(by), row)).collect();
    }

    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// How many are of these types.
    pub fn of_types(&self, types: &[JobType]) -> usize {
        types.iter().filter_map(|kind| self.by_urgency.get(kind)).map(BTreeMap::len).sum()
    }

    pub fn by_type(&self) -> impl Iterator<Item = (JobType, usize)> {
        self.by_urgency.iter().map(|(kind, ready)| (*kind, ready.len()))
    }
}

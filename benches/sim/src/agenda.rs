//! Virtual time: what is to happen, in order, and nothing in between.

use std::collections::BTreeMap;

use base::{Duration, Time};

/// What is due when. Of what is due at the same moment, the earlier entered comes first.
#[derive(Debug)]
pub struct Agenda<E> {
    now: Time,
    entered: u64,
    due: BTreeMap<(Time, u64), E>,
}

impl<E> Agenda<E> {
    pub fn new(start: Time) -> Agenda<E> {
        Agenda { now: start, entered: 0, due: BTreeMap::new() }
    }

    /// The true time, which no clock in the cluster has to agree with.
    pub fn now(&self) -> Time {
        self.now
    }

    pub fn after(&mut self, span: Duration, event: E) {
        let at = self.now.plus(Duration(span.0.max(0)));
        self.entered += 1;
        self.due.insert((at, self.entered), event);
    }

    /// When the next event is due.
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves time on to what happened elsewhere. Nothing may be due before.
    pub fn advance(&mut self, to: Time) {
        assert!(self.next().is_none_or(|next| next >= to), "time does not pass over what is due");
        self.now = self.now.max(to);
    }

    /// Moves time on to the next event.
    pub fn take_next(&mut self) -> Option<E> {
        let ((at, _), event) = self.due.pop_first()?;
        self.now = at;
        Some(event)
    }
}

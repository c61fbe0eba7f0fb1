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

    /// Moves time on to the next event.
    pub fn take_next(&mut self) -> Option<E> {
        let ((at, _), event) = self.due.pop_first()?;
        self.now = at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_entered() {
        let mut agenda = Agenda::new(Time::from_secs(10));
        agenda.after(Duration::from_secs(2), "late");
        agenda.after(Duration::from_secs(1), "first");
        agenda.after(Duration::from_secs(1), "second");
        let order: Vec<_> = std::iter::from_fn(|| agenda.take_next()).collect();
        assert_eq!(order, ["first", "second", "late"]);
        assert_eq!(agenda.now(), Time::from_secs(12));
    }
}

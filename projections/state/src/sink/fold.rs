use model::event::{EventSinkDeleted, EventSinkParked, EventSinkPaused, EventSinkResumed, EventSinkSet};

use super::state::{Parked, Sink, Sinks, Status};
use crate::moment::Moment;

impl Sinks {
    /// A change leaves its status as it is.
    pub(crate) fn was_set(&mut self, at: Moment, event: &EventSinkSet) {
        let before = self.get(&event.name);
        let sink = Sink {
            settings: event.settings.read(),
            status: before.map_or(Status::Running, |before| before.status.clone()),
            created: before.map_or(at.index, |before| before.created),
            modified: at.index,
        };
        self.set(at.index, &event.name, Some(sink));
    }

    pub(crate) fn deleted(&mut self, at: Moment, event: &EventSinkDeleted) {
        self.known(&event.name);
        self.set(at.index, &event.name, None);
    }

    pub(crate) fn paused(&mut self, at: Moment, event: &EventSinkPaused) {
        self.turn(at, &event.name, Status::Paused);
    }

    pub(crate) fn parked(&mut self, at: Moment, event: &EventSinkParked) {
        let EventSinkParked { name, event, attempts, reason } = event;
        let parked = Parked { event: *event, attempts: *attempts, reason: reason.clone(), at: at.time };
        self.turn(at, name, Status::Parked(parked));
    }

    pub(crate) fn resumed(&mut self, at: Moment, event: &EventSinkResumed) {
        self.turn(at, &event.name, Status::Running);
    }

    fn turn(&mut self, at: Moment, name: &str, status: Status) {
        let sink = Sink { status, modified: at.index, ..self.known(name).clone() };
        self.set(at.index, name, Some(sink));
    }

    /// # Panics
    /// If the log names a sink that is not there: the log is damaged, and going on would spread the damage.
    fn known(&self, name: &str) -> &Sink {
        self.get(name).expect("the event names a sink that was set")
    }
}

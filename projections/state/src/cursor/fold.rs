use model::Actor;
use model::event::{EventCursorAcked, EventCursorDeleted, EventCursorReset, EventCursorSet};

use super::state::{Acknowledged, Cursor, Cursors};
use crate::moment::Moment;

impl Cursors {
    pub(crate) fn was_set(&mut self, at: Moment, event: &EventCursorSet) {
        let before = self.get(&event.name);
        let cursor = Cursor {
            settings: event.settings.read(),
            position: event.position,
            created: before.map_or(at.index, |before| before.created),
            modified: at.index,
            created_at: before.map_or(at.time, |before| before.created_at),
            used_at: at.time,
            acknowledged: before.and_then(|before| before.acknowledged.clone()),
        };
        self.set(at.index, &event.name, Some(cursor));
    }

    pub(crate) fn acked(&mut self, at: Moment, by: &Actor, event: &EventCursorAcked) {
        let acknowledged = Some(Acknowledged { at: at.time, index: at.index, by: by.to_string() });
        let before = self.known(&event.name);
        assert!(before.position < event.position, "what is acknowledged lies ahead of the cursor");
        let cursor = Cursor {
            position: event.position,
            modified: at.index,
            used_at: at.time,
            acknowledged,
            ..before.clone()
        };
        self.set(at.index, &event.name, Some(cursor));
    }

    pub(crate) fn reset(&mut self, at: Moment, event: &EventCursorReset) {
        let before = self.known(&event.name).clone();
        let cursor = Cursor { position: event.position, modified: at.index, used_at: at.time, ..before };
        self.set(at.index, &event.name, Some(cursor));
    }

    pub(crate) fn deleted(&mut self, at: Moment, event: &EventCursorDeleted) {
        self.known(&event.name);
        self.set(at.index, &event.name, None);
    }

    /// # Panics
    /// If the log names a cursor that is not there: the log is damaged, and going on would spread the damage.
    fn known(&self, name: &str) -> &Cursor {
        self.get(name).expect("the event names a cursor that was set")
    }
}

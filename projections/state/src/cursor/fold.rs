use model::Actor;
use model::event::{
    EventCursorAcked, EventCursorDeleted, EventCursorMemberAcked, EventCursorReset, EventCursorSet,
    EventCursorSplit,
};
use model::{EventCursorSettings, EventPosition};

use super::state::{Acknowledged, Cursor, Cursors, Member};
use crate::moment::Moment;

impl Cursors {
    pub(crate) fn was_set(&mut self, at: Moment, event: &EventCursorSet) {
        let before = self.get(&event.name);
        let settings: EventCursorSettings = event.settings.read();
        let members = match before {
            Some(before) if before.members.len() == settings.members as usize => before.members.clone(),
            _ => all_at(event.position, settings.members),
        };
        let cursor = Cursor {
            settings,
            position: least(&members).unwrap_or(event.position),
            members,
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
        assert!(before.members.is_empty(), "of a cursor that is split each member acknowledges its own");
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
        let mut cursor = Cursor { position: event.position, modified: at.index, used_at: at.time, ..before };
        cursor.members.iter_mut().for_each(|member| member.position = event.position);
        self.set(at.index, &event.name, Some(cursor));
    }

    /// The cursor is where the member is that has come least far.
    pub(crate) fn member_acked(&mut self, at: Moment, by: &Actor, event: &EventCursorMemberAcked) {
        let acknowledged = Some(Acknowledged { at: at.time, index: at.index, by: by.to_string() });
        let mut cursor = self.known(&event.name).clone();
        let member = cursor.members.get_mut(event.member as usize);
        let member = member.expect("the event names a member that the cursor has");
        assert!(member.position < event.position, "what is acknowledged lies ahead of the member");
        *member = Member { position: event.position, acknowledged: acknowledged.clone() };
        let cursor = Cursor {
            position: least(&cursor.members).unwrap_or(cursor.position),
            modified: at.index,
            used_at: at.time,
            acknowledged,
            ..cursor
        };
        self.set(at.index, &event.name, Some(cursor));
    }

    pub(crate) fn split(&mut self, at: Moment, event: &EventCursorSplit) {
        let before = self.known(&event.name).clone();
        let settings = EventCursorSettings { members: event.members, ..before.settings };
        let cursor = Cursor {
            settings,
            position: event.position,
            members: all_at(event.position, event.members),
            modified: at.index,
            used_at: at.time,
            ..before
        };
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

/// Where the one is that has come least far.
fn least(members: &[Member]) -> Option<EventPosition> {
    members.iter().map(|member| member.position).min()
}

fn all_at(position: EventPosition, members: u32) -> Vec<Member> {
    vec![Member { position, acknowledged: None }; members as usize]
}

//! What happens to cursors of the event stream.

use base::{Duration, Index, Rng};
use model::event::*;
use model::{Doc, EventCursorSettings, EventPosition};
use state::State;

pub fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    let name = format!("cursor-{}", rng.below(4));
    // What needs something to be there comes with it, so that a short history has all of it.
    let mut events = Vec::new();
    let known = state.cursors.get(&name);
    let mut members: Vec<EventPosition> =
        known.into_iter().flat_map(|known| &known.members).map(|member| member.position).collect();
    let mut at = match known {
        Some(known) if rng.below(2) == 0 => known.position,
        Some(_) | None => {
            let (position, number) = (place(state, rng), 2 * rng.below(2) as u32);
            events.push(set(name.clone(), position, number, rng));
            if members.len() != number as usize {
                members = vec![position; number as usize];
            }
            position
        }
    };
    if rng.below(3) == 0 {
        at = place(state, rng);
        events.push(EventCursorReset { name: name.clone(), position: at }.into());
        members.fill(at);
    }
    if rng.below(3) == 0 {
        at = place(state, rng);
        let number = [0, 2, 3][rng.below(3) as usize];
        events.push(EventCursorSplit { name: name.clone(), members: number, position: at }.into());
        members = vec![at; number as usize];
    }
    // Never back.
    let mut after =
        |at: EventPosition| EventPosition { index: at.index.next(), ordinal: rng.below(9) as u32 };
    events.push(match members.len() {
        0 => EventCursorAcked { name: name.clone(), position: after(at) }.into(),
        number => {
            let member = at.index.0 as usize % number;
            let position = after(members[member]);
            EventCursorMemberAcked { name: name.clone(), member: member as u32, position }.into()
        }
    });
    if rng.below(3) == 0 {
        events.push(EventCursorDeleted { name }.into());
    }
    events
}

fn set(name: String, position: EventPosition, members: u32, rng: &mut Rng) -> Event {
    let topics = ["Job", "Node", "Allocation:web"];
    let topics = topics.iter().take(rng.below(4) as usize).map(ToString::to_string).collect();
    let settings = EventCursorSettings {
        topics,
        namespace: if rng.below(2) == 0 { "*".into() } else { "default".into() },
        filter: String::new(),
        from: "oldest".into(),
        reader: String::new(),
        ttl: Duration::from_secs(rng.below(3) as i64 * 3600),
        members,
    };
    EventCursorSet { name, settings: Doc::of(&settings), position }.into()
}

fn place(state: &State, rng: &mut Rng) -> EventPosition {
    let index = Index(rng.below(state.index.0.max(1)));
    EventPosition { index, ordinal: if rng.below(2) == 0 { u32::MAX } else { rng.below(5) as u32 } }
}

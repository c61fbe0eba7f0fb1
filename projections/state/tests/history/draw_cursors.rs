//! What happens to cursors of the event stream.

use base::{Duration, Index, Rng};
use model::event::*;
use model::{Doc, EventCursorSettings, EventPosition};
use state::State;

pub fn events(state: &State, rng: &mut Rng) -> Vec<Event> {
    let name = format!("cursor-{}", rng.below(4));
    // What needs something to be there comes with it, so that a short history has all of it.
    let mut events = Vec::new();
    let mut at = match state.cursors.get(&name) {
        Some(known) if rng.below(2) == 0 => known.position,
        Some(_) | None => {
            let position = place(state, rng);
            events.push(set(name.clone(), position, rng));
            position
        }
    };
    if rng.below(3) == 0 {
        at = place(state, rng);
        events.push(EventCursorReset { name: name.clone(), position: at }.into());
    }
    // Never back.
    let position = EventPosition { index: at.index.next(), ordinal: rng.below(9) as u32 };
    events.push(EventCursorAcked { name: name.clone(), position }.into());
    if rng.below(3) == 0 {
        events.push(EventCursorDeleted { name }.into());
    }
    events
}

fn set(name: String, position: EventPosition, rng: &mut Rng) -> Event {
    let topics = ["Job", "Node", "Allocation:web"];
    let topics = topics.iter().take(rng.below(4) as usize).map(ToString::to_string).collect();
    let settings = EventCursorSettings {
        topics,
        namespace: if rng.below(2) == 0 { "*".into() } else { "default".into() },
        filter: String::new(),
        from: "oldest".into(),
        reader: String::new(),
        ttl: Duration::from_secs(rng.below(3) as i64 * 3600),
    };
    EventCursorSet { name, settings: Doc::of(&settings), position }.into()
}

fn place(state: &State, rng: &mut Rng) -> EventPosition {
    let index = Index(rng.below(state.index.0.max(1)));
    EventPosition { index, ordinal: if rng.below(2) == 0 { u32::MAX } else { rng.below(5) as u32 } }
}

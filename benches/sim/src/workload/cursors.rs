//! Cursors that readers move on, and that operators split, put elsewhere and delete.

use base::{Duration, Index, Rng};
use model::{Command, EventCursorSettings, EventPosition, SetEventCursor};
use state::State;

/// One in so many acknowledgements names what is still to come: it has to be refused.
const AHEAD: u64 = 12;

pub fn command(seen: &State, rng: &mut Rng) -> Command {
    let name = format!("cursor-{}", rng.below(2));
    let Some(known) = seen.cursors.get(&name) else { return made(name, rng) };
    let somewhere = |rng: &mut Rng| {
        let index = Index(rng.below(seen.index.0.max(1)));
        (rng.below(4) > 0).then_some(EventPosition { index, ordinal: rng.below(3) as u32 })
    };
    match rng.below(20) {
        0 => Command::DeleteEventCursor { name },
        1 => Command::ResetEventCursor { name, to: somewhere(rng) },
        2 | 3 => Command::SplitEventCursor { name, members: rng.below(4) as u32, to: somewhere(rng) },
        4 => made(name, rng),
        _ => {
            let member = rng.below(known.members.len().max(1) as u64) as u32;
            let place = known.members.get(member as usize).map_or(known.position, |own| own.position);
            let left = seen.index.0.saturating_sub(place.index.0);
            let ahead = if rng.below(AHEAD) == 0 { left + 1_000 } else { rng.below(left.max(1)) };
            let after = EventPosition { index: Index(place.index.0 + ahead), ordinal: rng.below(3) as u32 };
            match known.members.len() {
                0 => Command::AckEventCursor { name, after },
                _ => Command::AckEventCursorMember { name, member, after },
            }
        }
    }
}

/// Or changed, or refused.
fn made(name: String, rng: &mut Rng) -> Command {
    let settings = EventCursorSettings {
        topics: if rng.below(2) == 0 { vec!["Job".to_string()] } else { Vec::new() },
        namespace: "*".to_string(),
        ttl: Duration::from_secs(rng.below(3) as i64 * 60),
        members: rng.below(4) as u32,
        ..EventCursorSettings::default()
    };
    Command::SetEventCursor(Box::new(SetEventCursor { name, settings, start: None }))
}

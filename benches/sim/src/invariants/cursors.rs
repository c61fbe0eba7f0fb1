//! How far readers of the stream have come: what is acknowledged has happened, and only a reset goes back.

use model::{Event, EventPosition};
use state::cursor::Cursor;

use crate::fact::{Check, Fact, Folded};
use crate::witness::Witness;

#[derive(Default)]
pub struct CursorsGoOn;

impl Check for CursorsGoOn {
    fn sentence(&self) -> &'static str {
        "a cursor is where the last of its readers is, never ahead of the log, and goes back by a reset alone"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let (before, after) = (&folded.before.cursors, &folded.after.cursors);
        if before.changed() == after.changed() && after.changed() != folded.batch.index {
            return Ok(());
        }
        for (name, cursor) in after.iter() {
            let told = |why: String| format!("cursor {name}: {why}");
            fits(cursor).map_err(told)?;
            let places = places(cursor);
            if let Some(ahead) = places.iter().find(|place| place.index >= folded.batch.index) {
                return Err(told(format!("{ahead:?} is ahead of batch {}", folded.batch.index)));
            }
            let Some(known) = before.get(name).filter(|_| !is_moved(folded, name)) else { continue };
            let back = self::places(known).into_iter().zip(&places).find(|(old, new)| *old > **new);
            if let Some((old, new)) = back {
                return Err(told(format!("it was at {old:?}, and is at {new:?}")));
            }
        }
        Ok(())
    }
}

fn fits(cursor: &Cursor) -> Result<(), String> {
    let number = cursor.members.len();
    if number != cursor.settings.members as usize {
        return Err(format!("it is split among {}, and has {number} members", cursor.settings.members));
    }
    match cursor.members.iter().map(|member| member.position).min() {
        Some(least) if least != cursor.position => {
            Err(format!("it is at {:?}, and the last of its members at {least:?}", cursor.position))
        }
        _ => Ok(()),
    }
}

/// Where it is, and where each of its members is.
fn places(cursor: &Cursor) -> Vec<EventPosition> {
    std::iter::once(cursor.position).chain(cursor.members.iter().map(|member| member.position)).collect()
}

/// Somebody put it elsewhere, or made it anew.
fn is_moved(folded: &Folded<'_>, name: &str) -> bool {
    folded.events.iter().any(|event| match event {
        Event::EventCursorReset(e) => e.name == name,
        Event::EventCursorSplit(e) => e.name == name,
        Event::EventCursorDeleted(e) => e.name == name,
        _ => false,
    })
}

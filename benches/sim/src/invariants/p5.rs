//! P5: what is wanted to stop never reconnects.

use model::Event;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct StoppedNeverReconnect;

impl Check for StoppedNeverReconnect {
    fn sentence(&self) -> &'static str {
        "P5 what is wanted to stop never reconnects"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for event in folded.events {
            let Event::AllocsReconnected(back) = event else { continue };
            let stopping = |id: &&model::AllocId| {
                folded.before.allocs.lookup(**id).is_none_or(|alloc| alloc.is_stopping())
            };
            if let Some(id) = back.allocs.iter().find(stopping) {
                return Err(format!("{id} was wanted to stop and reconnected"));
            }
        }
        Ok(())
    }
}

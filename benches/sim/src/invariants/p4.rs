//! P4: a return is recognised from what the servers know, and recorded once.

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;
use model::{ClientStatus, Event};

#[derive(Default)]
pub struct ReturnsAreRecordedOnce;

impl Check for ReturnsAreRecordedOnce {
    fn sentence(&self) -> &'static str {
        "P4 a return is recognised from what the servers know, and recorded once"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for event in folded.events {
            let Event::AllocsReconnected(back) = event else { continue };
            for id in &back.allocs {
                let alloc = folded.before.allocs.lookup(*id).ok_or_else(|| format!("{id} is not known"))?;
                if !alloc.needs_to_reconnect() {
                    return Err(format!("{id} comes back though the servers never lost it, or twice"));
                }
            }
        }
        Ok(())
    }

    fn rest(&mut self, _: &Rest<'_>, witness: &Witness) -> Result<(), String> {
        let state = &witness.state;
        let lost = state.allocs.iter().map(|(_, alloc)| alloc).find(|alloc| {
            !alloc.is_terminal() && (alloc.needs_to_reconnect() || alloc.client == ClientStatus::Unknown)
        });
        lost.map_or(Ok(()), |alloc| Err(format!("the return of {} was never recorded", alloc.id)))
    }
}

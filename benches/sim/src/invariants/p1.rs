//! P1: after a disconnect, nothing is replaced once the first word of its return is in, if it still runs.

use std::collections::BTreeSet;

use model::{AllocId, Event};
use state::State;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct NoReplacementAfterReturn;

impl Check for NoReplacementAfterReturn {
    fn sentence(&self) -> &'static str {
        "P1 what came back and runs is not replaced, and nothing has two substitutes"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let mut stopped: BTreeSet<AllocId> = BTreeSet::new();
        let mut replaced: BTreeSet<AllocId> = BTreeSet::new();
        for event in folded.events {
            match event {
                Event::AllocsStopped(e) => stopped.extend(&e.allocs),
                Event::AllocsPlaced(e) => {
                    let previous = e.previous.iter().filter(|id| **id != AllocId::default());
                    for id in previous {
                        if !replaced.insert(*id) {
                            return Err(format!("{id} is replaced twice at once"));
                        }
                        may_be_replaced(folded.before, *id, stopped.contains(id))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn may_be_replaced(before: &State, id: AllocId, stopped: bool) -> Result<(), String> {
    let Some(alloc) = before.allocs.lookup(id) else { return Ok(()) };
    let hot = before.nodes.hot(alloc.node);
    let heard = !hot.gone && !hot.status.is_silent();
    if !stopped && !alloc.is_terminal() && heard {
        return Err(format!("{id} was replaced although it runs and its node is {}", hot.status));
    }
    let substitute = alloc.next.and_then(|next| before.allocs.lookup(next));
    match substitute.filter(|other| !other.is_terminal() && !before.nodes.hot(other.node).status.is_silent())
    {
        Some(other) => Err(format!("{id} was replaced although {} stands in for it", other.id)),
        None => Ok(()),
    }
}

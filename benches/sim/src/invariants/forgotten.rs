//! What was forgotten: nothing that is kept is encrypted with a key that was given up, and none comes back.

use std::collections::BTreeSet;

use base::Uuid;
use model::{Event, SealedItems, VariableKey};

use crate::fact::{Check, Fact, Folded};
use crate::witness::Witness;

#[derive(Default)]
pub struct ForgottenStaysSo;

impl Check for ForgottenStaysSo {
    fn sentence(&self) -> &'static str {
        "what was forgotten is not kept, nothing is written with its key again, and who erased it does not have it back"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        let (before, after) = (&folded.before.erasure, &folded.after.erasure);
        let (old, new) = (before.given_up(), after.given_up());
        if !new.starts_with(&old) {
            return Err(format!("{} keys were given up, and of these not all are any more", old.len()));
        }
        for (server, holder) in before.holders() {
            let later = after.holders().get(server);
            if let Some(later) = later.filter(|later| later.erased < holder.erased) {
                return Err(format!(
                    "{server} had erased up to {}, and has up to {}",
                    holder.erased, later.erased
                ));
            }
        }
        let given_up: BTreeSet<Uuid> = new.into_iter().map(|(key, _)| key).collect();
        for event in folded.events {
            if let Event::VariableForgotten(forgotten) = event
                && folded.after.variables.get(&forgotten.key).is_some()
            {
                return Err(format!("{} was forgotten, and is there", forgotten.key));
            }
        }
        let is_lost = |items: &SealedItems| given_up.contains(&items.sealed.key);
        let kept = |key: &VariableKey| match folded.after.variables.get(key) {
            Some(variable) if variable.versions.iter().any(|version| is_lost(&version.items)) => {
                Err(format!("{key} is kept with a key that was given up"))
            }
            _ => Ok(()),
        };
        touched(folded).into_iter().try_for_each(kept)
    }
}

/// Variables that the batch may have written or forgotten: those that it leaves alone were looked at before.
fn touched<'a>(folded: &'a Folded<'_>) -> Vec<&'a VariableKey> {
    folded
        .events
        .iter()
        .filter_map(|event| match event {
            Event::VariableSet(e) => Some(&e.key),
            Event::VariableLockAcquired(e) => Some(&e.key),
            Event::VariableForgotten(e) => Some(&e.key),
            _ => None,
        })
        .collect()
}

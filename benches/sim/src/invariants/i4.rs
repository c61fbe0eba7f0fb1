//! I4: nothing is published that is not committed, and no server goes back.

use std::collections::BTreeMap;

use base::Index;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct OnlyCommitted {
    published: BTreeMap<usize, Index>,
}

impl Check for OnlyCommitted {
    fn sentence(&self) -> &'static str {
        "I4 what is published is committed"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::Restarted { server } => _ = self.published.remove(server),
            Fact::Published { server, state, .. } => {
                let (index, head) = (state.index, witness.head());
                if index > head {
                    return Err(format!("server {server} published {index}, but the log ends at {head}"));
                }
                let before = self.published.insert(*server, index).unwrap_or_default();
                if index < before {
                    return Err(format!("server {server} went back from {before} to {index}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

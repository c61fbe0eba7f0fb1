//! I1: a batch was decided on the fold of all earlier ones. Source: core-design C0.
//!
//! A leader publishes the state it decided on and changed as it went; whoever folds the bytes must get the same.

use std::collections::BTreeMap;

use base::Index;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct DecidedOnTheFold {
    published: BTreeMap<usize, Index>,
}

impl Check for DecidedOnTheFold {
    fn sentence(&self) -> &'static str {
        "I1 a batch was decided on the fold of all earlier ones"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        let Fact::Published { server, state, decided } = fact else { return Ok(()) };
        let since = self.published.insert(*server, state.index).unwrap_or_default();
        if !decided {
            return Ok(());
        }
        let differs = witness.differs(state, since);
        differs.map_or(Ok(()), |how| Err(format!("server {server}: {how}")))
    }
}

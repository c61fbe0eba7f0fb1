//! I1: a batch was decided on the fold of all earlier ones.
//!
//! A leader publishes the state it decided on and changed as it went; whoever folds the bytes must get the same.

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct DecidedOnTheFold;

impl Check for DecidedOnTheFold {
    fn sentence(&self) -> &'static str {
        "I1 a batch was decided on the fold of all earlier ones"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        let Fact::Published { server, state, decided } = fact else { return Ok(()) };
        let differs = decided.then(|| witness.differs(state)).flatten();
        differs.map_or(Ok(()), |how| Err(format!("server {server}: {how}")))
    }
}

//! I8: an image gives back the state it was made of.
//!
//! That what is folded after it is the same as without it follows from I3, which goes on watching the server.

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct ImagesAreTrue;

impl Check for ImagesAreTrue {
    fn sentence(&self) -> &'static str {
        "I8 an image gives back the state it was made of"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        let Fact::Restored { server, state } = fact else { return Ok(()) };
        if let Some((table, _, _)) = state.digest().difference(&state.recomputed_digest()) {
            return Err(format!(
                "server {server}: the digest of the {table} is not theirs at {}",
                state.index
            ));
        }
        match witness.differs_anywhere(state) {
            Some(how) => Err(format!("server {server}: {how}")),
            None => Ok(()),
        }
    }
}

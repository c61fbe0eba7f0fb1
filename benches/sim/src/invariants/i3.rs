//! I3: at equal indexes all servers have equal states.
//!
//! Each server is compared with the witness: the digests at every step, all rows now and then and in the end.

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;

/// Of so many published states one is compared as a whole.
const WHOLE_EVERY: u64 = 64;

#[derive(Default)]
pub struct EqualStates;

impl Check for EqualStates {
    fn sentence(&self) -> &'static str {
        "I3 at equal indexes all servers have equal states"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        let Fact::Published { server, state, .. } = fact else { return Ok(()) };
        let whole = state.index.0.is_multiple_of(WHOLE_EVERY);
        let anywhere = || whole.then(|| witness.differs_anywhere(state)).flatten();
        match witness.differs(state).or_else(anywhere) {
            Some(how) => Err(format!("server {server}: {how}")),
            None => Ok(()),
        }
    }

    fn rest(&mut self, rest: &Rest<'_>, witness: &Witness) -> Result<(), String> {
        for (server, state) in rest.servers.iter().enumerate() {
            if let Some(how) = witness.differs_anywhere(state) {
                return Err(format!("server {server}: {how}"));
            }
        }
        Ok(())
    }
}

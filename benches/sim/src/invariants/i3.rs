//! I3: at equal indexes all servers have equal states. Source: core-design C0.
//!
//! Each server is compared with the witness: the rows that were touched at every step, all of them now and then
//! and in the end.

use std::collections::BTreeMap;

use base::Index;

use crate::fact::{Check, Fact, Rest};
use crate::witness::Witness;

/// Of so many published states one is compared as a whole.
const WHOLE_EVERY: u64 = 64;

#[derive(Default)]
pub struct EqualStates {
    published: BTreeMap<usize, Index>,
}

impl Check for EqualStates {
    fn sentence(&self) -> &'static str {
        "I3 at equal indexes all servers have equal states"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::Restarted { server } => _ = self.published.remove(server),
            Fact::Published { server, state, .. } => {
                let since = self.published.insert(*server, state.index).unwrap_or_default();
                let whole = state.index.0.is_multiple_of(WHOLE_EVERY);
                let anywhere = || whole.then(|| witness.differs_anywhere(state)).flatten();
                if let Some(how) = witness.differs(state, since).or_else(anywhere) {
                    return Err(format!("server {server}: {how}"));
                }
            }
            _ => {}
        }
        Ok(())
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

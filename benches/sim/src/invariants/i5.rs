//! I5: what is committed stays committed, with the same bytes on every server.
//!
//! That no acknowledged write is missing from it is what `oracles/jobs.rs` sees.

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct CommittedForEver;

impl Check for CommittedForEver {
    fn sentence(&self) -> &'static str {
        "I5 what is committed stays committed, the same on every server"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        let Fact::InLog { server, batch } = fact else { return Ok(()) };
        let index = batch.index();
        let at = index.0.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| witness.batches.get(at)) {
            Some(known) if known == *batch => Ok(()),
            Some(_) => Err(format!("server {server} has another batch {index} than the first who had one")),
            None => Err(format!("server {server} has batch {index}, but the log ends at {}", witness.head())),
        }
    }
}

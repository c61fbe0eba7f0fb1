//! A term has one leader. It is what raft calls election safety.

use std::collections::BTreeMap;

use base::Term;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct OneLeaderATerm(BTreeMap<Term, usize>);

impl Check for OneLeaderATerm {
    fn sentence(&self) -> &'static str {
        "a term has one leader"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Leads { server, term } = fact else { return Ok(()) };
        let first = *self.0.entry(*term).or_insert(*server);
        if first == *server {
            return Ok(());
        }
        Err(format!("servers {first} and {server} lead in term {}", term.0))
    }
}

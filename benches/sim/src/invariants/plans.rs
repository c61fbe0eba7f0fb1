//! Every plan holds on the state it was made on. The checker is `placement::lint`.

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct PlansHold;

impl Check for PlansHold {
    fn sentence(&self) -> &'static str {
        "every plan holds on the state it was made on"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Scheduled { delivery, state, plan, .. } = fact else { return Ok(()) };
        let found = placement::lint::check(state, plan);
        if found.is_empty() { Ok(()) } else { Err(format!("{}: {}", delivery.eval, found.join("; "))) }
    }
}

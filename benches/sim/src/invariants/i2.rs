//! I2: indexes are dense, and time never runs backwards in them.

use base::{Index, Time};

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct Dense {
    last: Index,
    time: Time,
}

impl Check for Dense {
    fn sentence(&self) -> &'static str {
        "I2 indexes are dense, and time in the log never runs backwards"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Committed(batch) = fact else { return Ok(()) };
        if batch.index != self.last.next() {
            return Err(format!("batch {} follows {}", batch.index, self.last));
        }
        if batch.time < self.time {
            return Err(format!("batch {} is older than the one before", batch.index));
        }
        if batch.events.is_empty() {
            return Err(format!("batch {} says nothing", batch.index));
        }
        (self.last, self.time) = (batch.index, batch.time);
        Ok(())
    }
}

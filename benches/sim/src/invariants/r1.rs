//! R1: a reader that asks what it must have seen misses nothing that was acknowledged to anybody before, and sees no less
//! than readers before it. What it asks is `Journal::read_index`.

use std::collections::BTreeMap;

use base::Index;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct ReadsAreFresh {
    /// What some client has received so far.
    told: Index,
    /// What was so when each read was asked that is not answered yet.
    floors: BTreeMap<u64, Index>,
}

impl Check for ReadsAreFresh {
    fn sentence(&self) -> &'static str {
        "R1 a reader misses nothing that anybody was told of before it asked"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        match fact {
            Fact::Answered { outcome: Ok(receipt), .. } => self.told = self.told.max(receipt.index),
            Fact::ReadAsked { read } => _ = self.floors.insert(*read, self.told),
            Fact::ReadAnswered { read, server, index } => {
                let floor = self.floors.remove(read).unwrap_or_default();
                if *index < floor {
                    return Err(format!(
                        "server {server} says that {index} is enough, and {floor} was told before"
                    ));
                }
                self.told = self.told.max(*index);
            }
            _ => {}
        }
        Ok(())
    }
}

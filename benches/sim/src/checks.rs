//! All checks together, and the witness they share.

use std::sync::Arc;

use journal::EncodedBatch;
use state::State;

use crate::fact::{Check, Fact, Rest, Violation};
use crate::witness::Witness;
use crate::{invariants, oracles};

pub struct Checks {
    pub witness: Witness,
    all: Vec<Box<dyn Check>>,
}

impl Default for Checks {
    fn default() -> Self {
        let all = invariants::all().into_iter().chain(oracles::all()).collect();
        Checks { witness: Witness::default(), all }
    }
}

impl Checks {
    /// # Errors
    /// The first sentence that does not hold.
    pub fn see(&mut self, fact: &Fact<'_>) -> Result<(), Violation> {
        see(&mut self.all, fact, &self.witness)
    }

    /// The log will never lose this batch.
    ///
    /// # Errors
    /// The first sentence that does not hold.
    pub fn commit(&mut self, encoded: &EncodedBatch) -> Result<(), Violation> {
        let Checks { witness, all } = self;
        let mut violated = None;
        let folded = witness.commit(encoded, |witness, folded| {
            see(all, &Fact::Folded(folded), witness).map_err(|violation| {
                violated = Some(violation);
                String::new()
            })
        });
        match folded {
            Ok(batch) => self.see(&Fact::Committed(&batch)),
            Err(how) => {
                let sentence = "I2 each batch can be read and follows the one before".to_string();
                Err(violated.unwrap_or(Violation { sentence, how }))
            }
        }
    }

    /// Everything is over: what must hold in the end.
    ///
    /// # Errors
    /// The first sentence that does not hold.
    pub fn rest(&mut self, servers: Vec<&Arc<State>>, readers: Vec<base::Index>) -> Result<(), Violation> {
        let rest = Rest { servers, readers };
        for check in &mut self.all {
            let sentence = check.sentence().to_string();
            check.rest(&rest, &self.witness).map_err(|how| Violation { sentence, how })?;
        }
        Ok(())
    }
}

fn see(all: &mut [Box<dyn Check>], fact: &Fact<'_>, witness: &Witness) -> Result<(), Violation> {
    for check in all {
        if let Err(how) = check.see(fact, witness) {
            return Err(Violation { sentence: check.sentence().to_string(), how });
        }
    }
    Ok(())
}

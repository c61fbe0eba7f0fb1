//! P6: no worker schedules on a state older than its evaluation.

use model::Event;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct NoOldState;

impl Check for NoOldState {
    fn sentence(&self) -> &'static str {
        "P6 no worker schedules on a state older than its evaluation"
    }

    fn see(&mut self, fact: &Fact<'_>, witness: &Witness) -> Result<(), String> {
        match fact {
            Fact::Delivered { delivery } => {
                let eval = witness.state.evals.lookup(delivery.eval);
                match eval.filter(|eval| eval.created > delivery.wait_index) {
                    Some(eval) => Err(format!(
                        "{} of batch {} was handed out with {}",
                        delivery.eval, eval.created, delivery.wait_index
                    )),
                    None => Ok(()),
                }
            }
            Fact::Scheduled { delivery, state, .. } if state.index < delivery.wait_index => Err(format!(
                "{} was to be scheduled on {} and was on {}",
                delivery.eval, delivery.wait_index, state.index
            )),
            Fact::Folded(folded) => {
                for event in folded.events {
                    let Event::PlanCommitted(plan) = event else { continue };
                    let eval = folded.before.evals.lookup(plan.eval);
                    let eval = eval.ok_or_else(|| format!("{} is not known", plan.eval))?;
                    if plan.snapshot < eval.modified {
                        return Err(format!(
                            "a plan made on {} was committed for {}, which changed at {}",
                            plan.snapshot, plan.eval, eval.modified
                        ));
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

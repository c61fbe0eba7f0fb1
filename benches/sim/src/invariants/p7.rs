//! P7: the end of an evaluation cancels what it made superfluous, once, where everybody sees it.

use base::Time;
use model::{EvalStatus, Event};

use crate::fact::{Check, Fact};
use crate::witness::Witness;

/// `Command::SettleEval`: what a worker brings back.
const SETTLE: u16 = 40;

#[derive(Default)]
pub struct AckCancels;

impl Check for AckCancels {
    fn sentence(&self) -> &'static str {
        "P7 an acknowledgement cancels the evaluations it made superfluous, once and visibly"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for event in folded.events {
            let Event::EvalAcked(acked) = event else { continue };
            let eval = folded.before.evals.lookup(acked.eval);
            let eval = eval.ok_or_else(|| format!("{} is not known", acked.eval))?;
            if eval.status.is_terminal() {
                return Err(format!("{} ended twice", acked.eval));
            }
            if folded.record.kind != SETTLE {
                continue;
            }
            let live = &folded.after.jobs.get(eval.job).live_evals;
            let waiting = live.iter().map(|row| folded.after.evals.get(*row)).filter(|other| {
                let due =
                    other.facts.wait_until == Time::ZERO || other.facts.wait_until <= folded.before.time;
                // What the plan itself asked for is newer than what it made superfluous.
                let older = folded.before.evals.find(other.id()).is_some();
                older && due && other.status == EvalStatus::Pending && other.id() != acked.eval
            });
            let waiting = waiting.count();
            if waiting > 1 {
                return Err(format!("{} ended and {waiting} still wait their turn", acked.eval));
            }
        }
        Ok(())
    }
}

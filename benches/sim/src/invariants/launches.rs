//! A periodic job is launched at most once for each moment of its schedule, and never backwards.
//! See `projections/DESIGN.md`, families of jobs: a launch is a fact of its own.

use model::Event;

use crate::fact::{Check, Fact};
use crate::witness::Witness;

#[derive(Default)]
pub struct LaunchedOnce;

impl Check for LaunchedOnce {
    fn sentence(&self) -> &'static str {
        "a periodic job is launched once for each moment"
    }

    fn see(&mut self, fact: &Fact<'_>, _: &Witness) -> Result<(), String> {
        let Fact::Folded(folded) = fact else { return Ok(()) };
        for event in folded.events {
            let Event::JobLaunched(launched) = event else { continue };
            let last = folded.before.jobs.lookup(&launched.key).map(|job| job.last_launch());
            if !launched.forced && last.is_some_and(|last| launched.at <= last) {
                return Err(format!("{} was launched for {:?} after {last:?}", launched.key, launched.at));
            }
        }
        Ok(())
    }
}

//! What everybody in a run shares: the story, the checks, and the first sentence that did not hold.

use std::fmt;
use std::rc::Rc;

use base::{Index, Time};
use journal::EncodedBatch;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::checks::Checks;
use crate::fact::{Fact, Violation};
use crate::story::Story;
use crate::words;

/// The true time at the first step.
pub const START: Time = Time::from_secs(1_000_000);

pub struct Scene {
    pub checks: Checks,
    pub story: Story,
    pub violation: Option<Violation>,
    /// Told when nothing more is to happen.
    pub stop: Rc<Notify>,
    steps_max: u64,
    begun: Instant,
}

impl Scene {
    pub fn new(whole_story: bool, steps_max: u64) -> Scene {
        Scene {
            checks: Checks::default(),
            story: Story::new(START, whole_story),
            violation: None,
            stop: Rc::default(),
            steps_max,
            begun: Instant::now(),
        }
    }

    /// The true time, which no clock in the cluster has to agree with.
    pub fn now(&self) -> Time {
        START.plus(self.begun.elapsed().into())
    }

    pub fn head(&self) -> Index {
        self.checks.witness.head()
    }

    pub fn tell(&mut self, what: fmt::Arguments<'_>) {
        let now = self.now();
        self.story.tell(now, what);
        if self.story.steps() > self.steps_max {
            self.stop.notify_one();
        }
    }

    pub fn see(&mut self, fact: &Fact<'_>) {
        let seen = self.checks.see(fact);
        self.note(seen);
    }

    /// A server's log says that it has a batch for ever. The first that says so makes it true.
    pub fn in_log(&mut self, server: usize, batch: &EncodedBatch) {
        if batch.index() == self.head().next() {
            self.story.witness(batch.bytes());
            if let Ok(read) = batch.decode() {
                let events = read.events.iter().map(|logged| words::of(&logged.event));
                let events: Vec<String> = events.collect();
                self.tell(format_args!("the log has {}: {}", read.index, events.join("; ")));
            }
            let seen = self.checks.commit(batch);
            self.note(seen);
        }
        self.see(&Fact::InLog { server, batch });
    }

    pub fn violated(&mut self, sentence: &str, how: String) {
        self.note(Err(Violation { sentence: sentence.to_string(), how }));
    }

    /// Only the first counts: what comes after it may follow from it.
    pub fn note(&mut self, seen: Result<(), Violation>) {
        if let Err(violation) = seen
            && self.violation.is_none()
        {
            self.tell(format_args!("VIOLATED {violation}"));
            self.violation = Some(violation);
            self.stop.notify_one();
        }
    }
}

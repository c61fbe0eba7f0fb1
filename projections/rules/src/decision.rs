//! The input of a rule besides the state, and its output.

use base::{Index, Rng, Time};
use model::command::{Reply, Verdict};
use model::{EvalId, Event};

/// What a decision may depend on besides the state: the batch it becomes a part of, its time, and a seed.
#[derive(Clone, Debug)]
pub struct Context {
    /// The index of the batch being filled.
    pub index: Index,
    pub time: Time,
    rng: Rng,
}

impl Context {
    pub fn new(index: Index, time: Time, seed: u64) -> Context {
        Context { index, time, rng: Rng::new(seed) }
    }

    pub(crate) fn mint_eval(&mut self) -> EvalId {
        EvalId(self.rng.uuid())
    }

    pub(crate) fn mint(&mut self) -> base::Uuid {
        self.rng.uuid()
    }
}

/// What a command leads to. No events: nothing changes, so nothing is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub events: Vec<Event>,
    pub verdict: Option<Verdict>,
    /// The version of the job that became its newest again.
    pub reverted_to: Option<u64>,
    /// The child that was dispatched or launched, or was made by the same request before.
    pub child: Option<String>,
}

impl Decision {
    pub(crate) fn nothing() -> Decision {
        Decision::default()
    }

    pub(crate) fn of(events: Vec<Event>) -> Decision {
        Decision { events, ..Decision::default() }
    }

    /// The answer to the caller.
    pub fn reply(&self) -> Reply {
        let evals = self.events.iter().filter_map(|event| match event {
            Event::EvalCreated(created) => Some(created.eval.id),
            _ => None,
        });
        Reply {
            evals: evals.collect(),
            verdict: self.verdict.clone(),
            reverted_to: self.reverted_to,
            child: self.child.clone(),
        }
    }
}

impl<E: Into<Event>> From<E> for Decision {
    fn from(event: E) -> Decision {
        Decision::of(vec![event.into()])
    }
}

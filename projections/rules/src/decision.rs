//! The input of a rule besides the state, and its output.

use base::{Index, Rng, Time};
use model::command::{Reply, Verdict};
use model::{EvalId, Event};
use state::{Remembered, State};

use crate::job::decide::JOB_COUNT_MAX;

/// What a decision may depend on besides the state: the batch it becomes a part of, its time, and a seed.
#[derive(Clone, Debug)]
pub struct Context {
    /// The index of the batch being filled.
    pub index: Index,
    pub time: Time,
    /// Most allocations that a job may ask for over all its groups, and canaries that a group may.
    pub(crate) job_count_max: i64,
    rng: Rng,
}

impl Context {
    pub fn new(index: Index, time: Time, seed: u64) -> Context {
        Context { index, time, job_count_max: JOB_COUNT_MAX, rng: Rng::new(seed) }
    }

    #[must_use]
    pub fn with_job_count_max(self, job_count_max: i64) -> Context {
        Context { job_count_max, ..self }
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
    /// The modify index that the job has by this command; zero without a job.
    pub job_modified: Index,
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
            job_modified: self.job_modified,
        }
    }

    pub(crate) fn with_job_at(self, job_modified: Index) -> Decision {
        Decision { job_modified, ..self }
    }
}

/// The answer to a request that took effect before, as far as its evaluation still says what it was.
pub fn repeated(state: &State, known: Remembered) -> Reply {
    let eval = known.eval.and_then(|id| state.evals.lookup(id));
    Reply {
        evals: known.eval.into_iter().collect(),
        child: eval.map(|eval| eval.facts.key.id.clone()),
        job_modified: eval.map_or(known.index, |eval| eval.facts.job_modify),
        ..Reply::default()
    }
}

impl<E: Into<Event>> From<E> for Decision {
    fn from(event: E) -> Decision {
        Decision::of(vec![event.into()])
    }
}

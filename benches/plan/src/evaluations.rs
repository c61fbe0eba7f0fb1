//! Evaluations to be timed: clusters, jobs, and the small changes between one decision and the next.

use std::time::{Duration, Instant};

use base::{Rng, Time};
pub use load::world::{racks, service, spread};
use model::document::Job;
use model::{Command, Eligibility, EvalId};
use placement::Memory;
use state::State;

use crate::{job, node_id, submit};

/// Fills a cluster with so many allocations, in jobs of 1,000.
pub fn preload(state: &mut State, allocs: usize) {
    preload_with(state, allocs, |name| job(name, 1_000));
}

/// [`preload`] with jobs of another kind.
pub fn preload_with(state: &mut State, allocs: usize, job: impl Fn(&str) -> Job) {
    let mut memory = Memory::default();
    for number in 0..allocs / 1_000 {
        let (decision, _) = submit(state, &crate::register(job(&format!("before-{number}"))));
        let id = decision.reply().evals[0];
        let eval = state.evals.lookup(id).expect("the evaluation was just created");
        let outcome = placement::schedule_with(&mut memory, state, eval, number as u64, state.time);
        submit(state, &Command::SettleEval(Box::new(outcome.settlement)));
    }
    assert_eq!(state.allocs.len(), allocs / 1_000 * 1_000, "the cluster holds what is put on it");
}

/// An evaluation that is decided over and over, on a cluster in which one node changes between two decisions.
pub struct Evaluation {
    cluster: State,
    eval: EvalId,
    /// Placements a decision has to make.
    pub expected: usize,
    chance: Rng,
    memory: Memory,
}

impl Evaluation {
    /// Of a job that is registered in a copy of the cluster.
    pub fn new(cluster: &State, job: Job, expected: usize) -> Evaluation {
        Evaluation::after(cluster, &crate::register(job), expected)
    }

    /// Of what a command leads to in a copy of the cluster.
    pub fn after(cluster: &State, command: &Command, expected: usize) -> Evaluation {
        let mut cluster = cluster.clone();
        let (decision, _) = submit(&mut cluster, command);
        let eval = decision.reply().evals[0];
        Evaluation { cluster, eval, expected, chance: Rng::new(1), memory: Memory::default() }
    }

    /// The cluster without one of its nodes: the one that was left out before is back.
    fn without_a_node(&mut self) -> State {
        let mut state = self.cluster.clone();
        let node = node_id(self.chance.below(state.nodes.len() as u64) as usize);
        submit(&mut state, &Command::SetNodeEligibility { node, to: Eligibility::Ineligible });
        state
    }

    /// Decides once, with what the last decision remembers or from nothing: how long it took.
    pub fn decide(&mut self, warm: bool) -> Duration {
        let state = self.without_a_node();
        let mut nothing = Memory::default();
        let memory = if warm { &mut self.memory } else { &mut nothing };
        let eval = state.evals.lookup(self.eval).expect("the evaluation was just created");
        let now = Time(state.time.0 + 1);
        let start = Instant::now();
        let outcome = placement::schedule_with(memory, &state, eval, 7, now);
        let spent = start.elapsed();
        let placed: usize = outcome.settlement.plan.placed.iter().map(|group| group.ids.len()).sum();
        assert_eq!(placed, self.expected, "the decision places what was asked for");
        spent
    }
}

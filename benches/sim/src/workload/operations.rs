//! What people and their tools ask, and how a client goes on when it is not answered.

use base::Rng;
use model::command::RegisterJob;
use model::{AllocId, Command, Eligibility};
use state::State;

use super::{jobs, nodes};

/// Draws commands that make sense on a state that somebody looked at.
#[derive(Debug)]
pub struct Workload {
    pub seed: u64,
    pub jobs: usize,
    pub nodes: usize,
    written: u64,
}

impl Workload {
    pub fn new(seed: u64, jobs: usize, nodes: usize) -> Workload {
        Workload { seed, jobs, nodes, written: 0 }
    }

    /// A write to one of the registers.
    pub fn write(&mut self, seen: &State, rng: &mut Rng) -> Command {
        let number = rng.below(self.jobs as u64) as usize;
        let key = jobs::key(number);
        match rng.below(10) {
            0 | 1 => Command::DeregisterJob {
                key,
                purge: rng.below(3) == 0,
                eval_priority: None,
                no_shutdown_delay: rng.below(4) == 0,
            },
            _ => self.register(seen, number, rng),
        }
    }

    fn register(&mut self, seen: &State, number: usize, rng: &mut Rng) -> Command {
        self.written += 1;
        let job = jobs::draw(number, self.seed, &self.written.to_string(), rng);
        let known = seen.jobs.lookup(&jobs::key(number)).map_or(0, |job| job.job_modified.0);
        Command::RegisterJob(Box::new(RegisterJob {
            job,
            submission: None,
            enforce_index: (rng.below(4) == 0).then_some(known),
            eval_priority: None,
            preserve_counts: rng.below(8) == 0,
        }))
    }

    pub fn eligibility(&self, rng: &mut Rng) -> Command {
        let to = if rng.below(2) == 0 { Eligibility::Eligible } else { Eligibility::Ineligible };
        Command::SetNodeEligibility { node: nodes::id(rng.below(self.nodes as u64) as usize), to }
    }

    pub fn deregister_node(&self, rng: &mut Rng) -> Command {
        Command::DeregisterNode { node: nodes::id(rng.below(self.nodes as u64) as usize) }
    }

    pub fn evaluate(&self, rng: &mut Rng) -> Command {
        match rng.below(3) {
            0 => Command::EvaluateNode { node: nodes::id(rng.below(self.nodes as u64) as usize) },
            _ => Command::EvaluateJob {
                key: jobs::key(rng.below(self.jobs as u64) as usize),
                force_reschedule: false,
            },
        }
    }

    /// Somebody wants a living allocation elsewhere; nothing if there is none.
    pub fn stop_alloc(&self, seen: &State, rng: &mut Rng) -> Option<Command> {
        let living: Vec<AllocId> =
            seen.allocs.iter().filter(|(_, alloc)| !alloc.is_terminal()).map(|(_, alloc)| alloc.id).collect();
        let alloc = *living.get(rng.below(living.len().max(1) as u64) as usize)?;
        Some(Command::StopAlloc {
            alloc,
            no_shutdown_delay: rng.below(3) == 0,
            reschedule: rng.below(3) == 0,
        })
    }
}

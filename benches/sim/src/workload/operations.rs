//! What people and their tools ask, and how a client goes on when it is not answered.

use std::collections::BTreeMap;

use base::{Duration, Rng};
use model::command::{DispatchJob, DrainWish, RegisterJob, ScaleJob};
use model::{AllocId, Command, DeploymentId, Eligibility, Preempting, SchedulerRules};
use state::State;

use super::jobs::Kind;
use super::{cursors, jobs, nodes, variables, volumes};

/// Draws commands that make sense on a state that somebody looked at.
#[derive(Debug)]
pub struct Workload {
    pub seed: u64,
    pub jobs: usize,
    pub nodes: usize,
    /// Jobs mount volumes that operators register.
    pub with_volumes: bool,
    written: u64,
}

impl Workload {
    pub fn new(seed: u64, jobs: usize, nodes: usize, with_volumes: bool) -> Workload {
        Workload { seed, jobs, nodes, with_volumes, written: 0 }
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
        let job = jobs::draw(number, self.seed, &self.written.to_string(), self.with_volumes, rng);
        let known = seen.jobs.lookup(&jobs::key(number)).map_or(0, |job| job.job_modified.0);
        Command::RegisterJob(Box::new(RegisterJob {
            job,
            submission: None,
            enforce_index: (rng.below(4) == 0).then_some(known),
            eval_priority: None,
            preserve_counts: rng.below(8) == 0,
            preserve_resources: rng.below(8) == 0,
        }))
    }

    /// A volume is registered, described anew or forgotten.
    pub fn volume(&self, rng: &mut Rng) -> Command {
        volumes::command(self.nodes, rng)
    }

    /// A variable is set, locked, released or deleted.
    pub fn variable(&self, seen: &State, rng: &mut Rng) -> Command {
        variables::command(seen, rng)
    }

    /// A cursor of the stream is moved on, or somebody changes it.
    pub fn cursor(&self, seen: &State, rng: &mut Rng) -> Command {
        cursors::command(seen, rng)
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

    /// Drains a node, mostly within a deadline, or calls its drain off.
    pub fn drain(&self, seen: &State, rng: &mut Rng) -> Command {
        let node = nodes::id(rng.below(self.nodes as u64) as usize);
        let draining = seen.nodes.find(node).is_some_and(|row| seen.nodes.cold(row).draining().is_some());
        let deadline = match rng.below(5) {
            0 => Duration(-1),
            1 => Duration::ZERO,
            _ => Duration::from_secs(5 + rng.below(250) as i64),
        };
        let wish = DrainWish { deadline, ignore_system_jobs: rng.below(3) == 0 };
        let drain = (!draining || rng.below(4) == 0).then_some(wish);
        Command::SetNodeDrain { node, drain, mark_eligible: drain.is_none(), meta: BTreeMap::new() }
    }

    /// A child of a parameterized job; nothing if there is no such job.
    pub fn dispatch(&self, rng: &mut Rng) -> Option<Command> {
        let number = self.number_of(Kind::Parameterized, rng)?;
        let idempotency_token =
            if rng.below(2) == 0 { format!("token-{}", rng.below(4)) } else { String::new() };
        let request = DispatchJob { key: jobs::key(number), idempotency_token, ..DispatchJob::default() };
        Some(Command::DispatchJob(Box::new(request)))
    }

    /// Another count for a group; nothing if no job has counts.
    pub fn scale(&self, rng: &mut Rng) -> Option<Command> {
        let number = self.number_of(Kind::Service, rng)?;
        let request = ScaleJob {
            key: jobs::key(number),
            group: jobs::FIRST_GROUP.to_string(),
            count: Some(rng.below(6) as i64),
            ..ScaleJob::default()
        };
        Some(Command::ScaleJob(Box::new(request)))
    }

    fn number_of(&self, kind: Kind, rng: &mut Rng) -> Option<usize> {
        let numbers: Vec<usize> = (0..self.jobs).filter(|n| Kind::of(*n, self.seed) == kind).collect();
        numbers.get(rng.below(numbers.len().max(1) as u64) as usize).copied()
    }

    /// Promotes, fails, pauses or resumes a deployment that is not over; nothing if there is none.
    pub fn steer_deployment(&self, seen: &State, rng: &mut Rng) -> Option<Command> {
        let active: Vec<DeploymentId> =
            seen.deployments.iter().filter(|(_, one)| one.is_active()).map(|(_, one)| one.id).collect();
        let deployment = *active.get(rng.below(active.len().max(1) as u64) as usize)?;
        Some(match rng.below(6) {
            0 => Command::FailDeployment { deployment },
            1 => Command::PauseDeployment { deployment },
            2 => Command::ResumeDeployment { deployment },
            _ => Command::PromoteDeployment { deployment, groups: Vec::new() },
        })
    }

    /// Which jobs may preempt others, and whether the broker is paused.
    pub fn configure_scheduler(&self, rng: &mut Rng) -> Command {
        let preempts = rng.below(2) == 0;
        let preempting = Preempting { service: preempts, batch: preempts, system: true, sysbatch: preempts };
        let pause_eval_broker = rng.below(3) == 0;
        let rules = SchedulerRules { preempting, pause_eval_broker, ..SchedulerRules::default() };
        Command::SetScheduler { rules, only_at: None }
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

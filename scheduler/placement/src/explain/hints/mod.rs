//! Single changes with which all allocations of a group could be placed. Each is tried: the same decision is made on a
//! copy of the state that differs in nothing else.

mod of_cluster;
mod of_job;
mod of_volumes;

use base::Time;
use model::document::{Job, NearMiss, TaskGroup};
use state::State;
use state::eval::Eval;

use super::Registers;
use crate::schedule;

/// Most hints for one group.
pub const HINTS_MAX: usize = 8;
/// Most decisions that are made to find them. Each costs as much as the original decision.
pub const TRIES_MAX: usize = 96;

/// The hints that were found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub changes: Vec<String>,
    /// How many decisions were made to find them.
    pub tried: usize,
    /// A limit was reached before everything was tried.
    pub cut_short: bool,
}

/// The decision that hints are for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'e> {
    pub state: &'e State,
    pub eval: &'e Eval,
    pub seed: u64,
    pub now: Time,
    /// What the servers make of a job that is registered: what cannot be registered is no hint.
    pub registers: Registers<'e>,
    pub group: &'e str,
    /// The version whose allocation could not be placed: not the current one where canaries are tried out.
    pub version: u64,
}

/// Changes with which every allocation of the group could be placed: first of the job, then of the cluster.
pub(crate) fn hints(asked: Asked, nearest: &[NearMiss]) -> Found {
    let job = asked.state.jobs.get(asked.eval.job);
    let version = job.version(asked.version).unwrap_or_else(|| job.current());
    let mut search = Search { asked, job: &version.job, found: Found::default() };
    search.job_changes();
    search.cluster_changes(nearest);
    search.found
}

struct Search<'e> {
    asked: Asked<'e>,
    job: &'e Job,
    found: Found,
}

impl<'e> Search<'e> {
    /// Whether everything is placed if the job is changed like this.
    fn tried(&mut self, relax: impl FnOnce(&mut Job)) -> bool {
        if !self.may_try() {
            return false;
        }
        let mut job = self.job.clone();
        relax(&mut job);
        (self.asked.registers)(&mut job);
        self.places(&self.asked.state.with_version(self.asked.eval.job, self.asked.version, job))
    }

    fn try_change(&mut self, change: String, relax: impl FnOnce(&mut Job)) {
        if self.tried(relax) {
            self.give(change);
        }
    }

    fn may_try(&mut self) -> bool {
        let may = self.found.tried < TRIES_MAX && self.found.changes.len() < HINTS_MAX;
        self.found.tried += usize::from(may);
        self.found.cut_short |= !may;
        may
    }

    /// Every allocation of the group can be placed in that state.
    fn places(&self, fork: &State) -> bool {
        let Asked { eval, seed, now, group, .. } = self.asked;
        let eval = fork.evals.lookup(eval.id()).expect("a copy has the same evaluations");
        let outcome = schedule(fork, eval, seed, now.max(fork.time));
        outcome.explanation.groups.get(group).is_some_and(|group| group.failed.is_none())
    }

    fn give(&mut self, change: String) {
        self.found.changes.push(change);
    }

    fn own_group(&self) -> Option<&'e TaskGroup> {
        self.job.task_groups.iter().find(|group| group.name.as_deref() == Some(self.asked.group))
    }
}

fn group_of<'j>(job: &'j mut Job, name: &str) -> Option<&'j mut TaskGroup> {
    job.task_groups.iter_mut().find(|group| group.name.as_deref() == Some(name))
}

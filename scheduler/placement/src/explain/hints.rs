//! Single changes with which all allocations of a group could be placed. Each is tried: the same decision is made on a
//! copy of the state that differs in nothing else.

use base::Time;
use model::document::{Job, Resources, Task, TaskGroup};
use model::{Command, JobType, Preempting, SchedulerRules};
use state::State;
use state::eval::Eval;

use crate::schedule;

/// Most hints for one group.
pub const HINTS_MAX: usize = 8;
/// Most decisions that are made to find them. Each costs as much as the original decision.
pub const TRIES_MAX: usize = 96;

/// The hints that were found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub changes: Vec<String>,
    /// A limit was reached before everything was tried.
    pub cut_short: bool,
}

/// Changes with which every allocation of the group could be placed.
pub(crate) fn hints(state: &State, eval: &Eval, seed: u64, now: Time, group: &str) -> Found {
    let job = &state.jobs.get(eval.job).current().job;
    let mut search = Search { state, eval, seed, now, job, group, tries: TRIES_MAX, found: Found::default() };
    search.asks();
    search.constraints();
    search.ports();
    search.drivers();
    search.reach();
    search.preemption();
    search.found
}

struct Search<'e> {
    state: &'e State,
    eval: &'e Eval,
    seed: u64,
    now: Time,
    job: &'e Job,
    group: &'e str,
    /// Left of [`TRIES_MAX`].
    tries: usize,
    found: Found,
}

impl<'e> Search<'e> {
    /// Less cpu, memory or disk: the largest request that can be placed.
    fn asks(&mut self) {
        let Some(group) = self.own_group() else { return };
        let tasks = &group.tasks;
        for (what, unit, of, set) in DIMENSIONS {
            let of_task = |task: &Task| task.resources.as_ref().and_then(of).unwrap_or(0);
            let Some(largest) = tasks.iter().max_by_key(|task| of_task(task)) else { continue };
            let (name, asked) = (largest.name.clone(), of_task(largest));
            let lowered = |job: &mut Job, group: &str, to: i64| {
                let task = group_of(job, group)
                    .and_then(|group| group.tasks.iter_mut().find(|task| task.name == name));
                if let Some(resources) = task.and_then(|task| task.resources.as_mut()) {
                    set(resources, to);
                }
            };
            if let Some(most) = self.most(asked, lowered) {
                self.give(format!("task {name:?} asked for {most} {unit} of {what} instead of {asked}"));
            }
        }
        let disk = group.ephemeral_disk.as_ref().and_then(|disk| disk.size_mb).unwrap_or(0);
        let lowered = |job: &mut Job, group: &str, to: i64| {
            if let Some(disk) = group_of(job, group).and_then(|group| group.ephemeral_disk.as_mut()) {
                disk.size_mb = Some(to);
            }
        };
        if let Some(most) = self.most(disk, lowered) {
            self.give(format!("the group asked for {most} MiB of disk instead of {disk}"));
        }
    }

    /// The largest request below `asked` with which everything can be placed, if there is one.
    fn most(&mut self, asked: i64, lower: impl Fn(&mut Job, &str, i64)) -> Option<i64> {
        let group = self.group;
        let (mut fits, mut fails) = (1, asked);
        if asked <= fits || !self.tried(|job| lower(job, group, fits)) {
            return None;
        }
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            if self.tried(|job| lower(job, group, middle)) {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        Some(fits)
    }

    fn constraints(&mut self) {
        let (job, group) = (self.job, self.group);
        for (at, dropped) in job.constraints.iter().enumerate() {
            let text = text_of(dropped);
            self.place_canaries(format!("the job's constraint {text} were dropped"), |job| {
                job.constraints.remove(at);
            });
        }
        let Some(own) = self.own_group() else { return };
        for (at, dropped) in own.constraints.iter().enumerate() {
            self.place_canaries(format!("the constraint {} were dropped", text_of(dropped)), |job| {
                if let Some(group) = group_of(job, group) {
                    group.constraints.remove(at);
                }
            });
        }
        for (nth, task) in own.tasks.iter().enumerate() {
            for (at, dropped) in task.constraints.iter().enumerate() {
                let change =
                    format!("the constraint {} of task {:?} were dropped", text_of(dropped), task.name);
                self.place_canaries(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        group.tasks[nth].constraints.remove(at);
                    }
                });
            }
        }
    }

    fn ports(&mut self) {
        let group = self.group;
        let Some(own) = self.own_group() else { return };
        for (nth, network) in own.networks.iter().enumerate() {
            for (at, port) in network.reserved_ports.iter().enumerate() {
                let change = format!("port {:?} were any port instead of {}", port.label, port.value);
                self.place_canaries(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        let network = &mut group.networks[nth];
                        let mut freed = network.reserved_ports.remove(at);
                        freed.value = 0;
                        network.dynamic_ports.push(freed);
                    }
                });
            }
        }
    }

    /// Another driver that some node has.
    fn drivers(&mut self) {
        let group = self.group;
        let Some(own) = self.own_group() else { return };
        let healthy = |row| {
            let drivers = &self.state.nodes.cold(row).document.drivers;
            drivers
                .iter()
                .filter(|(_, driver)| driver.detected && driver.healthy)
                .map(|(name, _)| name.clone())
        };
        let known: std::collections::BTreeSet<String> = self.state.nodes.rows().flat_map(healthy).collect();
        for (nth, task) in own.tasks.iter().enumerate() {
            let wanted = task.driver.clone();
            for other in known.iter().filter(|other| **other != wanted && *other != MOCK) {
                let change = format!("task {:?} ran with the driver {other} instead of {wanted}", task.name);
                self.place_canaries(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        group.tasks[nth].driver = other.clone();
                    }
                });
            }
        }
    }

    fn reach(&mut self) {
        let everywhere = self.job.datacenters.iter().any(|pattern| pattern == "*");
        if !everywhere && !self.job.datacenters.is_empty() {
            let change =
                format!("every datacenter were allowed instead of {}", self.job.datacenters.join(", "));
            self.place_canaries(change, |job| job.datacenters = vec!["*".to_string()].into());
        }
        let pool = self.job.node_pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or("default");
        if pool != "all" {
            let change = format!("every node pool were allowed instead of {pool:?}");
            self.place_canaries(change, |job| job.node_pool = Some("all".to_string()));
        }
    }

    fn preemption(&mut self) {
        let kind = self.eval.facts.kind;
        let rules = self.state.scheduler().cloned().unwrap_or_default();
        if self.state.scheduler().is_none() || rules.preempting.by(kind) || !self.may_try() {
            return;
        }
        let set = Command::SetScheduler { rules: with_preemption(rules, kind), only_at: None };
        if let Ok(fork) = rules::fork::after(self.state, &set, self.now, self.seed)
            && self.places(&fork)
        {
            self.give(format!("{kind} jobs were allowed to take the place of others (preemption)"));
        }
    }

    fn place_canaries(&mut self, change: String, relax: impl FnOnce(&mut Job)) {
        if self.tried(relax) {
            self.give(change);
        }
    }

    fn tried(&mut self, relax: impl FnOnce(&mut Job)) -> bool {
        if !self.may_try() {
            return false;
        }
        let mut job = self.job.clone();
        relax(&mut job);
        self.places(&self.state.with_current(self.eval.job, job))
    }

    fn may_try(&mut self) -> bool {
        let may = self.tries > 0 && self.found.changes.len() < HINTS_MAX;
        self.tries = self.tries.saturating_sub(1);
        self.found.cut_short |= !may;
        may
    }

    /// Every allocation of the group can be placed in that state.
    fn places(&self, fork: &State) -> bool {
        let eval = fork.evals.lookup(self.eval.id()).expect("a copy has the same evaluations");
        let outcome = schedule(fork, eval, self.seed, self.now.max(fork.time));
        outcome.explanation.groups.get(self.group).is_some_and(|group| group.failed.is_none())
    }

    fn give(&mut self, change: String) {
        self.found.changes.push(change);
    }

    fn own_group(&self) -> Option<&'e TaskGroup> {
        self.job.task_groups.iter().find(|group| group.name.as_deref() == Some(self.group))
    }
}

/// A driver for tests. It runs nothing, so it is no useful hint.
const MOCK: &str = "mock_driver";

type Get = fn(&Resources) -> Option<i64>;
type Set = fn(&mut Resources, i64);

const DIMENSIONS: [(&str, &str, Get, Set); 2] = [
    ("CPU", "MHz", |of| of.cpu, |of, to| of.cpu = Some(to)),
    ("memory", "MiB", |of| of.memory_mb, |of, to| of.memory_mb = Some(to)),
];

fn group_of<'j>(job: &'j mut Job, name: &str) -> Option<&'j mut TaskGroup> {
    job.task_groups.iter_mut().find(|group| group.name.as_deref() == Some(name))
}

fn text_of(constraint: &model::document::Constraint) -> String {
    let text = format!("{} {} {}", constraint.l_target, constraint.operand, constraint.r_target);
    text.trim().to_string()
}

fn with_preemption(rules: SchedulerRules, kind: JobType) -> SchedulerRules {
    let on = |of: JobType| of == kind || rules.preempting.by(of);
    let preempting = Preempting {
        service: on(JobType::Service),
        batch: on(JobType::Batch),
        system: on(JobType::System),
        sysbatch: on(JobType::Sysbatch),
    };
    SchedulerRules { preempting, ..rules }
}

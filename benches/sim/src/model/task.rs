//! One allocation on a node: a task that starts, runs, fails, is started again and ends.

use std::collections::BTreeMap;

use base::{Duration, Rng, Time};
use executor::Exit;
use model::document::{AllocDeploymentStatus, Allocation, Task, TaskState};
use node::alloc::health::{HealthCheck, Verdict};
use node::alloc::status;
use node::services::ServiceHealth;
use node::task::events::{self, DEAD, PENDING, RUNNING};
use node::task::lifecycle::{Role, Roles};
use node::task::restart::{Cause, Decision, Policy, Tracker};

use crate::options::Tasks;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For the end of the allocation that it replaces here.
    Waiting,
    Starting,
    Running,
    /// Between a failure and the next start.
    Resting,
    Stopping,
    Done,
}

pub struct Run {
    pub alloc: Allocation,
    pub phase: Phase,
    /// What was due before the last change is not any more.
    pub generation: u64,
    states: BTreeMap<String, TaskState>,
    tracker: Tracker,
    reported: Option<Allocation>,
    roles: Roles,
    /// Its health, once it is judged, and what judges it until then.
    deployment: Option<AllocDeploymentStatus>,
    health: Option<HealthCheck>,
    /// The machine went down with it.
    died: bool,
}

impl Tasks {
    /// What is set up already needs no time.
    pub fn instant() -> Tasks {
        let soon = Duration::from_millis(50);
        Tasks { start_max: soon, failing: 0, run_max: soon, kill_max: soon }
    }
}

impl Run {
    pub fn new(alloc: Allocation, seed: u64, now: Time) -> Run {
        let mut state = TaskState::default();
        events::enter(&mut state, PENDING, now);
        Run {
            phase: Phase::Waiting,
            generation: 0,
            states: [("t".to_string(), state)].into(),
            tracker: tracker(&alloc, seed),
            reported: None,
            roles: [("t".to_string(), role(&alloc))].into(),
            deployment: alloc.deployment_status.clone(),
            health: HealthCheck::of(&alloc, now),
            died: false,
            alloc,
        }
    }

    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    fn is_batch(&self) -> bool {
        let kind = self.alloc.job.as_ref().and_then(|job| job.kind.as_deref());
        matches!(kind, Some("batch" | "sysbatch"))
    }

    /// First step; returns when the next is due.
    pub fn begin(&mut self, waits: bool, chance: &mut Rng, tasks: &Tasks) -> Option<Duration> {
        if status::is_stopped(&self.alloc.desired_status) {
            return self.end(false);
        }
        if waits {
            return None;
        }
        self.enter(Phase::Starting, Duration(chance.below(tasks.start_max.0 as u64 + 1) as i64))
    }

    /// What is due now happens; returns when the next is due.
    pub fn step(&mut self, chance: &mut Rng, tasks: &Tasks, now: Time) -> Option<Duration> {
        match self.phase {
            Phase::Starting | Phase::Resting => self.started(chance, tasks, now),
            Phase::Running => self.exited(chance, tasks, now),
            Phase::Stopping => {
                self.stamp(DEAD, now);
                self.end(false)
            }
            Phase::Waiting | Phase::Done => None,
        }
    }

    fn started(&mut self, chance: &mut Rng, tasks: &Tasks, now: Time) -> Option<Duration> {
        self.stamp(RUNNING, now);
        self.enter(Phase::Running, Duration::ZERO);
        self.until_exit(chance, tasks)
    }

    /// A service runs for ever, unless it is to fail.
    fn until_exit(&mut self, chance: &mut Rng, tasks: &Tasks) -> Option<Duration> {
        let run = Duration(chance.below(tasks.run_max.0 as u64 + 1) as i64);
        let fails = chance.below(1_000) < tasks.failing;
        (self.is_batch() || fails).then_some(run)
    }

    fn exited(&mut self, chance: &mut Rng, tasks: &Tasks, now: Time) -> Option<Duration> {
        let failed = !self.is_batch() || chance.below(1_000) < tasks.failing;
        let exit = Exit { code: i64::from(failed), ..Exit::default() };
        match self.tracker.decide(Cause::Exited(&exit), now) {
            Decision::Restart { after, reason } => {
                for state in self.states.values_mut() {
                    events::append(state, events::restarting(after, reason), now);
                }
                self.stamp(PENDING, now);
                self.enter(Phase::Resting, after)
            }
            Decision::Finished | Decision::Killed => {
                self.stamp(DEAD, now);
                self.end(false)
            }
            Decision::GiveUp(_) => {
                self.stamp(DEAD, now);
                self.end(true)
            }
        }
    }

    /// The servers have changed their mind after they had lost sight of it.
    pub fn is_back(&self, newer: &Allocation) -> bool {
        !status::is_stopped(&newer.desired_status)
            && newer.client_status == "unknown"
            && newer.alloc_modify_index > self.alloc.alloc_modify_index
    }

    /// Judges its health, as far as that can be done now; returns when to look again.
    pub fn judge(&mut self, now: Time) -> Option<Duration> {
        let watch = self.health.as_ref().filter(|_| !matches!(self.phase, Phase::Stopping))?;
        let states = self.states.clone().into_iter().collect();
        let healthy = match watch.judge(&self.roles, &states, &ServiceHealth::without_checks(), now) {
            Verdict::Open(until) => return Some(until.since(now)),
            Verdict::Healthy => true,
            Verdict::Unhealthy(_) => false,
        };
        self.health = None;
        let known = self.deployment.get_or_insert_default();
        (known.healthy, known.timestamp) = (Some(healthy), now.into());
        None
    }

    /// A newer version of the allocation.
    pub fn update(
        &mut self,
        newer: Allocation,
        chance: &mut Rng,
        tasks: &Tasks,
        now: Time,
    ) -> Option<Duration> {
        if newer.deployment_id != self.alloc.deployment_id {
            self.deployment = newer.deployment_status.clone();
            self.health = HealthCheck::of(&newer, now);
        }
        self.alloc = newer;
        let stopping = matches!(self.phase, Phase::Stopping | Phase::Done);
        if !status::is_stopped(&self.alloc.desired_status) || stopping {
            return None;
        }
        let delay = Duration(chance.below(tasks.kill_max.0 as u64 + 1) as i64);
        self.enter(Phase::Stopping, delay)
    }

    /// The agent is gone, and with it what was due.
    pub fn agent_ended(&mut self, with_tasks: bool) {
        self.generation += 1;
        self.reported = None;
        self.died |= with_tasks && self.phase == Phase::Running;
    }

    /// A new agent goes on with it.
    pub fn restore(&mut self, chance: &mut Rng, tasks: &Tasks, now: Time) -> Option<Duration> {
        let died = std::mem::take(&mut self.died);
        self.tracker = tracker(&self.alloc, chance.next());
        let deployment_status = self.deployment.clone();
        self.health = HealthCheck::of(&Allocation { deployment_status, ..self.alloc.clone() }, now);
        match self.phase {
            Phase::Running if died => self.exited(chance, &Tasks { failing: 1_000, ..tasks.clone() }, now),
            Phase::Running => self.until_exit(chance, tasks),
            Phase::Waiting | Phase::Starting => self.begin(false, chance, tasks),
            Phase::Resting => self.enter(Phase::Resting, Duration::from_secs(1)),
            Phase::Stopping => self.enter(Phase::Stopping, Duration::from_millis(10)),
            Phase::Done => None,
        }
    }

    /// What the servers have to hear, if it is news.
    pub fn report(&mut self, node: &str) -> Option<Allocation> {
        let update = self.describe(node);
        if self.reported.as_ref() == Some(&update) {
            return None;
        }
        self.reported = Some(update.clone());
        Some(update)
    }

    /// What the servers have to hear, news or not.
    pub fn update_now(&mut self, node: &str) -> Allocation {
        let update = self.describe(node);
        self.reported = Some(update.clone());
        update
    }

    fn describe(&self, node: &str) -> Allocation {
        let (client_status, description) = status::of(&self.states);
        Allocation {
            id: self.alloc.id.clone(),
            node_id: node.to_string(),
            task_states: self.states.clone().into_iter().collect(),
            client_status: client_status.to_string(),
            client_description: description.to_string(),
            deployment_status: self.deployment.clone(),
            ..Allocation::default()
        }
    }

    fn stamp(&mut self, to: &str, now: Time) {
        self.states.values_mut().for_each(|state| events::enter(state, to, now));
    }

    fn enter(&mut self, phase: Phase, due: Duration) -> Option<Duration> {
        self.phase = phase;
        self.generation += 1;
        Some(due)
    }

    fn end(&mut self, failed: bool) -> Option<Duration> {
        for state in self.states.values_mut() {
            state.state = DEAD.to_string();
            state.failed |= failed;
        }
        self.enter(Phase::Done, Duration::ZERO);
        None
    }
}

fn role(alloc: &Allocation) -> Role {
    let groups = alloc.job.iter().flat_map(|job| job.task_groups.iter());
    let group = groups.into_iter().find(|group| group.name.as_ref() == Some(&alloc.task_group));
    Role::of(group.and_then(|group| group.tasks.first()).unwrap_or(&Task::default()))
}

fn tracker(alloc: &Allocation, seed: u64) -> Tracker {
    let job = alloc.job.clone().unwrap_or_default();
    let group = job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group));
    let task = group.and_then(|group| group.tasks.first()).cloned().unwrap_or_default();
    let policy = group.and_then(|group| group.restart_policy.as_ref());
    Tracker::new(Policy::of(&job, policy, &task, Role::of(&task)), Rng::stream(seed, &alloc.id))
}

//! After the storm: everything must settle within a bounded time, and then nothing may be left to do.

use std::collections::BTreeSet;

use base::{Duration, Index, Time};
use model::{
    AllocId, Batch, ClientStatus, Command, DeploymentId, DeploymentStatus, Desired, EvalStatus, JobKey,
    JobType, NodeStatus, SchedulerRules,
};
use state::State;
use state::alloc::Alloc;
use state::deployment::Deployment;
use state::job::{JobRow, JobState};

use super::world::{Event, World};
use crate::fact::Violation;
use crate::workload::{jobs, nodes};

/// How often somebody looks whether everything has settled.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The longest that settling may take after the last fault: the farthest a clock was ahead, a fail-over, a time to
/// live, two rounds of the longest wait a job may ask for, and room.
const SETTLES_WITHIN: Duration = Duration::from_secs(1_800);
/// Rounds in which every job is evaluated once more, after which nothing may be left to do.
const ROUNDS: u32 = 3;

/// How long periodic jobs go on in the calm before an operator stops them: each has to be launched in this time.
const LAUNCHES_WATCHED: Duration = Duration::from_secs(240);
/// Their schedule, a look of the leader's, and room.
const LAUNCHED_WITHIN: Duration = Duration::from_secs(90);

/// What everything waits for before it is looked at for the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    #[default]
    None,
    /// Other regions cannot be reached: what waits for them may be open.
    Unreachable,
    /// They are reached again, and not yet heard.
    Reachable,
}

#[derive(Default)]
pub struct Settling {
    pub others: Others,
    /// Deployments that wait for another region, which waits for room.
    pub excused: BTreeSet<DeploymentId>,
    /// All that does not wait for others had settled.
    pub settled: bool,

    since: Time,
    until: Time,
    rounds: u32,
    /// The end of the log when the last round began.
    round_from: Index,
    asked: usize,
    /// Jobs that waited for room or volumes when everything had settled.
    waiting: BTreeSet<JobKey>,
}

impl World {
    pub fn settle(&mut self) {
        self.rest.since = self.true_time();
        self.rest.until = self.true_time().plus(SETTLES_WITHIN);
        // What was to fail before the calm still does.
        self.agenda.after(self.options.tasks.run_max, Event::LookWhetherAtRest);
    }

    pub fn look_whether_at_rest(&mut self) -> Result<(), Violation> {
        if self.over {
            return Ok(());
        }
        self.agenda.after(LOOK_EVERY, Event::LookWhetherAtRest);
        if self.rest.rounds > 0 && self.rest.asked < self.options.jobs {
            return self.ask_for_evaluation();
        }
        self.periodic_jobs_are_launched()?;
        if let (Some(command), Some(client)) = (self.chore(), self.free_client()) {
            self.ask_first(client, command)?;
        }
        if let Err(how) = self.is_settled() {
            if self.true_time() < self.rest.until {
                return Ok(());
            }
            let within = SETTLES_WITHIN.0 / 1_000_000_000;
            let sentence = format!("in calm everything settles within {within} s");
            return Err(Violation { sentence, how });
        }
        self.rest.settled = true;
        if self.rest.others != Others::None {
            return Ok(());
        }
        if self.rest.rounds == 1 {
            self.nobody_waited_in_vain()?;
        }
        if self.rest.rounds < ROUNDS {
            self.tell(format_args!("settled; every job is evaluated once more"));
            self.rest.rounds += 1;
            (self.rest.asked, self.rest.round_from) = (0, self.checks.witness.head());
            if self.rest.rounds == 1 {
                let state = &self.checks.witness.state;
                let waits = |(row, _): &(JobRow, &JobState)| state.evals.blocked_of(*row).is_some();
                self.rest.waiting = state.jobs.iter().filter(waits).map(|(_, job)| job.key.clone()).collect();
            }
            return self.ask_for_evaluation();
        }
        self.finish()
    }

    /// Has the next jobs evaluated, as far as there are clients with nothing else to do.
    fn ask_for_evaluation(&mut self) -> Result<(), Violation> {
        for client in 0..self.clients.len() {
            if self.clients[client].op.is_none() && self.rest.asked < self.options.jobs {
                let key = jobs::key(self.rest.asked);
                self.rest.asked += 1;
                self.ask_first(client, Command::EvaluateJob { key, force_reschedule: false })?;
            }
        }
        Ok(())
    }

    fn free_client(&self) -> Option<usize> {
        self.clients.iter().position(|client| client.op.is_none())
    }

    /// What an operator has to do before everything can come to rest.
    fn chore(&self) -> Option<Command> {
        let state = &self.checks.witness.state;
        if state.scheduler().is_some_and(|rules| rules.pause_eval_broker) {
            return Some(Command::SetScheduler { rules: SchedulerRules::default(), only_at: None });
        }
        if let Some((_, job)) = self.periodic_jobs().next().filter(|_| self.launches_were_watched()) {
            let (key, purge) = (job.key.clone(), false);
            return Some(Command::DeregisterJob {
                key,
                purge,
                eval_priority: None,
                no_shutdown_delay: false,
            });
        }
        let endless = state
            .nodes
            .rows()
            .map(|row| state.nodes.cold(row))
            .find(|node| node.draining().is_some_and(|drain| drain.deadline().is_none()));
        if let Some(node) = endless {
            let meta = Default::default();
            return Some(Command::SetNodeDrain { node: node.id, drain: None, mark_eligible: true, meta });
        }
        let deployments = state.deployments.iter().map(|(_, deployment)| deployment);
        deployments.filter(|one| one.is_active() && !one.gone).find_map(|one| next_push(state, one))
    }

    fn launches_were_watched(&self) -> bool {
        self.true_time() >= self.rest.since.plus(LAUNCHES_WATCHED)
    }

    fn periodic_jobs(&self) -> impl Iterator<Item = (state::job::JobRow, &state::job::JobState)> {
        self.checks.witness.state.jobs.iter().filter(|(_, job)| job.schedule().is_some())
    }

    /// By the time that an operator stops it, each periodic job was launched lately, unless it may not overlap.
    fn periodic_jobs_are_launched(&self) -> Result<(), Violation> {
        let now = self.true_time();
        for (_, job) in self.periodic_jobs().filter(|_| self.launches_were_watched()) {
            let schedule = job.schedule().expect("only those with a schedule are listed");
            let lately = job.last_launch().plus(LAUNCHED_WITHIN) >= now;
            if !lately && schedule.prohibit_overlap != Some(true) {
                let how = format!("{} was launched last at {:?}, now is {now:?}", job.key, job.last_launch());
                let sentence = "in calm every periodic job is launched in time".to_string();
                return Err(Violation { sentence, how });
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Violation> {
        self.nothing_was_left_to_do()?;
        self.read_everything()?;
        let World { servers, readers, checks, .. } = self;
        let states = servers.iter().map(|server| &server.published).collect();
        checks.rest(states, readers.iter().map(|reader| reader.read_before).collect())?;
        self.tell(format_args!("at rest"));
        self.over = true;
        Ok(())
    }

    fn batches_of_round(&self) -> impl Iterator<Item = Batch> {
        let batches = &self.checks.witness.batches[self.rest.round_from.0 as usize..];
        batches.iter().map(|batch| batch.decode().expect("the witness has read it"))
    }

    /// The first round places nothing for those that wait: had there been room, or had a volume come or become free,
    /// it would have woken them.
    fn nobody_waited_in_vain(&self) -> Result<(), Violation> {
        for batch in self.batches_of_round() {
            let placed = batch.events.iter().find_map(|logged| match &logged.event {
                model::Event::AllocsPlaced(placed) if self.rest.waiting.contains(&placed.key) => Some(placed),
                _ => None,
            });
            if let Some(placed) = placed {
                let how = format!("batch {} places {:?} of {}", batch.index, placed.ids, placed.key);
                let sentence = "in calm nobody waits for what is there".to_string();
                return Err(Violation { sentence, how });
            }
        }
        Ok(())
    }

    fn nothing_was_left_to_do(&self) -> Result<(), Violation> {
        for batch in self.batches_of_round() {
            // What was purged is forgotten whenever the leader next looks for garbage.
            let moved = batch.events.iter().map(|logged| logged.event.name());
            let moved = moved.filter(|name| name.starts_with("Allocs") && *name != "AllocsCollected");
            let moved: Vec<&str> = moved.collect();
            if !moved.is_empty() {
                let how = format!("batch {} holds {moved:?}", batch.index);
                let sentence = "at rest an evaluation leaves nothing to do".to_string();
                return Err(Violation { sentence, how });
            }
        }
        Ok(())
    }

    fn is_settled(&self) -> Result<(), String> {
        let state = &self.checks.witness.state;
        if self.log.leader().is_none() || self.log.in_flight() > 0 {
            return Err("the log is at work".to_string());
        }
        if let Some(client) = self.clients.iter().position(|client| client.op.is_some()) {
            return Err(format!("client {client} waits for an answer"));
        }
        let head = state.index;
        if let Some(behind) = self.servers.iter().find(|server| server.published.index != head) {
            return Err(format!("server {} is at {} of {head}", behind.number, behind.published.index));
        }
        if let Some(reader) = self.readers.iter().position(|reader| reader.read_before != head.next()) {
            return Err(format!("reader {reader} is at {}", self.readers[reader].read_before));
        }
        self.nodes_are_ready(state)?;
        if let Some((_, job)) = self.periodic_jobs().next() {
            return Err(format!("{} is still launched", job.key));
        }
        // Nobody renews them.
        if let Some((key, _)) = state.variables.iter().find(|(_, variable)| variable.lock.is_some()) {
            return Err(format!("{key} is still locked"));
        }
        deployments_are_over(state, &self.rest)?;
        evaluations_are_over(state, self.true_time())?;
        self.what_is_wanted_runs(state)
    }

    fn nodes_are_ready(&self, state: &State) -> Result<(), String> {
        for number in 0..self.nodes.len() {
            let row = state.nodes.find(nodes::id(number));
            let status = row.map(|row| state.nodes.hot(row).status);
            if status != Some(NodeStatus::Ready) {
                return Err(format!("node {number} is {status:?}"));
            }
            if row.is_some_and(|row| state.nodes.cold(row).draining().is_some()) {
                return Err(format!("node {number} is still drained"));
            }
        }
        Ok(())
    }

    fn what_is_wanted_runs(&self, state: &State) -> Result<(), String> {
        for (_, alloc) in state.allocs.iter() {
            // Nobody looks at a sysbatch job because of its nodes: what was on a forgotten one stays as it was.
            if alloc.version.kind == JobType::Sysbatch && state.nodes.hot(alloc.node).gone {
                continue;
            }
            if alloc.version.kind.is_batch() && !alloc.is_terminal() {
                return Err(format!("{} is at work", alloc.id));
            }
            let wanted = alloc.desired == Desired::Run && !alloc.client.is_terminal();
            let node = (0..self.nodes.len()).find(|number| nodes::id(*number) == alloc.node_id);
            let run = node.and_then(|node| self.nodes[node].runs.get(&alloc.id.to_string()));
            let runs = run.is_some_and(|run| run.is_running());
            if wanted && (alloc.client != ClientStatus::Running || !runs) {
                return Err(format!("{} is wanted and {}; on its node: {runs}", alloc.id, alloc.client));
            }
            let gone = state.nodes.hot(alloc.node).gone;
            if alloc.desired != Desired::Run && !alloc.client.is_terminal() && !gone {
                return Err(format!("{} is wanted to {} and {}", alloc.id, alloc.desired, alloc.client));
            }
            if !wanted && runs {
                return Err(format!("{} runs, but is wanted to {}", alloc.id, alloc.desired));
            }
        }
        for (row, job) in state.jobs.iter().filter(|(_, job)| job.is_wanted()) {
            let kind = job.current().kind;
            if kind.is_batch() || kind.is_per_node() || state.evals.blocked_of(row).is_some() {
                continue;
            }
            if self.waits_for_others(state, job) {
                continue;
            }
            for group in &job.current().job.task_groups {
                let name = group.name.as_deref().unwrap_or_default();
                let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
                let live = allocs.filter(|alloc| *alloc.group == *name && !alloc.is_terminal()).count();
                let failed = self.gave_up(state, row, name) || deployment_failed(state, row);
                if (live as i64) < group.count.unwrap_or(1) && !failed
                    || live as i64 > group.count.unwrap_or(1)
                {
                    return Err(format!("{live} of {name} of {} run, of {:?}", job.key, group.count));
                }
            }
        }
        Ok(())
    }

    /// Its part in this region is not to run before others have done theirs.
    fn waits_for_others(&self, state: &State, job: &JobState) -> bool {
        let excused = |id: &DeploymentId| self.rest.excused.contains(id);
        let mut deployments = job.deployments.iter().map(|row| state.deployments.get(*row).id);
        job.current().job.rollout().is_some()
            && (self.rest.others == Others::Unreachable || deployments.any(|id| excused(&id)))
    }

    /// Some of the group failed as often as its policy allows.
    fn gave_up(&self, state: &State, row: state::job::JobRow, group: &str) -> bool {
        let allocs = state.jobs.get(row).allocs.iter().map(|row| state.allocs.get(*row));
        allocs.filter(|alloc| *alloc.group == *group).any(|alloc| {
            alloc.client == ClientStatus::Failed && alloc.desired == Desired::Run && alloc.next.is_none()
        })
    }
}

/// What an operator does so that a deployment can go on.
fn next_push(state: &State, deployment: &Deployment) -> Option<Command> {
    let id = deployment.id;
    if deployment.status == DeploymentStatus::Paused {
        return Some(Command::ResumeDeployment { deployment: id });
    }
    let gave_up = |id: &AllocId| {
        let alloc = state.allocs.lookup(*id);
        alloc.is_some_and(|alloc| alloc.client == ClientStatus::Failed && alloc.next.is_none())
    };
    let mut canaries = deployment.groups.values().filter(|group| group.is_canarying());
    if canaries.clone().any(|group| group.placed_canaries.iter().any(gave_up)) {
        // It was well once, so the deployment did not fail by itself, and its policy allows no other one.
        return Some(Command::FailDeployment { deployment: id });
    }
    let lives = |id: &&AllocId| state.allocs.lookup(**id).is_some_and(is_proven);
    let proved = canaries.all(|group| {
        let proven = group.placed_canaries.iter().filter(lives).count();
        proven >= group.goal.desired_canaries as usize
    });
    let promotes = deployment.needs_promotion() && proved;
    promotes.then(|| Command::PromoteDeployment { deployment: id, groups: Vec::new() })
}

fn is_proven(alloc: &Alloc) -> bool {
    !alloc.is_terminal() && alloc.health.healthy == Some(true)
}

/// None waits for an operator or for a deadline, and none stays open that has all it wants.
fn deployments_are_over(state: &State, rest: &Settling) -> Result<(), String> {
    let waits_for_others = |one: &Deployment| {
        rest.excused.contains(&one.id) || rest.others == Others::Unreachable && one.is_multiregion
    };
    for (_, deployment) in state.deployments.iter().filter(|(_, one)| one.is_active() && !one.gone) {
        if waits_for_others(deployment) {
            continue;
        }
        let waits = state::deployment::next_deadline(deployment).is_some();
        if waits || !is_stuck(state, deployment) || next_push(state, deployment).is_some() {
            return Err(format!("deployment {} is {}", deployment.id, deployment.status));
        }
    }
    Ok(())
}

/// A group that finds no place keeps it open, also if the group is not a part of it. What is short of something and waits for
/// no place would wait for ever.
pub(crate) fn is_stuck(state: &State, deployment: &Deployment) -> bool {
    state.evals.blocked_of(deployment.job).is_some()
}

/// The newest deployment of the job failed: what it did not place is not placed.
fn deployment_failed(state: &State, row: state::job::JobRow) -> bool {
    let of_job = state.deployments.iter().map(|(_, one)| one).filter(|one| one.job == row && !one.gone);
    let newest = of_job.max_by_key(|deployment| deployment.created);
    newest.is_some_and(|deployment| deployment.status == DeploymentStatus::Failed)
}

fn evaluations_are_over(state: &State, now: Time) -> Result<(), String> {
    for (_, eval) in state.evals.iter() {
        let over = match eval.status {
            EvalStatus::Complete | EvalStatus::Failed | EvalStatus::Canceled => true,
            EvalStatus::Blocked => !eval.may_be_unblocked(state),
            EvalStatus::Pending => false,
        };
        if !over {
            let due = eval.facts.wait_until.since(now).as_millis();
            let (status, trigger) = (eval.status, eval.facts.trigger);
            return Err(format!("{} of {trigger} is {status}, due in {due} ms", eval.id()));
        }
    }
    Ok(())
}

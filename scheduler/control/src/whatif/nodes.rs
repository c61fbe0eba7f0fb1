//! The nodes of a fork: what they are asked they do at once, and nothing fails there.
//!
//! An allocation that is wanted runs, and is healthy once its `min_healthy_time` has passed; one that is to stop has
//! ended. Services run on, and so do batch jobs: how long they would run nobody knows. Nodes that are down or
//! disconnected stay silent, nothing is heard of what they have.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Time};
use model::document::{AllocDeploymentStatus, Allocation, Map, TaskState};
use model::{ClientStatus, JobType, NodeId};
use state::alloc::{Alloc, AllocRow};
use state::job::{JobRow, JobState};
use state::node::NodeRow;
use state::{Delta, State};

use crate::leader::deadlines::Deadlines;

/// Without a `min_healthy_time`.
const MIN_HEALTHY_TIME: Duration = Duration::from_secs(10);

/// What nodes have yet to do.
#[derive(Debug, Default)]
pub(super) struct IdealNodes {
    due: Deadlines<AllocRow>,
    /// Nodes that are known to be drained.
    drained: BTreeSet<NodeRow>,
}

/// What a node does next about an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Run,
    End,
    BecomeHealthy,
}

impl IdealNodes {
    /// Takes over what nodes have not done yet. Only jobs are looked at in which something is unsettled.
    pub fn begin(&mut self, state: &State, now: Time) {
        let unsettled = state.jobs.all_rows().filter(|row| is_unsettled(state, state.jobs.get(*row)));
        unsettled.for_each(|row| self.look_at_job(state, row, now));
        let drained = state.nodes.rows().filter(|row| state.nodes.cold(*row).draining().is_some());
        drained.for_each(|row| self.look_at_node(state, row, now));
    }

    pub fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        delta.allocs.iter().for_each(|row| self.look_at(state, *row, now));
        // What is drained waits for the health of its like; from a node that fell silent nothing comes any more.
        delta.nodes.iter().for_each(|row| self.look_at_node(state, *row, now));
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.due.next()
    }

    /// What nodes report now, at most one report each.
    pub fn reports(&mut self, state: &State, now: Time) -> BTreeMap<NodeId, Vec<Allocation>> {
        let mut reports: BTreeMap<NodeId, Vec<Allocation>> = BTreeMap::new();
        while let Some(row) = self.due.take_due(now) {
            let alloc = state.allocs.get(row);
            if let Some((act, _)) = next_act(state, alloc, now) {
                reports.entry(alloc.node_id).or_default().push(report(alloc, act, now));
            }
        }
        reports
    }

    fn look_at_node(&mut self, state: &State, row: NodeRow, now: Time) {
        let hot = state.nodes.hot(row);
        let here = &state.nodes.load(row).allocs;
        if hot.status.is_silent() || hot.gone {
            here.iter().for_each(|row| self.due.forget(*row));
        }
        if state.nodes.cold(row).draining().is_some() && self.drained.insert(row) {
            let jobs: BTreeSet<JobRow> = here.iter().map(|row| state.allocs.get(*row).job).collect();
            jobs.into_iter().for_each(|job| self.look_at_job(state, job, now));
        }
    }

    fn look_at_job(&mut self, state: &State, row: JobRow, now: Time) {
        state.jobs.get(row).allocs.iter().for_each(|row| self.look_at(state, *row, now));
    }

    fn look_at(&mut self, state: &State, row: AllocRow, now: Time) {
        match next_act(state, state.allocs.get(row), now) {
            Some((_, due)) => self.due.set(row, due),
            None => self.due.forget(row),
        }
    }
}

/// Some allocation of the job has not come to what is wanted, or its health is waited for.
fn is_unsettled(state: &State, job: &JobState) -> bool {
    if job.purged {
        return !job.allocs.is_empty();
    }
    let deploys = job.deployments.last().is_some_and(|row| state.deployments.get(*row).is_active());
    let mut unended = 0;
    for group in job.groups.values() {
        if group.starting > 0 || group.unknown > 0 {
            return true;
        }
        unended += group.running;
    }
    // The others run and are to stop.
    deploys || unended > job.live_allocs
}

fn next_act(state: &State, alloc: &Alloc, now: Time) -> Option<(Act, Time)> {
    let node = state.nodes.hot(alloc.node);
    if !alloc.takes_room() || node.gone || node.status.is_silent() {
        return None;
    }
    match alloc.client {
        _ if alloc.is_stopping() => Some((Act::End, now)),
        ClientStatus::Pending | ClientStatus::Unknown => Some((Act::Run, now)),
        ClientStatus::Running if alloc.health.healthy.is_none() => {
            let started = alloc.report.task_states.values().map(|task| task.started_at.time()).max();
            let due = started.unwrap_or(alloc.modify_time).plus(min_healthy_time(alloc)?);
            Some((Act::BecomeHealthy, due.max(now)))
        }
        ClientStatus::Running | ClientStatus::Complete | ClientStatus::Failed | ClientStatus::Lost => None,
    }
}

/// `None` where nodes do not judge health: of batch jobs, and where the job leaves that to operators.
fn min_healthy_time(alloc: &Alloc) -> Option<Duration> {
    if !matches!(alloc.version.kind, JobType::Service | JobType::System) {
        return None;
    }
    let group = alloc.version.group(&alloc.group)?;
    let (checked_by, span) = match alloc.deployment {
        None => group.migrate.as_ref().map(|block| (block.health_check.clone(), block.min_healthy_time)),
        Some(_) => group.update.as_ref().map(|block| (block.health_check.clone(), block.min_healthy_time)),
    }
    .unwrap_or_default();
    (checked_by.as_deref() != Some("manual")).then(|| span.map_or(MIN_HEALTHY_TIME, |span| span.0))
}

fn report(alloc: &Alloc, act: Act, now: Time) -> Allocation {
    let mut task_states = alloc.report.task_states.clone();
    let mut deployment_status = alloc.report.deployment_status.clone();
    let status = match act {
        Act::Run => {
            task_states = started(alloc, now);
            ClientStatus::Running
        }
        Act::End => {
            for task in task_states.values_mut().filter(|task| task.state != "dead") {
                (task.state, task.finished_at) = ("dead".to_string(), now.into());
            }
            ClientStatus::Complete
        }
        Act::BecomeHealthy => {
            let canary = alloc.health.canary;
            // What says the same of the same moment is taken for a repetition, and time stands still between two changes.
            let known = alloc.report.deployment_status.as_ref().map(|known| known.timestamp.time());
            let at = known.filter(|known| *known >= now).map_or(now, |known| known.plus(Duration(1)));
            let (healthy, timestamp) = (Some(true), at.into());
            deployment_status =
                Some(AllocDeploymentStatus { healthy, timestamp, canary, ..Default::default() });
            ClientStatus::Running
        }
    };
    Allocation {
        id: alloc.id.to_string(),
        node_id: alloc.node_id.to_string(),
        client_status: status.to_string(),
        task_states,
        deployment_status,
        network_status: alloc.report.network_status.clone(),
        ..Allocation::default()
    }
}

/// What ran before a silence goes on.
fn started(alloc: &Alloc, now: Time) -> Map<String, TaskState> {
    let known = &alloc.report.task_states;
    if known.values().any(|task| task.state == "running") {
        return known.clone();
    }
    let tasks = alloc.version.group(&alloc.group).into_iter().flat_map(|group| group.tasks.iter());
    let runs = || TaskState { state: "running".to_string(), started_at: now.into(), ..TaskState::default() };
    tasks.map(|task| (task.name.clone(), runs())).collect()
}

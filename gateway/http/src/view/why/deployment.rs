//! How far a deployment is, and what it waits for.

use api::{DeploymentGroup, DeploymentWhy};
use base::Time;
use state::State;
use state::alloc::Alloc;
use state::deployment::{Deployment, GroupProgress};
use state::job::JobRow;

use super::alloc::link;
use super::waits;

/// Unhealthy allocations that are shown.
const UNHEALTHY_MAX: usize = 8;

pub(crate) fn deployment(state: &State, deployment: &Deployment) -> DeploymentWhy {
    let key = &state.jobs.get(deployment.job).key;
    let group = |(name, group): (&String, &GroupProgress)| {
        let until = Some(group.require_progress_by).filter(|until| *until != Time::ZERO);
        let shown = DeploymentGroup {
            desired_canaries: group.goal.desired_canaries.into(),
            healthy_canaries: healthy_canaries(state, group),
            desired_total: group.goal.desired_total.into(),
            placed: group.placed.into(),
            healthy: group.healthy.into(),
            unhealthy: group.unhealthy.into(),
            promoted: group.promoted,
            auto_promote: group.goal.auto_promote,
            auto_revert: group.goal.auto_revert,
            require_progress_by: until.map(Into::into),
        };
        (name.clone(), shown)
    };
    let own = |alloc: &&Alloc| alloc.deployment == Some(deployment.id) && alloc.health.healthy == Some(false);
    let allocs = state.jobs.get(deployment.job).allocs.iter().map(|row| state.allocs.get(*row));
    DeploymentWhy {
        approximate: String::new(),
        id: deployment.id.to_string(),
        job_id: key.id.clone(),
        namespace: key.namespace.clone(),
        job_version: deployment.version,
        status: deployment.status.to_string(),
        status_description: deployment.description.clone(),
        groups: deployment.groups.iter().map(group).collect(),
        unhealthy: allocs.filter(own).take(UNHEALTHY_MAX).map(|alloc| link(state, alloc)).collect(),
        waits_for: waits::of_deployment(state, deployment).into(),
    }
}

/// The newest deployment, if it is of the version that is current.
pub(super) fn newest(state: &State, row: JobRow) -> Option<&Deployment> {
    let job = state.jobs.get(row);
    let newest = job.deployments.last().map(|row| state.deployments.get(*row));
    newest.filter(|deployment| deployment.is_of(job.current()))
}

/// Canaries that run and are healthy now.
pub(super) fn healthy_canaries(state: &State, group: &GroupProgress) -> u64 {
    let canaries = group.placed_canaries.iter().filter_map(|id| state.allocs.lookup(*id));
    canaries.filter(|alloc| !alloc.is_terminal() && alloc.health.healthy == Some(true)).count() as u64
}

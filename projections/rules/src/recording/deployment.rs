//! Deployments. What they count is taken over as it is: it cannot follow from allocations that nobody remembers any more.

use base::Time;
use model::document::{Deployment, DeploymentState};
use model::event::{
    DeploymentCollected, DeploymentCreated, DeploymentGoal, DeploymentGoalsChanged,
    DeploymentProgressObserved, DeploymentPromoted, DeploymentStatusChanged, ObservedProgress,
};
use model::{DeploymentId, DeploymentStatus, JobKey};
use state::deployment::GroupProgress;

use super::{Seen, count};

/// One of a version that is not remembered is left out.
pub(super) fn observed(seen: &mut Seen, document: &Deployment) -> Option<(String, u64, Time)> {
    let id: DeploymentId = document.id.parse().ok()?;
    let status = DeploymentStatus::from_word(&document.status)?;
    let goals = || document.task_groups.iter().map(|(name, group)| goal(name, group));
    if seen.state.deployments.find(id).is_none() {
        let key = JobKey::new(&document.namespace, &document.job_id);
        seen.state.jobs.lookup(&key)?.version(document.job_version)?;
        seen.add(DeploymentCreated {
            deployment: id,
            key,
            version: document.job_version,
            priority: count(document.eval_priority),
            is_multiregion: document.is_multiregion,
            status,
            description: document.status_description.clone(),
            groups: goals().collect(),
        });
    }
    let known = seen.state.deployments.lookup(id)?.clone();
    let is_known =
        |goal: &DeploymentGoal| known.groups.get(&goal.group).is_some_and(|group| group.goal == *goal);
    let changed: Vec<DeploymentGoal> = goals().filter(|goal| !is_known(goal)).collect();
    if !changed.is_empty() {
        seen.add(DeploymentGoalsChanged { deployment: id, groups: changed });
    }
    let is_promoted = |name: &str| known.groups.get(name).is_some_and(|group| group.promoted);
    let newly = document.task_groups.iter().filter(|(name, group)| group.promoted && !is_promoted(name));
    let groups: Vec<String> = newly.map(|(name, _)| name.clone()).collect();
    if !groups.is_empty() {
        seen.add(DeploymentPromoted { deployment: id, groups });
    }
    progress(seen, id, document);
    let known = seen.state.deployments.lookup(id)?;
    if (known.status, &known.description) != (status, &document.status_description) {
        let description = document.status_description.clone();
        seen.add(DeploymentStatusChanged { deployment: id, status, description });
        // After a pause deadlines begin anew here.
        progress(seen, id, document);
    }
    Some((format!("deployment/{id}"), document.modify_index, Time(document.modify_time)))
}

pub(super) fn gone(seen: &mut Seen, id: DeploymentId) -> String {
    if let Some(deployment) = seen.state.deployments.lookup(id) {
        if deployment.is_active() {
            let description = "forgotten before its end was seen".to_string();
            let status = DeploymentStatus::Cancelled;
            seen.add(DeploymentStatusChanged { deployment: id, status, description });
        }
        seen.add(DeploymentCollected { deployment: id });
    }
    format!("deployment/{id}")
}

fn progress(seen: &mut Seen, id: DeploymentId, document: &Deployment) {
    let Some(known) = seen.state.deployments.lookup(id) else { return };
    let groups = document.task_groups.iter().map(|(name, group)| counted(name, group));
    let groups: Vec<ObservedProgress> = groups
        .filter(|group| known.groups.get(&group.group).is_none_or(|known| !is_same(known, group)))
        .collect();
    if !groups.is_empty() {
        seen.add(DeploymentProgressObserved { deployment: id, groups });
    }
}

fn is_same(known: &GroupProgress, seen: &ObservedProgress) -> bool {
    known.promoted == seen.promoted
        && known.placed_canaries == seen.placed_canaries
        && (known.placed, known.healthy, known.unhealthy) == (seen.placed, seen.healthy, seen.unhealthy)
        && known.require_progress_by == seen.require_progress_by
}

fn goal(name: &str, group: &DeploymentState) -> DeploymentGoal {
    DeploymentGoal {
        group: name.to_string(),
        auto_revert: group.auto_revert,
        auto_promote: group.auto_promote,
        progress_deadline: group.progress_deadline.0,
        desired_canaries: count(group.desired_canaries),
        desired_total: count(group.desired_total),
    }
}

fn counted(name: &str, group: &DeploymentState) -> ObservedProgress {
    ObservedProgress {
        group: name.to_string(),
        promoted: group.promoted,
        placed_canaries: group.placed_canaries.iter().filter_map(|id| id.parse().ok()).collect(),
        placed: count(group.placed_allocs),
        healthy: count(group.healthy_allocs),
        unhealthy: count(group.unhealthy_allocs),
        require_progress_by: group.require_progress_by.time(),
    }
}

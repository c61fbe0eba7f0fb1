use model::document::{Deployment as Document, DeploymentState, Job};
use model::{DeploymentStatus, JobKey};

use super::state::{Deployment, GroupProgress};
use crate::State;
use crate::job::JobState;

/// The deployment as Nomad's API shows it.
pub fn document(state: &State, deployment: &Deployment) -> Document {
    let key = &state.jobs.get(deployment.job).key;
    let groups = deployment.groups.iter();
    Document {
        id: deployment.id.to_string(),
        namespace: key.namespace.clone(),
        job_id: key.id.clone(),
        job_version: deployment.version,
        job_modify_index: deployment.job_modified.0,
        job_spec_modify_index: deployment.registered.0,
        job_create_index: deployment.job_created.0,
        is_multiregion: deployment.is_multiregion,
        task_groups: groups.map(|(name, progress)| (name.clone(), group(progress))).collect(),
        status: deployment.status.to_string(),
        status_description: deployment.description.clone(),
        create_index: deployment.created.0,
        modify_index: deployment.modified.0,
        create_time: deployment.create_time.0,
        modify_time: deployment.modify_time.0,
        eval_priority: i64::from(deployment.priority),
    }
}

fn group(progress: &GroupProgress) -> DeploymentState {
    let goal = &progress.goal;
    DeploymentState {
        placed_canaries: progress.placed_canaries.iter().map(ToString::to_string).collect(),
        auto_revert: goal.auto_revert,
        auto_promote: goal.auto_promote,
        progress_deadline: goal.progress_deadline.into(),
        require_progress_by: progress.require_progress_by.into(),
        promoted: progress.promoted,
        desired_canaries: i64::from(goal.desired_canaries),
        desired_total: i64::from(goal.desired_total),
        placed_allocs: i64::from(progress.placed),
        healthy_allocs: i64::from(progress.healthy),
        unhealthy_allocs: i64::from(progress.unhealthy),
    }
}

/// How far this region is with a rollout, for other regions. Nothing, if it was not registered here. One that was purged is as
/// good as stopped.
pub fn progress(state: &State, key: &JobKey, rollout: &str) -> Option<DeploymentStatus> {
    let is_of = |own: &Job| own.rollout().is_some_and(|regions| regions.rollout == rollout);
    let has_part = |job: &JobState| job.versions.iter().any(|version| is_of(&version.job));
    let Some(job) = state.jobs.lookup(key).filter(|job| has_part(job)) else {
        // Not the way of most questions: a region that knows nothing of the rollout is asked once a second until it does.
        let mut known = state.jobs.all_rows().map(|row| state.jobs.get(row));
        let was_purged = known.any(|job| job.purged && job.key == *key && has_part(job));
        return was_purged.then_some(DeploymentStatus::Cancelled);
    };
    let versions: Vec<_> = job.versions.iter().filter(|version| is_of(&version.job)).collect();
    if !job.is_wanted() {
        return Some(DeploymentStatus::Cancelled);
    }
    let deployments = job.deployments.iter().rev().map(|row| state.deployments.get(*row));
    let newest = deployments.into_iter().find(|known| versions.iter().any(|version| known.is_of(version)));
    // One that is over is forgotten some day, and there is none where nothing is updated step by step.
    Some(newest.map_or(DeploymentStatus::Successful, |known| known.status))
}

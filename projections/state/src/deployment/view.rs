use model::document::{Deployment as Document, DeploymentState};

use super::state::{Deployment, GroupProgress};
use crate::State;

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

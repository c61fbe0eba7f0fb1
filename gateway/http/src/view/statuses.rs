use api::{JobStatusesAlloc, JobStatusesDeployment, JobStatusesJob, JobStatusesLatestDeployment};
use base::Index;
use model::document::List;
use state::State;
use state::alloc::Alloc;
use state::alloc::reschedule::follow_up;
use state::deployment::Deployment;
use state::job::JobState;

/// The last change of anything that a job's line shows.
pub(crate) fn changed(state: &State, job: &JobState) -> Index {
    let children = state.jobs.children(&job.key).map(|child| child.modified).max();
    let deployment = latest(state, job).map(|deployment| deployment.modified);
    let allocs = allocs(state, job).map(|alloc| alloc.modified).max();
    [children, deployment, allocs].into_iter().flatten().fold(job.modified, Index::max)
}

pub(crate) fn line(state: &State, job: &JobState) -> JobStatusesJob {
    let current = job.current();
    let wanted = &current.job;
    let is_parent = wanted.periodic.is_some() || wanted.parameterized_job.is_some() && !wanted.dispatched;
    let children = state.jobs.children(&job.key).filter(|_| is_parent);
    JobStatusesJob {
        id: job.key.id.clone(),
        namespace: job.key.namespace.clone(),
        name: wanted.name.clone().unwrap_or_default(),
        kind: current.kind.to_string(),
        node_pool: wanted.node_pool.clone().unwrap_or_default(),
        datacenters: wanted.datacenters.clone(),
        priority: i64::from(current.priority()),
        version: current.version,
        submit_time: current.submitted.0,
        modify_index: changed(state, job).0,
        allocs: allocs(state, job).map(|one| alloc(state, one)).collect::<Vec<_>>().into(),
        group_count_sum: wanted.task_groups.iter().filter_map(|group| group.count).sum(),
        child_statuses: children.map(|child| child.status.to_string()).collect::<List<_>>(),
        parent_id: wanted.parent_id.clone().unwrap_or_default(),
        latest_deployment: latest(state, job).map(deployment),
        stop: job.is_stopped(),
        is_pack: wanted.meta.keys().any(|key| key.starts_with("pack.")),
        status: job.status.to_string(),
    }
}

fn allocs<'a>(state: &'a State, job: &'a JobState) -> impl Iterator<Item = &'a Alloc> {
    job.allocs.iter().map(|row| state.allocs.get(*row)).filter(|alloc| !alloc.gone)
}

fn latest<'a>(state: &'a State, job: &JobState) -> Option<&'a Deployment> {
    job.deployments.last().map(|row| state.deployments.get(*row))
}

fn alloc(state: &State, alloc: &Alloc) -> JobStatusesAlloc {
    JobStatusesAlloc {
        id: alloc.id.to_string(),
        group: alloc.group.to_string(),
        client_status: alloc.client.to_string(),
        node_id: alloc.node_id.to_string(),
        deployment_status: JobStatusesDeployment {
            canary: alloc.health.canary,
            healthy: alloc.health.healthy,
        },
        job_version: alloc.version.version,
        followup_eval_id: follow_up(state, alloc).map(|eval| eval.to_string()).unwrap_or_default(),
        has_paused_task: false,
    }
}

fn deployment(deployment: &Deployment) -> JobStatusesLatestDeployment {
    JobStatusesLatestDeployment {
        id: deployment.id.to_string(),
        is_active: deployment.is_active(),
        job_version: deployment.version,
        status: deployment.status.to_string(),
        status_description: deployment.description.clone(),
        all_auto_promote: deployment.promotes_itself(),
        requires_promotion: deployment.needs_promotion(),
    }
}

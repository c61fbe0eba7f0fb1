use api::{
    JobAction, JobChildrenSummary, JobListStub, JobScaleStatusResponse, JobSummary, TaskGroupScaleStatus,
    TaskGroupSummary,
};
use model::ClientStatus;
use model::document::{List, Map};
use state::State;
use state::job::{GroupSummary, JobState};

/// The line of a list.
pub(crate) fn stub(all: &State, state: &JobState, with_meta: bool) -> JobListStub {
    let job = &state.current().job;
    JobListStub {
        id: state.key.id.clone(),
        parent_id: job.parent_id.clone().unwrap_or_default(),
        name: job.name.clone().unwrap_or_default(),
        namespace: state.key.namespace.clone(),
        datacenters: job.datacenters.clone(),
        kind: state.current().kind.to_string(),
        priority: i64::from(state.current().priority()),
        periodic: job.periodic.is_some(),
        parameterized_job: job.parameterized_job.is_some() && !job.dispatched,
        stop: state.is_stopped(),
        status: state.status.to_string(),
        status_description: String::new(),
        job_summary: summary(all, state),
        create_index: state.created.0,
        modify_index: state.modified.0,
        job_modify_index: state.job_modified.0,
        submit_time: state.current().submitted.0,
        meta: if with_meta { job.meta.clone() } else { Map::default() },
        node_pool: job.node_pool.clone().unwrap_or_default(),
        multiregion: job.multiregion.clone(),
    }
}

/// Allocations counted by group, and children by status.
pub(crate) fn summary(all: &State, state: &JobState) -> JobSummary {
    let children = all.jobs.children_summary(&state.key);
    JobSummary {
        job_id: state.key.id.clone(),
        namespace: state.key.namespace.clone(),
        summary: state::job::summary(state).map(|(name, counts)| (name.to_string(), group(counts))).collect(),
        children: Some(JobChildrenSummary {
            pending: children.pending.into(),
            running: children.running.into(),
            dead: children.dead.into(),
        }),
        create_index: state.created.0,
        modify_index: state.summary_modified.0,
    }
}

fn group(counts: GroupSummary) -> TaskGroupSummary {
    TaskGroupSummary {
        queued: counts.queued.into(),
        complete: counts.complete.into(),
        failed: counts.failed.into(),
        running: counts.running.into(),
        starting: counts.starting.into(),
        lost: counts.lost.into(),
        unknown: counts.unknown.into(),
    }
}

/// How many allocations each group has, how they are, and how its count was set.
pub(crate) fn scale_status(all: &State, state: &JobState) -> JobScaleStatusResponse {
    let current = state.current();
    let group = |group: &model::document::TaskGroup| {
        let name = group.name.clone().unwrap_or_default();
        let mut status = TaskGroupScaleStatus {
            desired: group.count.unwrap_or_default(),
            events: state.scalings(&name).to_vec().into(),
            ..TaskGroupScaleStatus::default()
        };
        let own = state.allocs.iter().map(|row| all.allocs.get(*row));
        for alloc in own.filter(|alloc| *alloc.group == *name && !alloc.gone && !alloc.is_terminal()) {
            status.placed += 1;
            status.running += i64::from(alloc.client == ClientStatus::Running);
            status.healthy += i64::from(alloc.health.healthy == Some(true));
            status.unhealthy += i64::from(alloc.health.healthy == Some(false));
        }
        (name, status)
    };
    JobScaleStatusResponse {
        job_id: state.key.id.clone(),
        namespace: state.key.namespace.clone(),
        job_create_index: state.created.0,
        job_modify_index: state.job_modified.0,
        job_stopped: state.is_stopped(),
        task_groups: current.job.task_groups.iter().map(group).collect(),
    }
}

pub(crate) fn actions(state: &JobState) -> List<JobAction> {
    let mut actions = Vec::new();
    for group in state.current().job.task_groups.iter() {
        for task in group.tasks.iter() {
            actions.extend(task.actions.iter().map(|action| JobAction {
                name: action.name.clone(),
                command: action.command.clone(),
                args: action.args.clone(),
                task_name: task.name.clone(),
                task_group_name: group.name.clone().unwrap_or_default(),
            }));
        }
    }
    actions.into()
}

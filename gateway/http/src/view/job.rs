use api::{JobChildrenSummary, JobListStub, JobSummary, TaskGroupSummary};
use model::document::Map;
use state::job::{GroupSummary, JobState};

/// The line of a list.
pub fn stub(state: &JobState, with_meta: bool) -> JobListStub {
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
        stop: state.stopped,
        status: state.status.to_string(),
        status_description: String::new(),
        job_summary: summary(state),
        create_index: state.created.0,
        modify_index: state.modified.0,
        job_modify_index: state.job_modified.0,
        submit_time: state.current().submitted.0,
        meta: if with_meta { job.meta.clone() } else { Map::default() },
        node_pool: job.node_pool.clone().unwrap_or_default(),
        multiregion: job.multiregion.clone(),
    }
}

/// Allocations counted by group.
pub fn summary(state: &JobState) -> JobSummary {
    JobSummary {
        job_id: state.key.id.clone(),
        namespace: state.key.namespace.clone(),
        summary: state::job::summary(state).map(|(name, counts)| (name.to_string(), group(counts))).collect(),
        children: Some(JobChildrenSummary::default()),
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

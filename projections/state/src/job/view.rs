use model::JobType;
use model::document::Job;

use super::state::{JobState, JobVersion};
use crate::job::GroupSummary;

/// A version of the job as Nomad's API shows it.
pub fn document(job: &JobState, version: &JobVersion) -> Job {
    let current = version.version == job.current().version;
    let replaced = job.notes.as_ref().and_then(|notes| notes.statuses.get(&version.version));
    let status = replaced.filter(|_| !current).cloned().unwrap_or_else(|| job.status.to_string());
    Job {
        stop: Some(version.stop),
        status: Some(status),
        stable: Some(job.is_stable(version.version)),
        version: Some(version.version),
        submit_time: Some(version.submitted.0),
        create_index: Some(job.created.0),
        modify_index: Some(if current { job.modified.0 } else { version.registered.0 }),
        job_modify_index: Some(version.registered.0),
        version_tag: job.tag(version.version).cloned(),
        ..Job::clone(&version.job)
    }
}

/// Counters per group, in the order of their names.
pub fn summary(job: &JobState) -> impl Iterator<Item = (&str, GroupSummary)> {
    // A system job wants one per node: what is queued is only known evaluation by evaluation.
    let per_node = job.current().kind == JobType::System;
    job.groups.iter().map(move |(name, counts)| {
        let queued = if per_node && job.is_stopped() { 0 } else { counts.queued };
        (name.as_str(), GroupSummary { queued, ..*counts })
    })
}

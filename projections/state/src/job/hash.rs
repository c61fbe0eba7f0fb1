use std::sync::Arc;

use base::StableHash;

use super::state::{JobState, JobVersion};
use crate::domain::Domain;
use crate::eval::Evals;
use crate::row::{EvalRow, JobRow};

/// The hash of a job's row, with its blocked evaluation.
pub(crate) fn row(evals: &Evals) -> impl Fn(u32, &Arc<JobState>) -> u64 {
    |row, job| of_job(row, job, evals.blocked_of(JobRow(row)))
}

/// A version, wherever it is held.
pub(crate) fn version(hash: &mut StableHash, version: &JobVersion) {
    hash.pair(version.version, version.kind as u64 | u64::from(version.stop) << 8);
    hash.pair(version.job.hash(), version.submission.as_ref().map_or(0, |submission| submission.hash()));
    hash.pair(version.job_created.0, version.registered.0);
    hash.word(version.submitted.0 as u64);
}

fn of_job(row: u32, job: &JobState, blocked: Option<EvalRow>) -> u64 {
    let mut hash = Domain::Job.row(row);
    hash.text(&job.key.namespace);
    hash.text(&job.key.id);
    let flags = u64::from(job.purged) | u64::from(job.is_stopped()) << 1 | u64::from(job.had_evals) << 2;
    hash.pair(flags, job.status as u64);
    hash.pair(job.created.0, job.modified.0);
    hash.pair(job.job_modified.0, job.summary_modified.0);
    hash.pair(u64::from(job.live_allocs), blocked.map_or(u64::MAX, |eval| u64::from(eval.0)));
    hash.pair(job.allocs.len() as u64, job.evals.len() as u64);
    hash.pair(job.versions.len() as u64, job.live_evals.len() as u64);
    hash.pair(job.deployments.len() as u64, job.stable.len() as u64);
    job.stable.iter().for_each(|version| hash.word(*version));
    job.versions.iter().for_each(|held| version(&mut hash, held));
    job.live_evals.iter().for_each(|eval| hash.word(u64::from(eval.0)));
    for (name, counts) in &job.groups {
        hash.text(name);
        counts.numbers().into_iter().for_each(|count| hash.word(u64::from(count)));
    }
    // Nothing of what a job never had: digests of old logs stay what they were.
    if let Some(notes) = &job.notes {
        hash.bytes(&notes.to_bytes());
    }
    hash.finish()
}

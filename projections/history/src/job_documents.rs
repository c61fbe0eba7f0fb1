//! A job as its own facts say that it was, where the log no longer leads to a state.

use base::Index;
use journal::EncodedBatch;
use model::document::Job;
use model::{Event, JobKey};

use crate::history::{History, HistoryError};
use crate::object::Object;

/// Documents that are returned at most, the newest.
const DOCUMENTS_MAX: usize = 500;
/// Batches from this epoch on may register a job that is stopped.
const STOPPED_SINCE: u16 = 3;

impl History {
    /// What each fact about a job left of which the state is gone, oldest first; `None` where it was purged. What followed from other objects
    /// is not in them, and no tag of a version.
    ///
    /// # Errors
    /// What is kept cannot be read.
    pub fn job_documents(&self, key: &JobKey) -> Result<Vec<(Index, Option<Job>)>, HistoryError> {
        let (whole_from, kept) = self.kept();
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let states_from = whole_from.max(self.oldest()?);
        let mut found: Vec<(Index, Option<Job>)> = Vec::new();
        self.each_about(&Object::Job(key.clone()), |batch, ordinal| {
            let row = batch.rows().nth(usize::from(ordinal));
            let Some(row) = row.filter(|_| batch.index() < states_from) else { return Ok(()) };
            let event = batch.event(&row)?;
            let before = found.last().and_then(|(_, job)| job.as_ref());
            if let Some(after) = after(batch, &event, key, before) {
                found.push((batch.index(), after));
            }
            Ok(())
        })?;
        let more = found.len().saturating_sub(DOCUMENTS_MAX);
        Ok(found.split_off(more))
    }
}

/// The job after a fact about it, if that says so: a fact about another version than the current one does not, nor one about a
/// job whose registration is not kept.
fn after(batch: &EncodedBatch, event: &Event, key: &JobKey, before: Option<&Job>) -> Option<Option<Job>> {
    let stamped = |job: Job, version: u64| Job {
        namespace: Some(key.namespace.to_string()),
        version: Some(version),
        job_modify_index: Some(batch.index().0),
        modify_index: Some(batch.index().0),
        submit_time: Some(batch.time().0),
        ..job
    };
    match event {
        Event::JobRegistered(e) if e.key == *key => {
            let job: Job = e.document.read();
            let stop = batch.epoch() >= STOPPED_SINCE && job.stop == Some(true);
            Some(Some(stamped(Job { stop: Some(stop), stable: Some(false), ..job }, e.version)))
        }
        Event::JobStopped(e) if e.key == *key => {
            let job = Job { stop: Some(true), stable: Some(false), ..before?.clone() };
            Some(Some(stamped(job, e.version)))
        }
        Event::JobStabilityChanged(e) if e.key == *key => {
            let before = before.filter(|job| job.version == Some(e.version))?;
            Some(Some(Job { stable: Some(e.stable), ..before.clone() }))
        }
        Event::JobPurged(e) if e.key == *key => Some(None),
        _ => None,
    }
}

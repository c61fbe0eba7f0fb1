//! Jobs and their versions.

use base::Time;
use model::document::Job;
use model::event::{
    AllocsCollected, Event, JobEndObserved, JobPurged, JobRegistered, JobStabilityChanged, JobStopped,
    JobVersionTagged, JobVersionUntagged,
};
use model::{AllocId, Doc, JobKey, JobStatus, JobType};
use state::job::{JobState, JobVersion};

use super::Seen;

/// `versions`: all that are known of the job, oldest first.
pub(super) fn observed(seen: &mut Seen, versions: &[Job]) -> Option<(String, u64, Time)> {
    let newest = versions.last()?;
    let key = key_of(newest)?;
    if seen.state.jobs.lookup(&key).is_some_and(|known| was_replaced(known, versions)) {
        forget(seen, &key);
    }
    let before = seen.events.len();
    for version in versions {
        take_version(seen, &key, version);
    }
    // What else changes about a job says no time.
    let is_new = |event: &Event| matches!(event, Event::JobRegistered(_) | Event::JobStopped(_));
    let submitted = newest.submit_time.filter(|_| seen.events[before..].iter().any(is_new));
    let known = seen.state.jobs.lookup(&key)?;
    let is_dead = newest.status.as_deref() == Some(JobStatus::Dead.word());
    if is_dead && !known.had_evals && !known.is_stopped() {
        seen.add(JobEndObserved { key: key.clone() });
    }
    let happened = Time(submitted.unwrap_or_default());
    Some((format!("job/{key}"), newest.modify_index.unwrap_or_default(), happened))
}

/// It is purged once its allocations have ended: the other cluster stops them after it has forgotten the job.
pub(super) fn gone(seen: &mut Seen, key: &JobKey) -> String {
    if seen.state.jobs.lookup(key).is_some_and(|job| job.live_allocs == 0) {
        seen.add(JobPurged { key: key.clone() });
    }
    format!("job/{key}")
}

pub(super) fn key_of(job: &Job) -> Option<JobKey> {
    let id = job.id.as_deref().filter(|id| !id.is_empty())?;
    let namespace = job.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    Some(JobKey::new(namespace.unwrap_or(state::namespace::DEFAULT), id))
}

/// When the other cluster created it: it tells two jobs apart that had the same name one after the other.
pub(super) fn incarnation(job: &Job) -> u64 {
    job.create_index.unwrap_or_default()
}

/// The job was purged and registered anew since it was last seen, or the other cluster was restored.
fn was_replaced(known: &JobState, versions: &[Job]) -> bool {
    let number = |job: &Job| job.version.unwrap_or_default();
    let newest = versions.last().map(number).unwrap_or_default();
    let differs = |job: &Job| {
        known.version(number(job)).is_some_and(|version| {
            without_stop(&version.job) != stored(job) || version.stop != job.stop.unwrap_or_default()
        })
    };
    newest < known.current().version || versions.iter().any(differs)
}

/// Allocations that go on are seen again as those of the new job, if they are its.
fn forget(seen: &mut Seen, key: &JobKey) {
    let Some(job) = seen.state.jobs.lookup(key) else { return };
    let allocs = job.allocs.iter().map(|row| seen.state.allocs.get(*row));
    let live: Vec<AllocId> = allocs.filter(|alloc| !alloc.is_terminal()).map(|alloc| alloc.id).collect();
    if !live.is_empty() {
        seen.add(AllocsCollected { allocs: live });
    }
    seen.add(JobPurged { key: key.clone() });
}

fn take_version(seen: &mut Seen, key: &JobKey, job: &Job) {
    let number = job.version.unwrap_or_default();
    let known = seen.state.jobs.lookup(key);
    if known.is_none_or(|known| known.current().version < number) {
        if job.kind.as_deref().and_then(JobType::from_word).is_none() {
            return;
        }
        let is_stopped = job.stop.unwrap_or_default();
        let continues = |before: &JobVersion| !before.stop && without_stop(&before.job) == stored(job);
        if is_stopped && known.is_some_and(|known| continues(known.current())) {
            seen.add(JobStopped { key: key.clone(), version: number });
        } else {
            let document = Job { stop: is_stopped.then_some(true), ..plain(job) };
            let (key, document) = (key.clone(), Doc::of(&document));
            seen.add(JobRegistered { key, version: number, document, submission: Doc::default() });
        }
    }
    let Some(known) = seen.state.jobs.lookup(key).filter(|known| known.version(number).is_some()) else {
        return;
    };
    let (is_stable, tag) = (known.is_stable(number), known.tag(number).cloned());
    let stable = job.stable.unwrap_or_default();
    if stable != is_stable {
        seen.add(JobStabilityChanged { key: key.clone(), version: number, stable });
    }
    let name = |tag: &model::document::JobVersionTag| (tag.name.clone(), tag.description.clone());
    if job.version_tag.as_ref().map(name) == tag.as_ref().map(name) {
        return;
    }
    if let Some(tag) = tag {
        seen.add(JobVersionUntagged { key: key.clone(), name: tag.name });
    }
    if let Some((name, description)) = job.version_tag.as_ref().map(name) {
        let is_kept = |job: &JobState| job.version(number).is_some();
        if seen.state.jobs.lookup(key).is_some_and(is_kept) {
            seen.add(JobVersionTagged { key: key.clone(), version: number, name, description });
        }
    }
}

fn without_stop(job: &Job) -> Job {
    Job { stop: None, ..job.clone() }
}

/// As it reads back from the log.
fn stored(job: &Job) -> Job {
    Doc::of(&plain(job)).read()
}

/// As it was registered, without what servers know besides; but for when it was created.
fn plain(job: &Job) -> Job {
    Job {
        stop: None,
        status: None,
        status_description: None,
        stable: None,
        version: None,
        submit_time: None,
        modify_index: None,
        job_modify_index: None,
        version_tag: None,
        nomad_token_id: None,
        ..job.clone()
    }
}

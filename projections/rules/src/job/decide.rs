use base::Index;
use model::command::RegisterJob;
use model::document::sizes::check_sizes;
use model::document::{Job, TaskGroup};
use model::event::{
    AllocTransitionRequested, AllocsStopped, EvalCreated, Event, JobPurged, JobRegistered,
    JobStabilityChanged, JobStopped, NewEval,
};
use model::{ClientStatus, Desired, Doc, JobKey, JobType, Rejection, Trigger};
use state::State;
use state::alloc::endings::NOT_NEEDED;
use state::job::{JobState, JobVersion};
use state::pool::DEFAULT;

use crate::decision::{Context, Decision};
use crate::deployment::rollout;
use crate::{eval, namespace};

/// Largest job in bytes, as the log stores it: with the source that it was written in it fits into half a batch.
const JOB_BYTES_MAX: usize = 14 << 20;

/// Most allocations that a job may ask for unless operators say otherwise, over all its groups; as many canaries for a group.
pub const JOB_COUNT_MAX: i64 = 50_000;

/// How a job is to end.
#[derive(Clone, Copy, Debug)]
pub struct Deregister {
    pub purge: bool,
    pub eval_priority: Option<u32>,
    pub no_shutdown_delay: bool,
}

/// Registers a job that is canonical and valid as far as can be checked without the state.
pub fn register(state: &State, ctx: &mut Context, request: &RegisterJob) -> Result<Decision, Rejection> {
    if state.scheduler().is_some_and(|rules| rules.reject_job_registration) {
        return Err(Rejection::RegistrationDisabled);
    }
    check_sizes(&request.job).map_err(Rejection::JobInvalid)?;
    let key = key_of(&request.job)?;
    let kind = kind_of(&request.job)?;
    let stored = state.jobs.lookup(&key);
    check_pool(state, &request.job)?;
    namespace::admit(state, &request.job)?;
    enforce(stored, request.enforce_index)?;
    if let Some(stored) = stored {
        may_become(stored, &request.job, kind)?;
    }
    let job = wanted(stored, request);
    check_counts(&job, ctx.job_count_max)?;
    let unchanged = stored.is_some_and(|stored| is_registered_so(stored, &job));
    let priority = request.eval_priority.unwrap_or_else(|| priority_of(&job));
    let mut events: Vec<Event> = Vec::new();
    let job_modify = match stored {
        Some(stored) if unchanged => stored.job_modified,
        _ => ctx.index,
    };
    if !unchanged {
        let document = Doc::of(&job);
        if document.0.len() > JOB_BYTES_MAX {
            let (bytes, most) = (document.0.len(), JOB_BYTES_MAX);
            let text = format!("the job has {bytes} bytes with all its defaults: expected at most {most}");
            return Err(Rejection::JobInvalid(text));
        }
        let version = stored.map_or(0, |stored| stored.current().version + 1);
        events.push(Event::JobRegistered(JobRegistered {
            key: key.clone(),
            version,
            document,
            submission: request.submission.as_ref().map_or_else(Doc::default, Doc::of),
        }));
        if let Some(begun) = rollout::begun(ctx, &key, version, priority, &job) {
            events.extend(stored.into_iter().flat_map(|stored| rollout::superseded(state, stored)));
            events.push(begun);
        }
    }
    if runs_at_once(&job) {
        let eval = eval::new(ctx, &key, kind, priority, Trigger::JobRegister);
        events.push(EvalCreated { eval: NewEval { job_modify, ..eval } }.into());
    }
    Ok(Decision::of(events).with_job_at(job_modify))
}

/// An unknown job is not wanted already: nothing changes.
pub fn deregister(
    state: &State,
    ctx: &mut Context,
    key: &JobKey,
    how: Deregister,
) -> Result<Decision, Rejection> {
    let Some(row) = state.jobs.find(key) else { return Ok(Decision::nothing()) };
    let job = state.jobs.get(row);
    let mut events: Vec<Event> = Vec::new();
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row));
    let running: Vec<_> = allocs.filter(|alloc| !alloc.is_terminal()).map(|alloc| alloc.id).collect();
    if how.no_shutdown_delay && !running.is_empty() {
        events.push(Event::AllocTransitionRequested(AllocTransitionRequested {
            allocs: running.clone(),
            migrate: false,
            reschedule: false,
            no_shutdown_delay: true,
            force_reschedule: false,
            disable_placement: false,
            cause: "deregister".to_string(),
        }));
    }
    if !how.purge {
        let version = job.current().version + 1;
        events.push(JobStopped { key: key.clone(), version }.into());
    }
    if runs_at_once(&job.current().job) {
        let priority = how.eval_priority.unwrap_or_else(|| job.current().priority());
        let eval = eval::new(ctx, key, job.current().kind, priority, Trigger::JobDeregister);
        events.push(EvalCreated { eval: NewEval { job_modify: ctx.index, ..eval } }.into());
    }
    if how.purge {
        // Their nodes have to stop them before their room is free.
        if !running.is_empty() {
            let description = NOT_NEEDED.to_string();
            let stopped = AllocsStopped {
                allocs: running,
                desired: Desired::Stop,
                description,
                client: None,
                follow_up: None,
            };
            events.push(stopped.into());
        }
        // Last: the evaluation above still finds its job, and ends with it.
        events.push(JobPurged { key: key.clone() }.into());
    }
    let job_modified = if how.purge { Index::ZERO } else { ctx.index };
    Ok(Decision::of(events).with_job_at(job_modified))
}

/// `force_reschedule` replaces what failed, whatever its policy says.
pub fn evaluate(
    state: &State,
    ctx: &mut Context,
    key: &JobKey,
    force_reschedule: bool,
) -> Result<Decision, Rejection> {
    let job = known(state, key)?;
    if !runs_at_once(&job.current().job) {
        return Err(Rejection::JobInvalid("can't evaluate periodic or parameterized job".to_string()));
    }
    let mut events: Vec<Event> = Vec::new();
    let allocs = job.allocs.iter().map(|row| state.allocs.get(*row)).filter(|_| force_reschedule);
    let failed = allocs.filter(|alloc| {
        let forced = alloc.transition.force_reschedule;
        alloc.client == ClientStatus::Failed && alloc.next.is_none() && !forced
    });
    let failed: Vec<_> = failed.map(|alloc| alloc.id).collect();
    if !failed.is_empty() {
        events.push(Event::AllocTransitionRequested(AllocTransitionRequested {
            allocs: failed,
            migrate: false,
            reschedule: false,
            no_shutdown_delay: false,
            force_reschedule: true,
            disable_placement: false,
            cause: "force-reschedule".to_string(),
        }));
    }
    events.push(EvalCreated { eval: eval::for_job(ctx, job, Trigger::JobRegister) }.into());
    Ok(Decision::of(events).with_job_at(job.job_modified))
}

/// An earlier version becomes the newest again.
pub fn revert(
    state: &State,
    ctx: &mut Context,
    key: &JobKey,
    version: u64,
    only_from: Option<u64>,
) -> Result<Decision, Rejection> {
    let job = known(state, key)?;
    let current = job.current().version;
    if let Some(expected) = only_from.filter(|expected| *expected != current) {
        let why = format!("current job has version {current}; enforcing version {expected}");
        return Err(Rejection::JobRefused(why));
    }
    if version == current {
        let why = format!("can't revert to current version: {version}");
        return Err(Rejection::JobRefused(why));
    }
    let missing = || {
        let why = format!("job {:?} in namespace {:?} at version {version} not found", key.id, key.namespace);
        Rejection::JobRefused(why)
    };
    let version = job.version(version).ok_or_else(missing)?;
    check_sizes(&version.job).map_err(Rejection::JobInvalid)?;
    check_counts(&version.job, ctx.job_count_max)?;
    let mut events = vec![registered_again(job, version)];
    if runs_at_once(&version.job) {
        let eval = eval::new(ctx, key, version.kind, version.priority(), Trigger::JobRegister);
        events.push(EvalCreated { eval: NewEval { job_modify: ctx.index, ..eval } }.into());
    }
    Ok(Decision::of(events).with_job_at(ctx.index))
}

pub(crate) fn registered_again(job: &JobState, version: &JobVersion) -> Event {
    let submission = version.submission.as_ref();
    let registers_so = version.job.stop.unwrap_or_default() == version.stop;
    let document = match registers_so {
        true => Doc(version.job.bytes().to_vec()),
        false => Doc::of(&Job { stop: Some(version.stop), ..Job::clone(&version.job) }),
    };
    Event::JobRegistered(JobRegistered {
        key: job.key.clone(),
        version: job.current().version + 1,
        document,
        submission: submission.map_or_else(Doc::default, |submission| Doc(submission.bytes().to_vec())),
    })
}

pub fn set_stability(state: &State, key: &JobKey, version: u64, stable: bool) -> Result<Decision, Rejection> {
    let job = known(state, key)?;
    if job.version(version).is_none() {
        let why = format!("job {:?} in namespace {:?} at version {version} not found", key.id, key.namespace);
        return Err(Rejection::JobRefused(why));
    }
    if job.is_stable(version) == stable {
        return Ok(Decision::nothing().with_job_at(job.job_modified));
    }
    let changed = JobStabilityChanged { key: key.clone(), version, stable };
    Ok(Decision::from(changed).with_job_at(job.job_modified))
}

pub(super) fn known<'a>(state: &'a State, key: &JobKey) -> Result<&'a JobState, Rejection> {
    state.jobs.lookup(key).ok_or_else(|| Rejection::JobUnknown(key.clone()))
}

pub(crate) fn key_of(job: &Job) -> Result<JobKey, Rejection> {
    match (job.namespace.as_deref(), job.id.as_deref()) {
        (Some(namespace), Some(id)) if !namespace.is_empty() && !id.is_empty() => {
            Ok(JobKey::new(namespace, id))
        }
        _ => Err(Rejection::JobInvalid("missing job ID or namespace".to_string())),
    }
}

/// The bound of Nomad, kept where commands are decided: a scheduler makes room for each allocation that is asked for, so a
/// count beyond all sense would end every server, and again each time it starts.
///
/// # Errors
/// [`Rejection::JobInvalid`].
pub fn check_counts(job: &Job, most: i64) -> Result<(), Rejection> {
    let groups = job.task_groups.iter();
    let total = groups.clone().map(|group| group.count.unwrap_or(1).max(0)).fold(0, i64::saturating_add);
    if total > most {
        let why = format!("the groups count {total} allocations; at most {most} are allowed");
        return Err(Rejection::JobInvalid(why));
    }
    let canaries = groups.filter_map(|group| group.update.as_ref()?.canary).max().unwrap_or_default();
    if canaries > most {
        let why = format!("a group has {canaries} canaries; at most {most} are allowed");
        return Err(Rejection::JobInvalid(why));
    }
    Ok(())
}

fn kind_of(job: &Job) -> Result<JobType, Rejection> {
    let word = job.kind.as_deref().unwrap_or_default();
    JobType::from_word(word).ok_or_else(|| Rejection::JobInvalid(format!("invalid job type: {word:?}")))
}

fn check_pool(state: &State, job: &Job) -> Result<(), Rejection> {
    let pool = job.node_pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or(DEFAULT);
    if state.pools.exists(pool) {
        return Ok(());
    }
    let id = job.id.as_deref().unwrap_or_default();
    Err(Rejection::JobInvalid(format!("job {id:?} is in nonexistent node pool {pool:?}")))
}

pub(super) fn enforce(stored: Option<&JobState>, index: Option<u64>) -> Result<(), Rejection> {
    let refused = |why: String| Err(Rejection::JobIndexMismatch(why));
    match (index, stored) {
        (None, _) | (Some(0), None) => Ok(()),
        (Some(0), Some(_)) => refused("0: job already exists".to_string()),
        (Some(wanted), None) => refused(format!("{wanted}: job does not exist")),
        (Some(wanted), Some(stored)) if stored.job_modified.0 == wanted => Ok(()),
        (Some(wanted), Some(stored)) => refused(format!(
            "{wanted}: job exists with conflicting job modify index: {}",
            stored.job_modified
        )),
    }
}

fn may_become(stored: &JobState, job: &Job, kind: JobType) -> Result<(), Rejection> {
    let before = &stored.current().job;
    if stored.current().kind != kind {
        return Err(Rejection::JobTypeChanged);
    }
    if before.periodic.is_some() != job.periodic.is_some() {
        return Err(Rejection::JobInvalid("cannot update a job to or from periodic".to_string()));
    }
    if before.parameterized_job.is_some() != job.parameterized_job.is_some() {
        return Err(Rejection::JobInvalid("cannot update a job to or from parameterized".to_string()));
    }
    Ok(())
}

/// Whether the job is what is registered already, as running or as stopped as it is.
fn is_registered_so(stored: &JobState, job: &Job) -> bool {
    let current = stored.current();
    if job.stop != Some(stored.is_stopped()) {
        return false;
    }
    // Stopping a job leaves its document as it was.
    match current.job.stop == job.stop {
        true => *current.job == *job,
        false => Job { stop: job.stop, ..Job::clone(&current.job) } == *job,
    }
}

/// The job to be stored: without what servers fill in, and with the counts the caller wants kept.
fn wanted(stored: Option<&JobState>, request: &RegisterJob) -> Job {
    let mut job = Job {
        // A job can be registered stopped: it is there, and nothing of it runs until it is registered otherwise.
        stop: Some(request.job.stop == Some(true)),
        status: Some(String::new()),
        status_description: Some(String::new()),
        stable: Some(false),
        version: Some(0),
        submit_time: None,
        create_index: Some(0),
        modify_index: Some(0),
        job_modify_index: Some(0),
        ..request.job.clone()
    };
    for group in &mut job.task_groups {
        let before = stored.zip(group.name.as_deref()).and_then(|(job, name)| job.current().group(name));
        let Some(before) = before else { continue };
        if request.preserve_counts {
            group.count = before.count;
        }
        if request.preserve_resources {
            keep_resources(group, before);
        }
    }
    job
}

fn keep_resources(group: &mut TaskGroup, before: &TaskGroup) {
    for task in &mut group.tasks {
        if let Some(before) = before.tasks.iter().find(|before| before.name == task.name) {
            task.resources.clone_from(&before.resources);
        }
    }
}

pub(super) fn runs_at_once(job: &Job) -> bool {
    job.periodic.is_none() && (job.parameterized_job.is_none() || job.dispatched)
}

pub(crate) fn priority_of(job: &Job) -> u32 {
    job.priority.and_then(|priority| u32::try_from(priority).ok()).unwrap_or(50)
}

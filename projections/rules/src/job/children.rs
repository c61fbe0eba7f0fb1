//! Jobs that others bring forth: dispatches of parameterized jobs, launches of periodic ones.

use std::collections::BTreeSet;

use base::Time;
use model::command::DispatchJob;
use model::document::sizes::check_sizes;
use model::document::{Bytes, Job};
use model::event::{EvalCreated, Event, JobLaunched, JobRegistered};
use model::{Doc, JobKey, Rejection, Trigger};
use state::State;
use state::job::JobState;

use super::decide::{check_counts, known, runs_at_once};
use crate::decision::{Context, Decision};
use crate::eval;

/// Most children of a periodic job in one second.
const LAUNCHES_MAX: u32 = 64;

/// Largest payload of a dispatch, in bytes.
pub const PAYLOAD_MAX: usize = 16 * 1024;

/// A child of a parameterized job, with what the caller gave it.
///
/// # Errors
/// [`Rejection::JobRefused`]: the job takes no such dispatch.
pub fn dispatch(state: &State, ctx: &mut Context, request: &DispatchJob) -> Result<Decision, Rejection> {
    if state.scheduler().is_some_and(|rules| rules.reject_job_registration) {
        return Err(Rejection::RegistrationDisabled);
    }
    let parent = known(state, &request.key)?;
    check_dispatch(parent, request)?;
    if let Some(child) = dispatched_before(state, parent, &request.idempotency_token) {
        return Ok(Decision { child: Some(child), ..Decision::nothing() });
    }
    let prefix = match request.id_prefix.as_str() {
        "" => String::new(),
        prefix => format!("{prefix}-"),
    };
    let chance = ctx.mint().to_string();
    let id = format!("{}/dispatch-{prefix}{}-{}", parent.key.id, seconds(ctx.time), &chance[..8]);
    let model = &parent.current().job;
    let mut meta = model.meta.clone();
    meta.extend(request.meta.clone());
    let token = Some(request.idempotency_token.clone()).filter(|token| !token.is_empty());
    let job = Job {
        dispatched: true,
        dispatch_idempotency_token: token.or(Some(String::new())),
        payload: Bytes(request.payload.clone()),
        meta,
        priority: if request.priority == 0 { model.priority } else { Some(request.priority) },
        ..child_of(parent, &id)
    };
    let events = registered(ctx, parent, job, Trigger::JobRegister)?;
    Ok(Decision { child: Some(id), ..Decision::of(events) })
}

/// A child of a periodic job for one moment of its schedule.
///
/// # Errors
/// [`Rejection::JobRefused`] if the job has no schedule that could be launched.
pub fn launch(
    state: &State,
    ctx: &mut Context,
    key: &JobKey,
    at: Time,
    forced: bool,
) -> Result<Decision, Rejection> {
    let parent = known(state, key)?;
    // Of Nomad's words its clients look for these.
    let refused = |why: &str| {
        let JobKey { namespace, id } = key;
        let refusal = format!("can't force run non-tracked job {id:?} ({namespace}): {why}");
        Err(Rejection::JobRefused(refusal))
    };
    let current = &parent.current().job;
    let Some(schedule) = current.periodic.as_ref() else { return refused("it is not periodic") };
    if current.parameterized_job.is_some() && !current.dispatched {
        return refused("it is parameterized: dispatch it");
    }
    if parent.is_stopped() {
        return refused("it is stopped");
    }
    if forced && schedule.enabled == Some(false) {
        return refused("its periodic block is not enabled");
    }
    let overlaps = || schedule.prohibit_overlap == Some(true) && has_live_child(state, key);
    let is_over = at <= parent.last_launch() || schedule.enabled == Some(false);
    if !forced && (is_over || overlaps()) {
        return Ok(Decision::nothing());
    }
    let Some(id) = free_name(state, key, at) else {
        return refused(&format!("it was launched {LAUNCHES_MAX} times within this second already"));
    };
    let job = Job { periodic: None, ..child_of(parent, &id) };
    let mut events = registered(ctx, parent, job, Trigger::PeriodicJob)?;
    events.push(JobLaunched { key: key.clone(), at, child: id.clone(), forced }.into());
    Ok(Decision { child: Some(id), ..Decision::of(events) })
}

/// The name of a child says its second. A second child of that second is counted: a forced launch must not take the name
/// that the schedule gives, or the other way round.
fn free_name(state: &State, key: &JobKey, at: Time) -> Option<String> {
    let name = format!("{}/periodic-{}", key.id, seconds(at));
    let counted = (2..=LAUNCHES_MAX).map(|number| format!("{name}-{number}"));
    let is_free = |id: &String| state.jobs.find(&JobKey::new(&key.namespace, id)).is_none();
    std::iter::once(name.clone()).chain(counted).find(is_free)
}

fn check_dispatch(parent: &JobState, request: &DispatchJob) -> Result<(), Rejection> {
    let id = &parent.key.id;
    let refused = |why: String| Err(Rejection::JobRefused(why));
    let current = &parent.current().job;
    let Some(takes) = current.parameterized_job.as_ref().filter(|_| !current.dispatched) else {
        return refused(format!("Specified job {id:?} is not a parameterized job"));
    };
    if parent.is_stopped() {
        return refused(format!("Specified job {id:?} is stopped"));
    }
    let size = request.payload.len();
    match takes.payload.as_str() {
        "required" if size == 0 => return refused("Payload is not provided but required by the job".into()),
        "forbidden" if size > 0 => return refused("Payload provided but forbidden by the job".into()),
        _ if size > PAYLOAD_MAX => {
            return refused(format!("Payload exceeds maximum size; {size} > {PAYLOAD_MAX}"));
        }
        _ => {}
    }
    let given: BTreeSet<&String> = request.meta.keys().collect();
    let required: BTreeSet<&String> = takes.meta_required.iter().collect();
    let optional: BTreeSet<&String> = takes.meta_optional.iter().collect();
    let listed = |keys: Vec<&String>| keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(", ");
    let strange: Vec<_> =
        given.iter().filter(|key| !required.contains(*key) && !optional.contains(*key)).collect();
    if !strange.is_empty() {
        let keys = listed(strange.into_iter().copied().collect());
        return refused(format!("Dispatch request included unpermitted metadata keys: [{keys}]"));
    }
    let missing: Vec<_> = required.difference(&given).copied().collect();
    if !missing.is_empty() {
        return refused(format!("Dispatch did not provide required meta keys: [{}]", listed(missing)));
    }
    if !(0..=100).contains(&request.priority) {
        return refused(format!("job priority must be between [1, 100], but is {}", request.priority));
    }
    if request.id_prefix.contains([' ', '\0', '/']) {
        return refused("IdPrefixTemplate: expected text without spaces, slashes and null characters".into());
    }
    Ok(())
}

fn dispatched_before(state: &State, parent: &JobState, token: &str) -> Option<String> {
    if token.is_empty() {
        return None;
    }
    let mut children = state.jobs.children(&parent.key);
    let same = |child: &&JobState| child.current().job.dispatch_idempotency_token.as_deref() == Some(token);
    children.find(same).map(|child| child.key.id.clone())
}

fn child_of(parent: &JobState, id: &str) -> Job {
    Job {
        id: Some(id.to_string()),
        name: Some(id.to_string()),
        parent_id: Some(parent.key.id.clone()),
        ..Job::clone(&parent.current().job)
    }
}

/// # Errors
/// [`Rejection::JobInvalid`]: the parent may have been registered before jobs were bounded.
fn registered(
    ctx: &mut Context,
    parent: &JobState,
    job: Job,
    trigger: Trigger,
) -> Result<Vec<Event>, Rejection> {
    check_sizes(&job).map_err(Rejection::JobInvalid)?;
    check_counts(&job, ctx.job_count_max)?;
    let key = JobKey::new(&parent.key.namespace, job.id.as_deref().unwrap_or_default());
    let priority = super::decide::priority_of(&job);
    let document = Doc::of(&job);
    let mut events: Vec<Event> =
        vec![JobRegistered { key: key.clone(), version: 0, document, submission: Doc::default() }.into()];
    if runs_at_once(&job) {
        let mut eval = eval::new(ctx, &key, parent.current().kind, priority, trigger);
        eval.job_modify = ctx.index;
        events.push(EvalCreated { eval }.into());
    }
    Ok(events)
}

fn has_live_child(state: &State, key: &JobKey) -> bool {
    state.jobs.children(key).any(|child| child.live_allocs > 0 || !child.live_evals.is_empty())
}

fn seconds(at: Time) -> i64 {
    at.0.div_euclid(1_000_000_000)
}

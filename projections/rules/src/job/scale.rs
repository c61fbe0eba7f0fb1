use model::command::ScaleJob;
use model::document::{Job, ScalingEvent};
use model::event::{EvalCreated, Event, JobRegistered, JobScaled, NewEval};
use model::{Doc, JobType, Rejection, Trigger};
use state::State;
use state::deployment::Deployment;
use state::job::JobState;

use super::decide::{check_counts, enforce, known};
use crate::decision::{Context, Decision};
use crate::eval;

/// Sets the count of a group, or only writes down what was said about it.
///
/// # Errors
/// [`Rejection::JobInvalid`] with what does not fit the job.
pub fn scale(state: &State, ctx: &mut Context, request: &ScaleJob) -> Result<Decision, Rejection> {
    if state.scheduler().is_some_and(|rules| rules.reject_job_registration) {
        return Err(Rejection::RegistrationDisabled);
    }
    let job = known(state, &request.key)?;
    enforce(Some(job), request.enforce_index)?;
    let Some(group) = job.current().group(&request.group) else {
        let why = format!("task group {:?} specified for scaling does not exist in job", request.group);
        return Err(Rejection::JobInvalid(why));
    };
    let mut scaling = ScalingEvent {
        count: request.count,
        previous_count: group.count.unwrap_or_default(),
        error: request.error,
        message: request.message.clone(),
        meta: request.meta.clone(),
        ..ScalingEvent::default()
    };
    let mut events: Vec<Event> = Vec::new();
    let mut job_modify = job.job_modified;
    if let Some(count) = request.count {
        check(state, job, request, count)?;
        let wanted = with_count(job, &request.group, count);
        check_counts(&wanted, ctx.job_count_max)?;
        let kind = job.current().kind;
        let eval = eval::new(ctx, &job.key, kind, job.current().priority(), Trigger::JobScaling);
        scaling.eval_id = Some(eval.id.to_string());
        let is_new = count != scaling.previous_count;
        if is_new {
            job_modify = ctx.index;
        }
        events.extend(is_new.then(|| next_version(job, &wanted)));
        events.push(EvalCreated { eval: NewEval { job_modify, ..eval } }.into());
    }
    let scaling = Doc::of(&scaling);
    events.push(JobScaled { key: job.key.clone(), group: request.group.clone(), scaling }.into());
    Ok(Decision::of(events).with_job_at(job_modify))
}

fn check(state: &State, job: &JobState, request: &ScaleJob, count: i64) -> Result<(), Rejection> {
    let invalid = |why: String| Err(Rejection::JobInvalid(why));
    if request.error {
        return invalid("scaling action should not contain count if error is true".to_string());
    }
    if job.is_stopped() {
        return invalid(format!("job {:?} is stopped and cannot be scaled", job.key.id));
    }
    if count < 0 {
        return invalid("scaling action count can't be negative".to_string());
    }
    let kind = job.current().kind;
    if matches!(kind, JobType::System | JobType::Sysbatch) && count > 1 {
        return invalid(format!("jobs of type \"{kind}\" can only be scaled between 0 and 1"));
    }
    let limits = job.current().group(&request.group).and_then(|group| group.scaling.as_ref());
    let limit = |of: fn(&model::document::ScalingPolicy) -> Option<i64>| limits.and_then(of);
    if let Some(min) = limit(|limits| limits.min).filter(|min| count < *min) {
        return invalid(format!("group count was less than scaling policy minimum: {count} < {min}"));
    }
    if let Some(max) = limit(|limits| limits.max).filter(|max| count > *max) {
        return invalid(format!("group count was greater than scaling policy maximum: {count} > {max}"));
    }
    let newest = job.deployments.last().map(|row| state.deployments.get(*row));
    if newest.is_some_and(Deployment::is_active) {
        return invalid("job scaling blocked due to active deployment".to_string());
    }
    Ok(())
}

/// The job with another count.
fn with_count(job: &JobState, group: &str, count: i64) -> Job {
    let mut wanted = Job::clone(&job.current().job);
    for one in wanted.task_groups.iter_mut().filter(|one| one.name.as_deref() == Some(group)) {
        one.count = Some(count);
    }
    wanted
}

fn next_version(job: &JobState, wanted: &Job) -> Event {
    let current = job.current();
    let submission = current.submission.as_ref();
    Event::JobRegistered(JobRegistered {
        key: job.key.clone(),
        version: current.version + 1,
        document: Doc::of(wanted),
        submission: submission.map_or_else(Doc::default, |submission| Doc(submission.bytes().to_vec())),
    })
}

use model::event::{
    AllocHealthSet, DeploymentPromoted, DeploymentStatusChanged, EvalCreated, EvalOutcome, Event, NewEval,
};
use model::{AllocId, DeploymentId, DeploymentStatus, Rejection, Trigger};

use state::State;
use state::deployment::{Deployment, GroupProgress};

use super::texts;
use crate::decision::{Context, Decision};
use crate::{eval, job};

pub(super) fn known(state: &State, id: DeploymentId) -> Result<&Deployment, Rejection> {
    state.deployments.lookup(id).ok_or(Rejection::DeploymentUnknown(id))
}

pub(super) fn active<'a>(
    state: &'a State,
    id: DeploymentId,
    verb: &str,
) -> Result<&'a Deployment, Rejection> {
    let deployment = known(state, id)?;
    if deployment.is_active() {
        return Ok(deployment);
    }
    Err(refused(format!("can't {verb} terminal deployment")))
}

pub(super) fn refused(why: impl Into<String>) -> Rejection {
    Rejection::DeploymentRefused(why.into())
}

/// Of the named groups; of all, if none is named.
pub fn promote(
    state: &State,
    ctx: &mut Context,
    id: DeploymentId,
    named: &[String],
) -> Result<Decision, Rejection> {
    let deployment = active(state, id, "promote")?;
    if let Some(unknown) = named.iter().find(|name| !deployment.groups.contains_key(*name)) {
        return Err(refused(format!("task group {unknown:?} is not part of the deployment")));
    }
    let chosen = |name: &String| named.is_empty() || named.contains(name);
    let waiting = deployment.groups.iter().filter(|(name, group)| chosen(name) && group.is_canarying());
    let waiting: Vec<(&String, &GroupProgress)> = waiting.collect();
    if waiting.is_empty() {
        return Err(refused("no canaries to promote"));
    }
    let short: Vec<String> =
        waiting.iter().filter_map(|(name, group)| shortfall(state, name, group)).collect();
    if !short.is_empty() {
        return Err(refused(short.join("; ")));
    }
    let mut events = promotion(deployment, waiting.iter().map(|(name, _)| (*name).clone()).collect());
    events.push(EvalCreated { eval: evaluation(state, ctx, deployment) }.into());
    Ok(Decision::of(events))
}

fn shortfall(state: &State, name: &str, group: &GroupProgress) -> Option<String> {
    let canaries = group.placed_canaries.iter().filter_map(|id| state.allocs.lookup(*id));
    let healthy = canaries.filter(|alloc| !alloc.is_terminal() && alloc.health.healthy == Some(true)).count();
    let wanted = group.goal.desired_canaries;
    (healthy < wanted as usize)
        .then(|| format!("Task group {name:?} has {healthy}/{wanted} healthy allocations"))
}

pub(super) fn promotion(deployment: &Deployment, groups: Vec<String>) -> Vec<Event> {
    let rest = |(name, group): (&String, &GroupProgress)| group.is_canarying() && !groups.contains(name);
    let waits = deployment.groups.iter().any(rest);
    let mut events = vec![DeploymentPromoted { deployment: deployment.id, groups }.into()];
    if !waits && deployment.status == DeploymentStatus::Running {
        events.push(changed(deployment, DeploymentStatus::Running, texts::RUNNING));
    }
    events
}

pub fn fail_by_hand(state: &State, ctx: &mut Context, id: DeploymentId) -> Result<Decision, Rejection> {
    let deployment = active(state, id, "fail")?;
    Ok(fail(state, ctx, deployment, texts::MARKED_AS_FAILED))
}

pub fn pause(state: &State, id: DeploymentId) -> Result<Decision, Rejection> {
    let deployment = active(state, id, "pause")?;
    if deployment.status == DeploymentStatus::Paused {
        return Ok(Decision::nothing());
    }
    Ok(changed(deployment, DeploymentStatus::Paused, texts::PAUSED).into())
}

pub fn resume(state: &State, ctx: &mut Context, id: DeploymentId) -> Result<Decision, Rejection> {
    let deployment = active(state, id, "resume")?;
    let mut events = Vec::new();
    if deployment.status == DeploymentStatus::Paused {
        events.push(changed(deployment, DeploymentStatus::Running, texts::RUNNING));
    }
    events.push(EvalCreated { eval: evaluation(state, ctx, deployment) }.into());
    Ok(Decision::of(events))
}

/// An allocation that is said to be unhealthy fails its deployment.
pub fn set_health(
    state: &State,
    ctx: &mut Context,
    id: DeploymentId,
    healthy: &[AllocId],
    unhealthy: &[AllocId],
) -> Result<Decision, Rejection> {
    let deployment = known(state, id)?;
    if !deployment.is_active() {
        return Err(refused("can't set health of allocations for a terminal deployment"));
    }
    if healthy.is_empty() && unhealthy.is_empty() {
        return Err(refused("must specify at least one healthy/unhealthy allocation ID"));
    }
    let both = healthy.iter().chain(unhealthy);
    let foreign =
        |id: &&AllocId| state.allocs.lookup(**id).is_none_or(|alloc| alloc.deployment != Some(deployment.id));
    if let Some(alloc) = both.clone().find(foreign) {
        return Err(refused(format!("allocation {alloc} is not part of deployment {id}")));
    }
    if let Some(alloc) = healthy.iter().find(|alloc| unhealthy.contains(alloc)) {
        return Err(refused(format!("allocation {alloc} cannot be healthy and unhealthy")));
    }
    let verdict = |healthy: bool, allocs: &[AllocId]| {
        let allocs = allocs.to_vec();
        (!allocs.is_empty()).then(|| AllocHealthSet { deployment: id, healthy, allocs }.into())
    };
    let mut events: Vec<Event> =
        verdict(true, healthy).into_iter().chain(verdict(false, unhealthy)).collect();
    if unhealthy.is_empty() {
        events.push(EvalCreated { eval: evaluation(state, ctx, deployment) }.into());
        return Ok(Decision::of(events));
    }
    let mut decision = fail(state, ctx, deployment, texts::UNHEALTHY);
    decision.events.splice(0..0, events);
    Ok(decision)
}

/// Over, in vain. If a group wants it, the job goes back to the newest version that once succeeded.
pub(super) fn fail(state: &State, ctx: &mut Context, deployment: &Deployment, cause: &str) -> Decision {
    let owner = state.jobs.get(deployment.job);
    let reverts = deployment.groups.values().any(|group| group.goal.auto_revert) && owner.is_wanted();
    let stable = owner.versions.iter().find(|version| owner.is_stable(version.version));
    let (description, back_to) = match stable.filter(|_| reverts) {
        None if !reverts => (cause.to_string(), None),
        None => (format!("{cause} - no stable job version to auto revert to"), None),
        Some(version) if version.job == owner.current().job => {
            let number = version.version;
            let same = "as current job has same specification";
            (format!("{cause} - not rolling back to stable job version {number} {same}"), None)
        }
        Some(version) => {
            (format!("{cause} - rolling back to job version {}", version.version), Some(version))
        }
    };
    let mut events = vec![changed(deployment, DeploymentStatus::Failed, &description)];
    let mut eval = evaluation(state, ctx, deployment);
    if let Some(version) = back_to {
        events.push(job::decide::registered_again(owner, version));
        eval.job_modify = ctx.index;
    }
    events.push(EvalCreated { eval }.into());
    Decision { reverted_to: back_to.map(|version| version.version), ..Decision::of(events) }
}

/// Has the scheduler go on with the deployment.
pub(super) fn evaluation(state: &State, ctx: &mut Context, deployment: &Deployment) -> NewEval {
    let eval = eval::for_job(ctx, state.jobs.get(deployment.job), Trigger::DeploymentWatcher);
    let outcome = EvalOutcome { deployment: Some(deployment.id), ..EvalOutcome::default() };
    NewEval { priority: deployment.priority, outcome, ..eval }
}

pub(super) fn changed(deployment: &Deployment, status: DeploymentStatus, description: &str) -> Event {
    let description = description.to_string();
    DeploymentStatusChanged { deployment: deployment.id, status, description }.into()
}

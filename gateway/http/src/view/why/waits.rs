//! What has to happen before things go on.

use api::Wait;
use base::Time;
use model::document::List;
use model::{ClientStatus, DeploymentStatus, Desired, EvalStatus, Trigger};
use state::State;
use state::alloc::{Alloc, reschedule};
use state::deployment::{Deployment, next_deadline};
use state::eval::Eval;
use state::job::JobRow;

use super::deployment::{healthy_canaries, newest};

/// Things waited for that are shown.
const WAITS_MAX: usize = 16;

/// What the job waits for.
pub(super) fn of_job(state: &State, row: JobRow) -> List<Wait> {
    let job = state.jobs.get(row);
    let mut waits: Vec<Wait> =
        job.live_evals.iter().map(|eval| of_eval(state, state.evals.get(*eval))).collect();
    waits.extend(newest(state, row).into_iter().flat_map(|deployment| of_deployment(state, deployment)));
    waits.extend(of_schedule(state, row));
    let allocs = job.allocs.iter().map(|alloc| state.allocs.get(*alloc));
    let waiting = allocs.flat_map(|alloc| of_alloc(state, alloc));
    waits.extend(waiting.take(WAITS_MAX));
    waits.truncate(WAITS_MAX);
    waits.into()
}

fn of_eval(state: &State, eval: &Eval) -> Wait {
    let (facts, now) = (&eval.facts, state.time);
    let later = facts.wait_until > now;
    let paused = state.scheduler().is_some_and(|rules| rules.pause_eval_broker);
    let what = match eval.status {
        EvalStatus::Blocked if facts.trigger == Trigger::MaxPlanAttempts => {
            "to be tried again: other plans were in the way".to_string()
        }
        EvalStatus::Blocked => format!("room on {}", room(eval)),
        _ if later => format!("its time, to be looked at again ({})", facts.trigger),
        _ if paused => "the eval broker, which the scheduler configuration pauses".to_string(),
        _ => format!("a scheduler to look at it ({})", facts.trigger),
    };
    Wait { what, eval_id: eval.id().to_string(), until: later.then(|| facts.wait_until.into()) }
}

fn room(eval: &Eval) -> String {
    let fit = eval.outcome.classes.iter().filter(|(_, eligible)| *eligible).count();
    match fit {
        _ if eval.outcome.escaped => "any node".to_string(),
        0 => "nodes of a kind that is not there yet".to_string(),
        1 => "nodes of 1 kind that would do, or of a new kind".to_string(),
        many => format!("nodes of {many} kinds that would do, or of a new kind"),
    }
}

/// The next launch of a periodic job, or a dispatch.
fn of_schedule(state: &State, row: JobRow) -> Option<Wait> {
    let job = state.jobs.get(row);
    if let Some(until) = next_launch(state, row) {
        let what = "its next launch, by its schedule".to_string();
        return Some(Wait { what, eval_id: String::new(), until: Some(until.into()) });
    }
    let current = job.current();
    let model = job.is_wanted() && current.job.parameterized_job.is_some() && !current.job.dispatched;
    model.then(|| Wait { what: "somebody to dispatch it".to_string(), ..Wait::default() })
}

/// When a periodic job is launched next.
pub(super) fn next_launch(state: &State, row: JobRow) -> Option<Time> {
    let job = state.jobs.get(row);
    let schedule = job.schedule().filter(|schedule| schedule.enabled != Some(false))?;
    model::cron::next_launch(schedule, job.last_launch().max(state.time))
}

/// What a deployment waits for; nothing once it is over.
pub(super) fn of_deployment(state: &State, deployment: &Deployment) -> Vec<Wait> {
    let id = deployment.id;
    let wait = |what: String, until: Option<Time>| Wait {
        what: format!("deployment {id}: {what}"),
        eval_id: String::new(),
        until: until.map(Into::into),
    };
    match deployment.status {
        DeploymentStatus::Running => {}
        DeploymentStatus::Paused => return vec![wait("to be resumed, it is paused".to_string(), None)],
        _ if deployment.is_active() => {
            return vec![wait(format!("to run, it is {}", deployment.status), None)];
        }
        _ => return Vec::new(),
    }
    let mut waits = Vec::new();
    for (name, group) in &deployment.groups {
        let until = Some(group.require_progress_by).filter(|until| *until != Time::ZERO);
        if group.is_canarying() {
            let (healthy, wanted) = (healthy_canaries(state, group), group.goal.desired_canaries);
            if healthy < u64::from(wanted) {
                waits.push(wait(format!("{healthy} of {wanted} canaries of {name:?} are healthy"), until));
            } else if deployment.promotes_itself() {
                waits.push(wait(format!("the promotion of {name:?}, by itself"), None));
            } else {
                waits.push(wait(format!("somebody to promote {name:?}"), None));
            }
        } else if group.is_short() {
            let (healthy, wanted) = (group.healthy, group.goal.desired_total);
            waits.push(wait(format!("{healthy} of {wanted} of {name:?} are healthy"), until));
        }
    }
    if let (true, Some(until)) = (waits.is_empty(), next_deadline(deployment)) {
        waits.push(wait("progress".to_string(), Some(until)));
    }
    waits
}

pub(super) fn of_alloc(state: &State, alloc: &Alloc) -> Vec<Wait> {
    if alloc.client.is_terminal() && alloc.follow_up.is_none() && alloc.client != ClientStatus::Failed {
        return Vec::new();
    }
    let node = state.nodes.cold(alloc.node);
    let (hot, name) = (state.nodes.hot(alloc.node), &node.document.name);
    let mut waits = Vec::new();
    let mut wait = |what: String, until| {
        waits.push(Wait { what: format!("{}: {what}", alloc.name()), eval_id: String::new(), until });
    };
    if alloc.client == ClientStatus::Unknown && !alloc.is_stopping() {
        let until = alloc.last_unknown().plus(alloc.lost_after());
        wait(format!("node {name:?} to connect again; given up then"), Some(until.into()));
    } else if hot.status.is_silent() && !alloc.client.is_terminal() {
        wait(format!("node {name:?}, which is {}", hot.status), None);
    } else if alloc.client == ClientStatus::Pending && alloc.desired == Desired::Run {
        wait(format!("node {name:?} to start it"), None);
    } else if alloc.is_stopping() && !alloc.client.is_terminal() {
        wait(format!("node {name:?} to stop it"), None);
    }
    let follow_up = reschedule::follow_up(state, alloc).and_then(|id| state.evals.lookup(id));
    if let Some(eval) = follow_up
        && !eval.status.is_terminal()
        && eval.facts.wait_until > state.time
    {
        wait(format!("its follow-up ({})", eval.facts.trigger), Some(eval.facts.wait_until.into()));
    }
    waits
}

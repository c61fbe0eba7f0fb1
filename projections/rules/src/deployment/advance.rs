//! What is due for an active deployment. The leader's watcher only says when to look.

use base::{Index, Time};
use model::event::{AllocTransitionRequested, EvalCreated, Event};
use model::{AllocId, DeploymentId, DeploymentStatus, EvalStatus, Rejection};
use state::State;
use state::alloc::Alloc;
use state::alloc::reschedule::may_be_rescheduled;
use state::deployment::{Deployment, GroupProgress, next_deadline};

use super::decide::{evaluation, fail, known, promotion};
use super::texts;
use crate::decision::{Context, Decision};

/// Does what is due: fails it, has its unhealthy allocations replaced, promotes it, or has the scheduler go on.
pub fn advance(state: &State, ctx: &mut Context, id: DeploymentId) -> Result<Decision, Rejection> {
    let deployment = known(state, id)?;
    if !deployment.is_active() {
        return Ok(Decision::nothing());
    }
    let found = Found::of(state, deployment);
    if found.hopeless {
        return Ok(fail(state, ctx, deployment, texts::UNHEALTHY));
    }
    if next_deadline(deployment).is_some_and(|deadline| deadline <= ctx.time) {
        return Ok(fail(state, ctx, deployment, texts::TOO_SLOW));
    }
    let mut events: Vec<Event> = Vec::new();
    let promotes = found.promotes(deployment);
    if promotes {
        let groups = deployment.groups.iter().filter(|(_, group)| group.is_canarying());
        events.extend(promotion(deployment, groups.map(|(name, _)| name.clone()).collect()));
    }
    let replaces = !found.replaceable.is_empty();
    if replaces {
        events.push(Event::AllocTransitionRequested(AllocTransitionRequested {
            allocs: found.replaceable,
            migrate: false,
            reschedule: true,
            no_shutdown_delay: false,
            force_reschedule: false,
            disable_placement: false,
            cause: "deployment".to_string(),
        }));
    }
    if promotes || replaces || deployment.progressed > newest_look(state, deployment) {
        events.push(EvalCreated { eval: evaluation(state, ctx, deployment) }.into());
    }
    Ok(Decision::of(events))
}

/// When the newest evaluation was created that sees what had happened by then.
fn newest_look(state: &State, deployment: &Deployment) -> Index {
    let evals = state.jobs.get(deployment.job).evals.iter().rev().map(|row| state.evals.get(*row));
    let mut looks = evals.filter(|eval| {
        let at_once = eval.facts.wait_until == Time::ZERO && eval.facts.status == EvalStatus::Pending;
        at_once && eval.status != EvalStatus::Canceled
    });
    looks.next().map_or(Index::ZERO, |eval| eval.created)
}

/// The deployment's allocations as far as something follows from them.
#[derive(Default)]
struct Found {
    /// One is unhealthy that nothing may replace.
    hopeless: bool,
    /// Unhealthy, and not to be replaced yet.
    replaceable: Vec<AllocId>,
    healthy_canaries: Vec<AllocId>,
}

impl Found {
    fn of(state: &State, deployment: &Deployment) -> Found {
        let mut found = Found::default();
        let allocs = state.jobs.get(deployment.job).allocs.iter().map(|row| state.allocs.get(*row));
        for alloc in allocs.filter(|alloc| alloc.deployment == Some(deployment.id)) {
            if let Some(group) = deployment.groups.get(&*alloc.group) {
                found.look_at(state, group, alloc);
            }
        }
        found
    }

    fn look_at(&mut self, state: &State, group: &GroupProgress, alloc: &Alloc) {
        match alloc.health.healthy {
            Some(true) if !alloc.is_terminal() => self.healthy_canaries.extend(canary(alloc)),
            Some(false) if !alloc.is_stopping() && alloc.next.is_none() => {
                let limited = group.goal.progress_deadline.0 > 0;
                if !limited || !may_be_rescheduled(state, alloc) {
                    self.hopeless = true;
                } else if !alloc.transition.reschedule {
                    self.replaceable.push(alloc.id);
                }
            }
            Some(_) | None => {}
        }
    }

    fn promotes(&self, deployment: &Deployment) -> bool {
        let proved = |group: &GroupProgress| {
            let healthy =
                group.placed_canaries.iter().filter(|id| self.healthy_canaries.contains(id)).count();
            healthy >= group.goal.desired_canaries as usize
        };
        let running = deployment.status == DeploymentStatus::Running;
        let mut waiting = deployment.groups.values().filter(|group| group.is_canarying()).peekable();
        running && waiting.peek().is_some() && deployment.promotes_itself() && waiting.all(proved)
    }
}

fn canary(alloc: &Alloc) -> Option<AllocId> {
    alloc.health.canary.then_some(alloc.id)
}

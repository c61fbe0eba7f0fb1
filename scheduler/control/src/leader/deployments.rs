//! Watches deployments: says when each has to be looked at.

use base::{Duration, Rng, Time};
use model::{Command, DeploymentId};
use state::deployment::{Deployment, DeploymentRow, next_deadline};
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

/// Changes of a deployment are gathered for this long: the reports of a hundred nodes lead to one evaluation.
const GATHERED: Duration = Duration::from_millis(250);

/// Wait before a command is repeated: a full queue may have rejected it, or it came just before the deadline that it
/// is about.
const AGAIN: Duration = Duration::from_secs(1);

/// When each active deployment is looked at next. What is due is decided with the command, on the state: one look too
/// many changes nothing.
#[derive(Debug, Default)]
pub struct Deployments {
    deadlines: Deadlines<DeploymentId>,
}

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployments"
    }

    /// A new leader does not know what its predecessor has seen: it looks at all of them.
    fn lead(&mut self, state: &State, now: Time) {
        self.follow();
        let active = state.deployments.iter().map(|(_, known)| known).filter(|known| known.is_active());
        active.for_each(|known| self.deadlines.set(known.id, now.plus(GATHERED)));
    }

    fn follow(&mut self) {
        self.deadlines.clear();
    }

    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        for DeploymentRow(row) in &delta.deployments {
            let known = state.deployments.get(DeploymentRow(*row));
            if is_over(known) {
                self.deadlines.forget(known.id);
            } else {
                self.deadlines.set_by(known.id, now.plus(GATHERED));
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// Each deployment is looked at again at its own deadline.
    fn expire(&mut self, state: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(id) = self.deadlines.take_due(now) {
            let Some(known) = state.deployments.lookup(id).filter(|known| !is_over(known)) else { continue };
            commands.push(Command::AdvanceDeployment { deployment: id });
            if let Some(deadline) = next_deadline(known) {
                self.deadlines.set(id, deadline.max(now.plus(AGAIN)));
            }
        }
        commands
    }
}

impl Deployments {
    /// Deployments that will be looked at.
    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }
}

fn is_over(deployment: &Deployment) -> bool {
    deployment.gone || !deployment.is_active()
}

#[cfg(test)]
mod tests {
    use base::Uuid;
    use model::document::Job;
    use model::event::{DeploymentCreated, DeploymentGoal, DeploymentStatusChanged, JobRegistered};
    use model::{Actor, Batch, CommandRecord, DeploymentStatus, Doc, Event, JobKey, LoggedEvent, RequestId};

    use super::*;

    const ID: DeploymentId = DeploymentId(Uuid([7; 16]));

    fn fold(state: &mut State, events: Vec<Event>) -> Delta {
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        let events = events.into_iter().map(|event| LoggedEvent { command: 0, event }).collect();
        let batch = Batch { commands: vec![record], events, ..state.next_batch(Time::ZERO, Uuid::NIL) };
        state.apply(&batch).unwrap()
    }

    fn status(status: DeploymentStatus) -> Event {
        DeploymentStatusChanged { deployment: ID, status, description: String::new() }.into()
    }

    fn begun() -> (State, Delta) {
        let key = JobKey::new("default", "web");
        let job = Job { kind: Some("service".into()), ..Job::default() };
        let registered = JobRegistered {
            key: key.clone(),
            version: 0,
            document: Doc::of(&job),
            submission: Doc::default(),
        };
        let created = DeploymentCreated {
            deployment: ID,
            key,
            version: 0,
            priority: 50,
            is_multiregion: false,
            status: DeploymentStatus::Running,
            description: String::new(),
            groups: vec![DeploymentGoal { group: "g".into(), desired_total: 1, ..DeploymentGoal::default() }],
        };
        let mut state = State::default();
        let delta = fold(&mut state, vec![registered.into(), created.into()]);
        (state, delta)
    }

    #[test]
    fn what_happens_in_a_moment_is_looked_at_once() {
        let (state, delta) = begun();
        let mut watched = Deployments::default();
        watched.observe(&state, &delta, Time::ZERO);
        watched.observe(&state, &delta, Time(GATHERED.0 / 2));
        assert_eq!(watched.next_deadline(), Some(Time(GATHERED.0)));
        assert!(watched.expire(&state, Time(GATHERED.0 - 1), &mut Rng::new(1)).is_empty());
        let commands = watched.expire(&state, Time(GATHERED.0), &mut Rng::new(1));
        assert!(matches!(commands[..], [Command::AdvanceDeployment { deployment: ID }]));
        assert!(watched.is_empty(), "without a deadline only a change brings it back");
    }

    #[test]
    fn what_is_over_is_not_looked_at() {
        let (mut state, delta) = begun();
        let mut watched = Deployments::default();
        watched.observe(&state, &delta, Time::ZERO);
        let delta = fold(&mut state, vec![status(DeploymentStatus::Failed)]);
        watched.observe(&state, &delta, Time::ZERO);
        assert!(watched.is_empty());
        watched.lead(&state, Time::ZERO);
        assert!(watched.is_empty());
    }

    #[test]
    fn a_new_leader_looks_at_all_that_are_active() {
        let (state, _) = begun();
        let mut watched = Deployments::default();
        watched.lead(&state, Time::ZERO);
        assert_eq!(watched.len(), 1);
    }
}

//! Watches nodes that are drained: says when each has to be looked at.

use std::collections::BTreeSet;

use base::{Duration, Rng, Time};
use model::{Command, NodeId};
use state::alloc::AllocRow;
use state::job::JobRow;
use state::node::NodeRow;
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

/// Changes of a node's jobs are gathered for this long.
const GATHERED: Duration = Duration::from_millis(250);

/// Wait before a command is repeated: a full queue may have rejected it, or it came just before the deadline that it
/// is about.
const AGAIN: Duration = Duration::from_secs(1);

/// Nodes that are drained, and when each is looked at next, if that is known. What is due is decided with the command,
/// on the state: one look too many changes nothing.
#[derive(Debug, Default)]
pub struct Drains {
    nodes: BTreeSet<NodeId>,
    deadlines: Deadlines<NodeId>,
}

impl Controller for Drains {
    fn name(&self) -> &'static str {
        "drains"
    }

    /// A new leader does not know what its predecessor has seen: it looks at all of them.
    fn lead(&mut self, state: &State, now: Time) {
        self.follow();
        for row in state.nodes.rows() {
            self.take(state, row, now);
        }
    }

    fn follow(&mut self) {
        self.nodes.clear();
        self.deadlines.clear();
    }

    /// A drained node is looked at when it changes, and when an allocation of a job that runs on it does.
    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        delta.nodes.iter().for_each(|row| self.take(state, *row, now));
        if self.nodes.is_empty() || delta.allocs.is_empty() {
            return;
        }
        let jobs: BTreeSet<JobRow> = delta.allocs.iter().map(|row| state.allocs.get(*row).job).collect();
        let soon = now.plus(GATHERED);
        for node in &self.nodes {
            if self.deadlines.get(*node).is_some_and(|deadline| deadline <= soon) {
                continue;
            }
            let concerns = |row: &AllocRow| jobs.contains(&state.allocs.get(*row).job);
            let row = state.nodes.find(*node);
            if row.is_some_and(|row| state.nodes.load(row).allocs.iter().any(concerns)) {
                self.deadlines.set(*node, soon);
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// Each node is looked at again at the deadline of its drain.
    fn expire(&mut self, state: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(node) = self.deadlines.take_due(now) {
            let Some(drain) = state.nodes.find(node).and_then(|row| state.nodes.cold(row).draining()) else {
                self.nodes.remove(&node);
                continue;
            };
            commands.push(Command::AdvanceDrain { node });
            if let Some(deadline) = drain.deadline() {
                self.deadlines.set(node, deadline.max(now.plus(AGAIN)));
            }
        }
        commands
    }
}

impl Drains {
    /// Nodes that are drained.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Looks at the node soon if it is drained, and never otherwise.
    fn take(&mut self, state: &State, row: NodeRow, now: Time) {
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        if hot.gone || cold.draining().is_none() {
            self.nodes.remove(&cold.id);
            self.deadlines.forget(cold.id);
            return;
        }
        self.nodes.insert(cold.id);
        self.deadlines.set_by(cold.id, now.plus(GATHERED));
    }
}

#[cfg(test)]
mod tests {
    use base::Uuid;
    use model::document::Node;
    use model::event::{DrainOrder, NodeDrainEnded, NodeDrainStarted, NodeMessage, NodeRegistered};
    use model::{Actor, Batch, CommandRecord, Doc, DrainStatus, Event, LoggedEvent, RequestId};

    use super::*;

    const ID: NodeId = NodeId(Uuid([7; 16]));
    const DEADLINE: Duration = Duration::from_secs(60);

    fn fold(state: &mut State, events: Vec<Event>) -> Delta {
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        let events = events.into_iter().map(|event| LoggedEvent { command: 0, event }).collect();
        let batch = Batch { commands: vec![record], events, ..state.next_batch(Time::ZERO, Uuid::NIL) };
        state.apply(&batch).unwrap()
    }

    fn message() -> NodeMessage {
        NodeMessage::new("Drain", "", Time::ZERO)
    }

    fn begun() -> (State, Delta) {
        let registered = NodeRegistered {
            node: ID,
            document: Doc::of(&Node::default()),
            computed_class: String::new(),
            secret_hash: [0; 32],
        };
        let order =
            DrainOrder { deadline: DEADLINE, force_at: Time::ZERO.plus(DEADLINE), ..DrainOrder::default() };
        let started = NodeDrainStarted { node: ID, order, message: message() };
        let mut state = State::default();
        let delta = fold(&mut state, vec![registered.into(), started.into()]);
        (state, delta)
    }

    #[test]
    fn a_node_is_looked_at_at_once_and_at_its_deadline() {
        let (state, delta) = begun();
        let mut watched = Drains::default();
        watched.observe(&state, &delta, Time::ZERO);
        watched.observe(&state, &delta, Time(GATHERED.0 / 2));
        assert_eq!(watched.next_deadline(), Some(Time(GATHERED.0)));
        let commands = watched.expire(&state, Time(GATHERED.0), &mut Rng::new(1));
        assert!(matches!(commands[..], [Command::AdvanceDrain { node: ID }]));
        assert_eq!(watched.next_deadline(), Some(Time::ZERO.plus(DEADLINE)));
    }

    #[test]
    fn what_is_over_is_not_looked_at() {
        let (mut state, delta) = begun();
        let mut watched = Drains::default();
        watched.observe(&state, &delta, Time::ZERO);
        let ended = NodeDrainEnded {
            node: ID,
            status: DrainStatus::Canceled,
            eligible: true,
            meta: Vec::new(),
            accessor: String::new(),
            message: message(),
        };
        let delta = fold(&mut state, vec![ended.into()]);
        watched.observe(&state, &delta, Time::ZERO);
        assert!(watched.is_empty());
        watched.lead(&state, Time::ZERO);
        assert!(watched.is_empty());
    }

    #[test]
    fn a_new_leader_looks_at_all_that_are_being_emptied() {
        let (state, _) = begun();
        let mut watched = Drains::default();
        watched.lead(&state, Time::ZERO);
        assert_eq!((watched.len(), watched.next_deadline()), (1, Some(Time(GATHERED.0))));
    }
}

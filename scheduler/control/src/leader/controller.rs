//! What every controller of the leader has in common.

use base::{Duration, Rng, Time};
use model::Command;
use state::{Delta, State};

use super::deployments::Deployments;
use super::drains::Drains;
use super::garbage::{Garbage, GarbageSettings};
use super::launches::Launches;

/// One of the leader's duties, as a machine: it reads what was committed and says when it wants to be called next.
///
/// It exists on every server and acts on the leader only. What it remembers is never the only copy: a new leader's
/// controller starts from the state alone. A command that it gives is decided on the state like any other, so a
/// repeated or late one changes nothing.
pub trait Controller: Send {
    /// The actor of its commands, and the reason of its deadlines.
    fn name(&self) -> &'static str;

    /// This server leads from now on, or its state was replaced: start again from the state.
    fn lead(&mut self, state: &State, now: Time);

    /// This server does not lead: forget everything.
    fn follow(&mut self);

    /// A batch was committed while this server leads.
    fn observe(&mut self, state: &State, delta: &Delta, now: Time);

    /// The clock was set forward by so much (back, if it is negative), and no time has passed by that. A controller moves
    /// the deadlines along that end a span which began when something happened; those that name a time stay.
    fn clock_moved(&mut self, _by: Duration) {}

    /// When [`Controller::expire`] has something to do; `None` until something else happens.
    fn next_deadline(&self) -> Option<Time>;

    /// What has to be decided now. Called at the deadline or later.
    fn expire(&mut self, state: &State, now: Time, rng: &mut Rng) -> Vec<Command>;
}

/// The controllers that nobody calls but the leader. The broker, the heartbeats and the locks stand beside them because
/// workers, nodes and the holders of locks call those by name.
pub fn all(garbage: GarbageSettings) -> Vec<Box<dyn Controller>> {
    vec![
        Box::<Deployments>::default(),
        Box::<Drains>::default(),
        Box::<Launches>::default(),
        Box::new(Garbage::new(garbage)),
    ]
}

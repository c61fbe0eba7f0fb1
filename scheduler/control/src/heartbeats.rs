//! Who has been heard, and who has been silent for too long.

use base::{Duration, Rng, Time};
use model::{Command, NodeId};
use state::State;

use crate::moments::Moments;

#[derive(Clone, Debug)]
pub struct HeartbeatSettings {
    /// The shortest time to live that is granted. Shorter finds failures sooner and costs more calls.
    pub min_ttl: Duration,
    /// How much later than its time to live a node may be.
    pub grace: Duration,
    /// What every node has after a new leader took over.
    pub failover_ttl: Duration,
}

/// The time to live is drawn up to this much above the minimum, so that nodes do not beat as one. It does not
/// grow with the fleet: with the default minimum and grace a dead node is known within 10 s + 5 s + 10 s.
const SPREAD_PERCENT: u64 = 50;

/// Deadlines of all nodes that are not down. Exists on the leader only.
#[derive(Debug)]
pub struct Heartbeats {
    settings: HeartbeatSettings,
    deadlines: Moments<NodeId>,
}

impl Heartbeats {
    pub fn new(settings: HeartbeatSettings) -> Heartbeats {
        Heartbeats { settings, deadlines: Moments::default() }
    }

    /// A new leader does not know who was heard last: everybody who may be alive gets the fail-over grace.
    pub fn rebuild(&mut self, state: &State, now: Time) {
        self.clear();
        for row in state.nodes.rows() {
            if state.nodes.hot(row).status != model::NodeStatus::Down {
                self.deadlines.set(state.nodes.cold(row).id, now.plus(self.settings.failover_ttl));
            }
        }
    }

    pub fn clear(&mut self) {
        self.deadlines.clear();
    }

    /// The node spoke. Tells how long it may be silent now.
    pub fn heard(&mut self, node: NodeId, now: Time, chance: &mut Rng) -> Duration {
        let spread = (self.settings.min_ttl.0 as u64 * SPREAD_PERCENT / 100).max(1);
        let ttl = Duration(self.settings.min_ttl.0 + chance.below(spread) as i64);
        self.deadlines.set(node, now.plus(ttl).plus(self.settings.grace));
        ttl
    }

    /// The node is down or gone: nobody waits for it.
    pub fn forget(&mut self, node: NodeId) {
        self.deadlines.forget(node);
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// What has to be decided about nodes whose time is over. They keep a deadline until they are down: a
    /// disconnected node is looked at again when what waits for it may have expired.
    pub fn expire(&mut self, now: Time) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(node) = self.deadlines.take_due(now) {
            self.deadlines.set(node, now.plus(self.settings.min_ttl).plus(self.settings.grace));
            commands.push(Command::MissHeartbeat { node });
        }
        commands
    }

    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeats() -> Heartbeats {
        Heartbeats::new(HeartbeatSettings {
            min_ttl: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            failover_ttl: Duration::from_secs(300),
        })
    }

    fn node(number: u128) -> NodeId {
        NodeId(number.into())
    }

    #[test]
    fn a_silent_node_is_reported_at_its_deadline_and_not_before() {
        let mut beats = heartbeats();
        let ttl = beats.heard(node(1), Time::ZERO, &mut Rng::new(1));
        let deadline = Time::ZERO.plus(ttl).plus(Duration::from_secs(10));
        assert_eq!(beats.next_deadline(), Some(deadline));
        assert!(beats.expire(Time(deadline.0 - 1)).is_empty());
        assert_eq!(beats.expire(deadline).len(), 1);
        assert!(beats.expire(deadline).is_empty(), "it is reported once per deadline");
    }

    #[test]
    fn a_node_that_speaks_again_leaves_its_old_deadline() {
        let mut beats = heartbeats();
        let mut chance = Rng::new(1);
        beats.heard(node(1), Time::ZERO, &mut chance);
        beats.heard(node(1), Time::from_secs(9), &mut chance);
        assert_eq!(beats.len(), 1);
        assert!(beats.next_deadline() >= Some(Time::from_secs(29)));
    }

    #[test]
    fn a_dead_node_is_known_within_25_seconds_whatever_the_size_of_the_fleet() {
        let mut beats = heartbeats();
        let mut chance = Rng::new(7);
        (0..10_000).for_each(|n| {
            beats.heard(node(n), Time::ZERO, &mut chance);
        });
        assert_eq!(beats.expire(Time::from_secs(25)).len(), 10_000);
    }
}

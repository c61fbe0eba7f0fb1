//! Watches heartbeats: says which nodes have been silent for too long.

use std::collections::BTreeSet;

use base::{Duration, Rng, Time};
use model::{Command, NodeId, NodeStatus};
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatSettings {
    /// The shortest time to live that is granted. Shorter finds failures sooner and costs more calls.
    pub min_ttl: Duration,
    /// How much later than its time to live a node may be.
    pub grace: Duration,
    /// The time to live of every node after a new leader took over.
    pub failover_ttl: Duration,
}

/// What a server has unless it is configured otherwise.
impl Default for HeartbeatSettings {
    fn default() -> HeartbeatSettings {
        HeartbeatSettings {
            min_ttl: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            failover_ttl: Duration::from_secs(300),
        }
    }
}

/// The time to live is drawn up to this much above the minimum, so that nodes do not beat as one. It does not
/// grow with the fleet: with the default minimum and grace a dead node is known within 10 s + 5 s + 10 s.
const SPREAD_PERCENT: u64 = 50;

/// The deadlines of all nodes that are not down.
#[derive(Debug)]
pub struct Heartbeats {
    settings: HeartbeatSettings,
    deadlines: Deadlines<NodeId>,
    /// Nodes that were silent for too long, while it is not seen in the state yet.
    overdue: BTreeSet<NodeId>,
}

impl Heartbeats {
    pub fn new(settings: HeartbeatSettings) -> Heartbeats {
        Heartbeats { settings, deadlines: Deadlines::default(), overdue: BTreeSet::new() }
    }

    /// The node sent a heartbeat, and what it reported was decided. Returns how long it may be silent now.
    pub fn heartbeat(&mut self, node: NodeId, now: Time, rng: &mut Rng) -> Duration {
        self.overdue.remove(&node);
        let spread = (self.settings.min_ttl.0 as u64 * SPREAD_PERCENT / 100).max(1);
        let ttl = Duration(self.settings.min_ttl.0 + rng.below(spread) as i64);
        self.deadlines.set(node, now.plus(ttl).plus(self.settings.grace));
        ttl
    }

    /// A node says that it is ready. If it is, nothing has to be decided, and this is its heartbeat. `None`: it is not, or will
    /// not be once the log has what this leader found out.
    pub fn renew(&mut self, state: &State, node: NodeId, now: Time, rng: &mut Rng) -> Option<Duration> {
        let counts = state.nodes.is_ready(node) && !self.overdue.contains(&node);
        counts.then(|| self.heartbeat(node, now, rng))
    }

    /// Nodes whose heartbeats are waited for.
    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }
}

impl Controller for Heartbeats {
    fn name(&self) -> &'static str {
        "heartbeats"
    }

    /// A new leader does not know which node sent a heartbeat when: every node that may be alive gets the fail-over
    /// time to live.
    fn lead(&mut self, state: &State, now: Time) {
        self.follow();
        for row in state.nodes.rows() {
            if state.nodes.hot(row).status != NodeStatus::Down {
                self.deadlines.set(state.nodes.cold(row).id, now.plus(self.settings.failover_ttl));
            }
        }
    }

    fn follow(&mut self) {
        self.deadlines.clear();
        self.overdue.clear();
    }

    /// Nobody waits for a node that is down or gone.
    fn observe(&mut self, state: &State, delta: &Delta, _: Time) {
        for row in &delta.nodes {
            let (hot, node) = (state.nodes.hot(*row), state.nodes.cold(*row).id);
            if hot.gone || hot.status != NodeStatus::Ready {
                self.overdue.remove(&node);
            }
            if hot.gone || hot.status == NodeStatus::Down {
                self.deadlines.forget(node);
            }
        }
    }

    /// Nobody was silent for any longer by that.
    fn clock_moved(&mut self, by: Duration) {
        self.deadlines.shift(by);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    /// A silent node keeps a deadline until it is down: a disconnected one is looked at again when the time that its
    /// allocations may be lost for could be over.
    fn expire(&mut self, _: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(node) = self.deadlines.take_due(now) {
            self.deadlines.set(node, now.plus(self.settings.min_ttl).plus(self.settings.grace));
            self.overdue.insert(node);
            commands.push(Command::MissHeartbeat { node });
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use test_world::{World, node_id};

    use super::*;

    fn heartbeats() -> Heartbeats {
        Heartbeats::new(HeartbeatSettings {
            min_ttl: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            failover_ttl: Duration::from_secs(300),
        })
    }

    fn expire(beats: &mut Heartbeats, now: Time) -> Vec<Command> {
        beats.expire(&State::default(), now, &mut Rng::new(1))
    }

    fn node(number: u128) -> NodeId {
        NodeId(number.into())
    }

    #[test]
    fn a_silent_node_is_reported_at_its_deadline_and_not_before() {
        let mut beats = heartbeats();
        let ttl = beats.heartbeat(node(1), Time::ZERO, &mut Rng::new(1));
        let deadline = Time::ZERO.plus(ttl).plus(Duration::from_secs(10));
        assert_eq!(beats.next_deadline(), Some(deadline));
        assert!(expire(&mut beats, Time(deadline.0 - 1)).is_empty());
        assert_eq!(expire(&mut beats, deadline).len(), 1);
        assert!(expire(&mut beats, deadline).is_empty(), "it is reported once per deadline");
    }

    #[test]
    fn a_ready_node_renews_until_it_is_found_silent() {
        let (mut world, mut beats, mut rng) = (World::new(), heartbeats(), Rng::new(1));
        let node = node_id(1);
        let mut renew =
            |beats: &mut Heartbeats, world: &World, now| beats.renew(&world.state, node, now, &mut rng);
        let ready = || Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready };
        assert_eq!(renew(&mut beats, &world, Time::ZERO), None, "nobody knows it");
        world.register_node(1, "r1").unwrap();
        assert_eq!(renew(&mut beats, &world, Time::ZERO), None, "it is not ready yet");
        world.submit(ready()).unwrap();
        assert_eq!(world.submit(ready()).unwrap().events, [], "what is renewed without being decided");
        let ttl = renew(&mut beats, &world, Time::ZERO).unwrap();
        let deadline = Time::ZERO.plus(ttl).plus(Duration::from_secs(10));
        assert_eq!(beats.next_deadline(), Some(deadline));

        let missed = beats.expire(&world.state, deadline, &mut Rng::new(1)).remove(0);
        assert_eq!(renew(&mut beats, &world, deadline), None, "the log is about to say that it is silent");
        world.submit(missed).unwrap();
        let row = world.state.nodes.find(node).unwrap();
        let delta = Delta { nodes: vec![row], ..Delta::default() };
        beats.observe(&world.state, &delta, deadline);
        assert_eq!(renew(&mut beats, &world, deadline), None, "it is down");
        assert!(beats.overdue.is_empty());
        world.check_replay();
    }

    #[test]
    fn a_clock_that_is_set_makes_nobody_silent() {
        let hour = Duration::from_secs(3_600);
        for by in [hour, Duration(-hour.0)] {
            let (mut beats, start) = (heartbeats(), Time::from_secs(10_000));
            let ttl = beats.heartbeat(node(1), start, &mut Rng::new(1));
            beats.clock_moved(by);
            let deadline = start.plus(ttl).plus(Duration::from_secs(10)).plus(by);
            assert_eq!(beats.next_deadline(), Some(deadline));
            assert!(expire(&mut beats, Time(deadline.0 - 1)).is_empty());
            assert_eq!(expire(&mut beats, deadline).len(), 1);
        }
    }

    #[test]
    fn a_node_that_reports_again_loses_its_old_deadline() {
        let mut beats = heartbeats();
        let mut chance = Rng::new(1);
        beats.heartbeat(node(1), Time::ZERO, &mut chance);
        beats.heartbeat(node(1), Time::from_secs(9), &mut chance);
        assert_eq!(beats.len(), 1);
        assert!(beats.next_deadline() >= Some(Time::from_secs(29)));
    }

    #[test]
    fn a_dead_node_is_known_within_25_seconds_whatever_the_size_of_the_fleet() {
        let mut beats = heartbeats();
        let mut chance = Rng::new(7);
        (0..10_000).for_each(|n| {
            beats.heartbeat(node(n), Time::ZERO, &mut chance);
        });
        assert_eq!(expire(&mut beats, Time::from_secs(25)).len(), 10_000);
    }
}

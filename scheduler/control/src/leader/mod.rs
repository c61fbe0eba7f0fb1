//! The leader's duties as one machine, without threads, clock or I/O.
//!
//! Published states, calls of workers and nodes, and the time go in; commands to be decided, evaluations for workers
//! and the next deadline come out. The server's driver and the simulator drive the same machine. A new duty is one
//! file with a [`Controller`] and one entry in [`controller::all`].

pub mod broker;
pub mod controller;
pub mod deadlines;
pub mod deployments;
pub mod drains;
pub mod garbage;
pub mod heartbeats;
pub mod launches;
pub mod locks;
mod ready;

use std::collections::BTreeMap;

use base::{Duration, Rng, Time, Uuid};
use model::{Command, EvalId, JobType, NodeId, SchedulerRules, VariableKey};
use state::{Delta, State};

use broker::{Broker, BrokerSettings, BrokerStats, Delivery, NotHeld, Release};
use controller::Controller;
use garbage::GarbageSettings;
use heartbeats::{HeartbeatSettings, Heartbeats};
use locks::{Locks, NotRenewed};

/// A command that a controller wants decided.
#[derive(Clone, Debug)]
pub struct Order {
    /// The controller: the actor of the command.
    pub by: &'static str,
    pub command: Command,
}

pub struct Leader {
    leading: bool,
    broker: Broker,
    heartbeats: Heartbeats,
    locks: Locks,
    others: Vec<Box<dyn Controller>>,
    /// What a new cluster begins with.
    scheduler: SchedulerRules,
    rng: Rng,
}

impl Leader {
    /// `rng` spreads the times to live of nodes and names the deliveries of evaluations.
    pub fn new(
        broker: BrokerSettings,
        heartbeats: HeartbeatSettings,
        garbage: GarbageSettings,
        scheduler: SchedulerRules,
        rng: Rng,
    ) -> Leader {
        Leader {
            leading: false,
            broker: Broker::new(broker),
            heartbeats: Heartbeats::new(heartbeats),
            locks: Locks::default(),
            others: controller::all(garbage),
            scheduler,
            rng,
        }
    }

    /// This server leads from now on: everything before its term is folded into `state`.
    pub fn lead(&mut self, state: &State, now: Time) -> Vec<Order> {
        self.leading = true;
        if state.recording.is_none() {
            self.controllers_mut().for_each(|controller| controller.lead(state, now));
        }
        // The first leader of all gives the cluster its name.
        if !state.cluster.is_nil() {
            return Vec::new();
        }
        let command = Command::FoundCluster { scheduler: self.scheduler.clone() };
        vec![Order { by: "leader", command }]
    }

    pub fn follow(&mut self) {
        self.leading = false;
        self.controllers_mut().for_each(|controller| controller.follow());
    }

    /// A state was published; `delta` says what its batch touched.
    pub fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        if !self.leading {
            return;
        }
        // What is recorded of another cluster is that one's to schedule, to drain and to collect.
        if state.recording.is_some() {
            self.controllers_mut().for_each(|controller| controller.follow());
            return;
        }
        if delta.restored {
            // The state was replaced as a whole: rows are others now.
            self.controllers_mut().for_each(|controller| controller.lead(state, now));
        }
        self.controllers_mut().for_each(|controller| controller.observe(state, delta, now));
    }

    /// The clock was set forward by so much, or back, and no time has passed by that.
    pub fn clock_moved(&mut self, by: Duration) {
        self.controllers_mut().for_each(|controller| controller.clock_moved(by));
    }

    /// The earliest deadline of all controllers, and whose it is.
    pub fn next_deadline(&self) -> Option<(Time, &'static str)> {
        let deadlines = self.controllers().map(|controller| (controller.next_deadline(), controller.name()));
        deadlines.filter_map(|(deadline, name)| Some((deadline?, name))).min()
    }

    /// What has to be decided because its time has come.
    pub fn expire(&mut self, state: &State, now: Time) -> Vec<Order> {
        let Leader { broker, heartbeats, locks, others, rng, .. } = self;
        let mut orders = Vec::new();
        for controller in each_mut(broker, heartbeats, locks, others) {
            let by = controller.name();
            let commands = controller.expire(state, now, rng).into_iter();
            orders.extend(commands.map(|command| Order { by, command }));
        }
        orders
    }

    /// The most urgent evaluations of these types for one worker, at most `max`; none when none is ready.
    pub fn dequeue(&mut self, state: &State, types: &[JobType], max: usize, now: Time) -> Vec<Delivery> {
        self.broker.dequeue(state, types, max, now, &mut self.rng)
    }

    /// A worker is done with some of its evaluations, and gives others back. What is not held any more is passed over: its
    /// end was seen in the log before, or somebody else has it.
    pub fn release(&mut self, state: &State, release: &Release, now: Time) -> Vec<Order> {
        for Delivery { eval, token, .. } in &release.done {
            let _ended = self.ack(state, *eval, *token, now);
        }
        let back = release.back.iter();
        back.filter_map(|Delivery { eval, token, .. }| self.nack(*eval, *token, now).ok().flatten()).collect()
    }

    /// Which of its evaluations a worker still has.
    pub fn touch_all(&mut self, deliveries: &[Delivery], now: Time) -> Vec<bool> {
        deliveries.iter().map(|one| self.touch(one.eval, one.token, now).is_ok()).collect()
    }

    /// # Errors
    /// [`NotHeld`]: the evaluation was taken away from the worker.
    pub fn touch(&mut self, eval: EvalId, token: u64, now: Time) -> Result<(), NotHeld> {
        self.broker.touch(eval, token, now)
    }

    /// # Errors
    /// [`NotHeld`]: the end of the evaluation was seen in the log before the worker reported it, or somebody else
    /// has it.
    pub fn ack(&mut self, state: &State, eval: EvalId, token: u64, now: Time) -> Result<(), NotHeld> {
        self.broker.ack(state, eval, token, now)
    }

    /// # Errors
    /// [`NotHeld`]: the worker did not have it.
    pub fn nack(&mut self, eval: EvalId, token: u64, now: Time) -> Result<Option<Order>, NotHeld> {
        let failed = self.broker.nack(eval, token, now, &mut self.rng)?;
        Ok(failed.map(|command| Order { by: self.broker.name(), command }))
    }

    /// A node sent a heartbeat, and what it reported was decided. Returns how long it may be silent now; `None` when this server
    /// does not lead.
    pub fn heartbeat(&mut self, node: NodeId, now: Time) -> Option<Duration> {
        self.leading.then(|| self.heartbeats.heartbeat(node, now, &mut self.rng))
    }

    /// A node says that it is ready: how long it may be silent now. `None` when that changes something, which has to be decided
    /// first, or this server does not lead.
    pub fn renew_heartbeat(&mut self, state: &State, node: NodeId, now: Time) -> Option<Duration> {
        if !self.leading {
            return None;
        }
        self.heartbeats.renew(state, node, now, &mut self.rng)
    }

    /// The holder of a variable's lock goes on holding it; `None` when this server does not lead.
    pub fn renew_lock(
        &mut self,
        state: &State,
        key: &VariableKey,
        lock: Uuid,
        now: Time,
    ) -> Option<Result<(), NotRenewed>> {
        self.leading.then(|| self.locks.renew(state, key, lock, now))
    }

    pub fn broker_stats(&self) -> BrokerStats {
        self.broker.stats()
    }

    pub fn broker_stats_by_type(&self) -> BTreeMap<JobType, (usize, usize)> {
        self.broker.stats_by_type()
    }

    /// How long the evaluation waits for a worker that waits the longest.
    pub fn longest_wait(&self, now: Time) -> Duration {
        self.broker.longest_wait(now)
    }

    /// What makes more evaluations should wait.
    pub fn is_behind(&self, state: &State, now: Time) -> bool {
        self.leading && self.broker.is_behind(state, now)
    }

    /// Nodes whose heartbeats are waited for.
    pub fn heartbeats_tracked(&self) -> usize {
        self.heartbeats.len()
    }

    /// All controllers, in the order in which they are called.
    pub fn controllers_mut(&mut self) -> impl Iterator<Item = &mut (dyn Controller + 'static)> {
        each_mut(&mut self.broker, &mut self.heartbeats, &mut self.locks, &mut self.others)
    }

    fn controllers(&self) -> impl Iterator<Item = &(dyn Controller + 'static)> {
        let called: [&dyn Controller; 3] = [&self.broker, &self.heartbeats, &self.locks];
        called.into_iter().chain(self.others.iter().map(|other| &**other))
    }
}

fn each_mut<'a>(
    broker: &'a mut Broker,
    heartbeats: &'a mut Heartbeats,
    locks: &'a mut Locks,
    others: &'a mut [Box<dyn Controller>],
) -> impl Iterator<Item = &'a mut (dyn Controller + 'static)> {
    let called: [&'a mut (dyn Controller + 'static); 3] = [broker, heartbeats, locks];
    called.into_iter().chain(others.iter_mut().map(|other| &mut **other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader() -> Leader {
        let (broker, heartbeats) = (BrokerSettings::default(), HeartbeatSettings::default());
        Leader::new(broker, heartbeats, GarbageSettings::default(), SchedulerRules::default(), Rng::new(1))
    }

    #[test]
    fn the_first_leader_of_all_founds_the_cluster() {
        let mut leader = leader();
        leader.scheduler.pause_eval_broker = true;
        let orders = leader.lead(&State::default(), Time::ZERO);
        let begins_paused = |order: &Order| matches!(&order.command, Command::FoundCluster { scheduler } if scheduler.pause_eval_broker);
        assert!(orders.iter().all(begins_paused), "with the configuration of this server");
        assert!(
            matches!(orders[..], [Order { by: "leader", command: Command::FoundCluster { .. } }]),
            "{orders:?}"
        );
    }

    #[test]
    fn only_a_leader_counts_heartbeats_and_its_deadline_names_them() {
        let mut leader = leader();
        let node = NodeId(7.into());
        assert_eq!(leader.heartbeat(node, Time::ZERO), None);
        let _found = leader.lead(&State::default(), Time::ZERO);
        let ttl = leader.heartbeat(node, Time::ZERO).unwrap();
        let deadline = Time::ZERO.plus(ttl).plus(Duration::from_secs(10));
        assert_eq!(leader.next_deadline(), Some((deadline, "heartbeats")));
        let orders = leader.expire(&State::default(), deadline);
        assert!(matches!(orders[..], [Order { by: "heartbeats", command: Command::MissHeartbeat { .. } }]));
        leader.follow();
        assert_eq!((leader.next_deadline(), leader.heartbeats_tracked()), (None, 0));
    }

    #[test]
    fn controllers_have_names_of_their_own() {
        let mut leader = leader();
        let mut names: Vec<&str> = leader.controllers_mut().map(|controller| controller.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

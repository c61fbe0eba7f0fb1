//! A small cluster in which everything takes its time and comes in any order: several workers with states that grow old,
//! nodes that are late. What a fork says is compared with what happens in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Duration, Rng, Time};
use control::leader::{Leader, Order};
use control::worker::{Need, Outcome, TYPES, Worker};
use control::{BrokerSettings, GarbageSettings, HeartbeatSettings, Receipt, SubmitError};
use model::command::RegisterJob;
use model::document::{AllocDeploymentStatus, Allocation, Job, Node, TaskState, input};
use model::{Actor, AllocId, ClientStatus, Command, Desired, NodeStatus, Rejection, SchedulerRules};
use serde_json::json;
use state::State;
use state::alloc::Alloc;
use test_world::{World, node_document, node_id};

pub struct Cluster {
    pub world: World,
    leader: Leader,
    workers: Vec<(Worker, Option<Need>)>,
    /// When a node comes to do what it is asked.
    due: BTreeMap<(AllocId, &'static str), Time>,
    rng: Rng,
}

const HOUR: Duration = Duration::from_secs(3600);

impl Cluster {
    pub fn new(seed: u64) -> Cluster {
        let broker = BrokerSettings { nack_timeout: HOUR, ..BrokerSettings::default() };
        let forever = Duration(HOUR.0 * 24 * 365);
        let heartbeats = HeartbeatSettings { min_ttl: forever, grace: forever, failover_ttl: forever };
        let (garbage, rules) =
            (GarbageSettings { every: forever, ..Default::default() }, SchedulerRules::default());
        let mut rng = Rng::new(seed);
        let leader = Leader::new(broker, heartbeats, garbage, rules, Rng::new(rng.next()));
        let workers = (0..3).map(|_| {
            let mut worker = Worker::new(Rng::new(rng.next()));
            assert!(matches!(worker.begin(), Need::Dequeue));
            (worker, None)
        });
        let workers = workers.collect();
        let mut cluster = Cluster { world: World::new(), leader, workers, due: BTreeMap::new(), rng };
        let orders = cluster.leader.lead(&cluster.world.state, cluster.world.now);
        cluster.carry_out(orders);
        cluster
    }

    pub fn state(&self) -> Arc<State> {
        Arc::new(self.world.state.clone())
    }

    pub fn node(&mut self, number: u128, change: impl FnOnce(&mut Node)) {
        let mut document = node_document(number, &format!("r{number}"));
        change(&mut document);
        self.submit(Command::RegisterNode { document: Box::new(document) });
        let (node, claimed) = (node_id(number), NodeStatus::Ready);
        self.decide(Actor::Node(node), Command::UpdateNodeStatus { node, claimed }).unwrap();
    }

    pub fn register(&mut self, job: Job) {
        self.submit(Command::RegisterJob(Box::new(RegisterJob::new(job))));
    }

    pub fn submit(&mut self, command: Command) {
        self.decide(Actor::ANONYMOUS, command).unwrap();
    }

    fn decide(&mut self, actor: Actor, command: Command) -> Result<Receipt, Rejection> {
        let (mut before, known) = (self.world.state.clone(), self.world.log.len());
        let decision = self.world.submit_as(actor, command)?;
        let wrote = self.world.log.len() > known;
        if wrote {
            let delta = before.apply(&self.world.log[known]).unwrap();
            self.leader.observe(&self.world.state, &delta, self.world.now);
        }
        let index = self.world.state.index;
        Ok(Receipt { index, time: self.world.now, wrote, reply: decision.reply() })
    }

    /// Until nothing is left to be done.
    pub fn settle(&mut self) {
        for _ in 0..200_000 {
            let worked = self.a_worker();
            let reported = self.rng.below(3) == 0 && self.a_node();
            if worked || reported || self.a_node() {
                continue;
            }
            let nodes = self.due.values().min().copied();
            let leader = self.leader.next_deadline().map(|(due, _)| due);
            let horizon = self.world.now.plus(Duration(HOUR.0 * 24));
            let Some(next) = nodes.into_iter().chain(leader).min().filter(|next| *next < horizon) else {
                return;
            };
            self.world.now = self.world.now.max(next);
            let orders = self.leader.expire(&self.world.state, self.world.now);
            self.carry_out(orders);
        }
        panic!("it does not come to rest");
    }

    fn carry_out(&mut self, orders: Vec<Order>) {
        for Order { by, command } in orders {
            self.decide(Actor::Server(by.into()), command).ok();
        }
    }

    /// One worker takes one step: which, chance says.
    fn a_worker(&mut self) -> bool {
        let first = self.rng.below(self.workers.len() as u64) as usize;
        (0..self.workers.len()).any(|turn| self.step((first + turn) % self.workers.len()))
    }

    fn step(&mut self, which: usize) -> bool {
        let need = self.workers[which].1.take();
        let now = self.world.now;
        let outcome = match need.unwrap_or(Need::Dequeue) {
            Need::Dequeue => {
                let max = 1 + self.rng.below(3) as usize;
                let deliveries = self.leader.dequeue(&self.world.state, &TYPES, max, now);
                if deliveries.is_empty() {
                    return false;
                }
                Outcome::Dequeued(deliveries)
            }
            Need::State { .. } => Outcome::State(Arc::new(self.world.state.clone())),
            Need::Schedule(_) => Outcome::Go,
            Need::Touch(deliveries) => Outcome::Held(self.leader.touch_all(&deliveries, now)),
            Need::Submit(settlements) => {
                let settled = settlements.into_iter().map(|settlement| {
                    let command = Command::SettleEval(Box::new(settlement));
                    self.decide(Actor::Server("worker".into()), command).map_err(SubmitError::Rejected)
                });
                Outcome::Submitted(settled.collect())
            }
            Need::Release(release) => {
                let orders = self.leader.release(&self.world.state, &release, now);
                self.carry_out(orders);
                Outcome::Done
            }
        };
        self.workers[which].1 = Some(self.workers[which].0.step(outcome, now));
        true
    }

    /// One node reports one thing that has become due, if there is any.
    fn a_node(&mut self) -> bool {
        let now = self.world.now;
        let asked: Vec<_> =
            self.world.state.allocs.iter().filter_map(|(_, alloc)| asked(&self.world.state, alloc)).collect();
        let mut ready = Vec::new();
        let mut due = BTreeMap::new();
        for (key, least) in asked {
            let chosen = || now.plus(least).plus(Duration::from_millis(self.rng.below(3_000) as i64));
            let moment = self.due.get(&key).copied().unwrap_or_else(chosen);
            due.insert(key, moment);
            ready.extend((moment <= now).then_some(key));
        }
        self.due = due;
        if ready.is_empty() {
            return false;
        }
        let chosen = ready[self.rng.below(ready.len() as u64) as usize];
        self.due.remove(&chosen);
        self.report(chosen.0, chosen.1);
        true
    }

    fn report(&mut self, id: AllocId, act: &str) {
        let alloc = self.world.state.allocs.lookup(id).unwrap();
        let (node, now) = (alloc.node_id, self.world.now);
        let healthy =
            AllocDeploymentStatus { healthy: Some(true), timestamp: now.into(), ..Default::default() };
        let state = if act == "end" { "dead" } else { "running" };
        let task = TaskState { state: state.to_string(), started_at: now.into(), ..TaskState::default() };
        let update = Allocation {
            id: id.to_string(),
            client_status: if act == "end" { "complete" } else { "running" }.to_string(),
            task_states: [("t".to_string(), task)].into_iter().collect(),
            deployment_status: (act == "be healthy").then_some(healthy),
            ..Allocation::default()
        };
        self.decide(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] }).unwrap();
    }
}

/// What a node is asked to do about an allocation, and how long that takes at least.
fn asked(state: &State, alloc: &Alloc) -> Option<((AllocId, &'static str), Duration)> {
    if state.nodes.hot(alloc.node).status.is_silent() || alloc.client.is_terminal() {
        return None;
    }
    match (alloc.desired, alloc.client) {
        (Desired::Run, ClientStatus::Pending) => Some(((alloc.id, "run"), Duration::ZERO)),
        (Desired::Run, _) if alloc.health.healthy.is_none() && !alloc.version.kind.is_batch() => {
            Some(((alloc.id, "be healthy"), Duration::from_secs(10)))
        }
        (Desired::Run, _) => None,
        (_, _) => Some(((alloc.id, "end"), Duration::ZERO)),
    }
}

/// The names of allocations that run, with their nodes.
pub fn running(state: &State) -> BTreeMap<String, Vec<String>> {
    let mut running: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, alloc) in state.allocs.iter().filter(|(_, alloc)| !alloc.is_terminal()) {
        let node = state.nodes.cold(alloc.node).document.name.clone();
        running.entry(alloc.name()).or_default().push(node);
    }
    running
}

/// A service of so many allocations, each of this size.
pub fn service(name: &str, count: i64, memory: i64, change: impl FnOnce(&mut serde_json::Value)) -> Job {
    let mut document = json!({
        "ID": name, "Name": name, "Namespace": "default", "Type": "service", "Priority": 50,
        "Datacenters": ["*"], "NodePool": "default",
        "TaskGroups": [{
            "Name": "g", "Count": count,
            "ReschedulePolicy": {"Unlimited": true, "Delay": "30s", "DelayFunction": "constant"},
            "Tasks": [{"Name": "t", "Driver": "none", "Resources": {"CPU": 100, "MemoryMB": memory}}],
        }],
    });
    change(&mut document);
    input::from_value(document).expect("the job is well formed")
}

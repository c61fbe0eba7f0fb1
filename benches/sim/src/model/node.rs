//! A node: the agent's loops as a machine, over the agent's own update queue, restart policy and statuses.
//!
//! It follows `client/node/src/{heartbeat,pull,allocs}.rs`: registers, beats, pulls what it is assigned, runs it and
//! reports what became of it. Tasks are in `task.rs`.

use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Rng, Time};
use control::{LeaderAnswer, SubmitError};
use model::document::Allocation;
use model::{Actor, Command, NodeId, NodeStatus, Rejection, Request};
use node::alloc::status;
use node::store::Store;
use node::updates::Updates;
use node::{Missed, wait_after_miss};

use super::call::{Ask, Reply};
use super::task::{Phase, Run};
use crate::clock::SimClock;
use crate::options::Tasks;
use crate::workload::nodes;

/// How often updates are looked at.
const UPDATE_EVERY: Duration = Duration::from_millis(200);
/// Looks without anything to send after which nothing waits.
const IDLE_LOOKS: u32 = 6;

/// The loops of the agent: each has at most one question on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loop {
    Beat,
    Pull,
    Updates,
}

/// What an agent wants to be called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Go(Loop),
    /// No answer came.
    TimedOut(Loop, u64),
    /// Something of an allocation is due.
    Task {
        alloc: String,
        generation: u64,
    },
    /// The health of an allocation can be judged, unless its task has changed since.
    Health {
        alloc: String,
        generation: u64,
    },
}

pub enum NodeOut {
    Ask { of: Loop, ask: Ask, within: Duration },
    After { span: Duration, step: Step },
}

/// What was assigned, on its way to be fetched.
struct Fetching {
    index: u64,
    assigned: BTreeMap<String, u64>,
    wanted: usize,
}

pub struct SimNode {
    pub number: usize,
    pub id: NodeId,
    pub up: bool,
    pub life: u64,
    pub clock: SimClock,
    /// The server it talks to.
    pub server: usize,
    pub revision: u64,
    pub pending: BTreeMap<Loop, u64>,
    pub runs: BTreeMap<String, Run>,
    pub out: Vec<NodeOut>,
    servers: usize,
    seed: u64,
    registered: bool,
    /// By the clock that only runs.
    last_ok: Option<(Time, Duration)>,
    contacted: bool,
    min_index: u64,
    fetching: Option<Fetching>,
    /// Pulling waits for contact with the servers.
    pull_waits: bool,
    settled: BTreeSet<String>,
    updates: Updates,
    sending: Vec<Allocation>,
    idle_looks: u32,
    looking: bool,
    /// Survives the agent, as its store does.
    acknowledged: BTreeMap<String, Allocation>,
    pub chance: Rng,
}

impl SimNode {
    pub fn new(number: usize, seed: u64, now: Time, servers: usize) -> SimNode {
        let mut chance = Rng::stream(seed ^ number as u64, "agent");
        SimNode {
            number,
            id: nodes::id(number),
            up: true,
            life: 0,
            clock: SimClock::new(now),
            server: chance.below(servers as u64) as usize,
            revision: 0,
            pending: BTreeMap::new(),
            runs: BTreeMap::new(),
            out: Vec::new(),
            servers,
            seed,
            registered: false,
            last_ok: None,
            contacted: false,
            min_index: 0,
            fetching: None,
            pull_waits: false,
            settled: BTreeSet::new(),
            updates: Updates::new(Store::disabled()),
            sending: Vec::new(),
            idle_looks: 0,
            looking: false,
            acknowledged: BTreeMap::new(),
            chance,
        }
    }

    pub fn start(&mut self) {
        let first = Duration(self.chance.below(2_000_000_000) as i64);
        self.after(first, Step::Go(Loop::Beat));
    }

    /// The agent ends; its tasks go on, unless the machine went down with it.
    pub fn stop(&mut self, with_tasks: bool) {
        (self.up, self.registered, self.contacted) = (false, false, false);
        self.life += 1;
        (self.last_ok, self.fetching, self.min_index) = (None, None, 0);
        (self.pull_waits, self.looking, self.idle_looks) = (false, false, 0);
        self.pending.clear();
        self.sending.clear();
        self.settled.clear();
        self.updates = Updates::new(Store::disabled());
        for run in self.runs.values_mut() {
            run.agent_ended(with_tasks);
        }
    }

    /// A new agent finds what the one before it left.
    pub fn start_again(&mut self, now: Time, tasks: &Tasks) {
        self.up = true;
        for acknowledged in self.acknowledged.values() {
            self.updates.restore(acknowledged.clone());
        }
        for id in self.runs.keys().cloned().collect::<Vec<_>>() {
            self.run(&id, now, |run, chance, now| run.restore(chance, tasks, now));
        }
        self.start();
    }

    /// Another description of itself, as after a change of its configuration: the agent registers again.
    pub fn change(&mut self) {
        self.revision += 1;
        self.registered = false;
        self.go(Loop::Beat);
    }

    pub fn step(&mut self, step: Step, now: Time, tasks: &Tasks) {
        match step {
            Step::Go(of) if self.pending.contains_key(&of) => {}
            Step::Go(Loop::Beat) => self.beat(),
            Step::Go(Loop::Pull) => self.pull(),
            Step::Go(Loop::Updates) => self.send_updates(),
            Step::TimedOut(of, number) => {
                if self.pending.get(&of) == Some(&number) {
                    self.hear(of, None, now, tasks);
                }
            }
            Step::Task { alloc, generation } => self.task_step(&alloc, generation, now, tasks),
            Step::Health { alloc, generation } => {
                if self.runs.get(&alloc).is_some_and(|run| run.generation == generation) {
                    self.run(&alloc, now, |_, _, _| None);
                }
            }
        }
    }

    /// The answer to what a loop asked; `None` when there was none.
    pub fn hear(&mut self, of: Loop, reply: Option<Reply>, now: Time, tasks: &Tasks) {
        self.pending.remove(&of);
        if matches!(reply, None | Some(Reply::NoLeader)) {
            self.server = self.chance.below(self.servers as u64) as usize;
        }
        match of {
            Loop::Beat => self.beaten(reply, now),
            Loop::Pull => self.pulled(reply, now, tasks),
            Loop::Updates => self.sent(reply),
        }
    }

    fn beat(&mut self) {
        let node = self.id;
        let command = if self.registered {
            Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }
        } else {
            let document = nodes::document(self.number, self.seed, self.revision);
            Command::RegisterNode { document: Box::new(document) }
        };
        let request = Request::unnamed(Actor::Node(node), command);
        self.ask(Loop::Beat, Ask::Beat(Box::new(request)), Duration::from_secs(10));
    }

    fn beaten(&mut self, reply: Option<Reply>, now: Time) {
        let refused = match reply {
            Some(Reply::Lease { outcome: Ok(_), ttl }) => return self.leased(ttl, now),
            Some(Reply::Lease { outcome: Err(error), .. }) => Some(error),
            Some(Reply::NoLeader) => Some(SubmitError::NotLeading),
            _ => None,
        };
        if matches!(refused, Some(SubmitError::Rejected(Rejection::NodeUnknown(_)))) {
            self.registered = false;
            return self.go(Loop::Beat);
        }
        let since = self.last_ok.map(|(at, ttl)| (self.clock.running(now).since(at).to_std(), ttl.to_std()));
        let no_leader = refused == Some(SubmitError::NotLeading);
        let missed = Missed { dev: false, no_leader, since };
        let wait = wait_after_miss(missed, &mut self.chance);
        self.after(wait.into(), Step::Go(Loop::Beat));
    }

    fn leased(&mut self, ttl: Duration, now: Time) {
        self.last_ok = Some((self.clock.running(now), ttl));
        let first = !self.registered;
        self.registered = true;
        let wait = if first { self.below(Duration(ttl.0 / 2)) } else { ttl };
        self.after(wait, Step::Go(Loop::Beat));
        if !self.contacted || self.pull_waits {
            self.pull_waits = false;
            self.go(Loop::Pull);
        }
    }

    fn pull(&mut self) {
        let (node, min_index) = (self.id, self.min_index);
        let ask = Ask::Assigned { node, min_index, stale: min_index > 0 };
        self.ask(Loop::Pull, ask, Duration::from_secs(150));
    }

    fn pulled(&mut self, reply: Option<Reply>, now: Time, tasks: &Tasks) {
        match reply {
            Some(Reply::Assigned { index, .. }) if index <= self.min_index => {
                self.after(Duration::from_millis(50), Step::Go(Loop::Pull));
            }
            Some(Reply::Assigned { index, allocs }) => {
                let wanted = self.to_fetch(&allocs);
                let newest = wanted.iter().filter_map(|id| allocs.get(id)).max().copied().unwrap_or(1);
                let fetching = Fetching { index, assigned: allocs, wanted: wanted.len() };
                if wanted.is_empty() {
                    return self.apply(fetching, Vec::new(), now, tasks);
                }
                self.fetching = Some(fetching);
                let ask = Ask::Allocs { ids: wanted, min_index: newest.saturating_sub(1) };
                self.ask(Loop::Pull, ask, Duration::from_secs(150));
            }
            Some(Reply::Allocs(found)) => match self.fetching.take() {
                Some(fetching) if found.len() >= fetching.wanted => self.apply(fetching, found, now, tasks),
                // Somebody is between deciding and telling.
                _ => {
                    let wait = Duration::from_secs(2).0 + self.below(Duration::from_secs(2)).0;
                    self.after(Duration(wait), Step::Go(Loop::Pull));
                }
            },
            _ => {
                self.fetching = None;
                self.pull_waits = true;
                let wait = Duration::from_secs(30).0 + self.below(Duration::from_secs(30)).0;
                self.after(Duration(wait), Step::Go(Loop::Pull));
            }
        }
    }

    fn to_fetch(&self, assigned: &BTreeMap<String, u64>) -> Vec<String> {
        let is_wanted = |id: &String, index: u64| match self.runs.get(id) {
            Some(run) => run.alloc.alloc_modify_index < index,
            None => !self.settled.contains(id),
        };
        assigned.iter().filter(|(id, index)| is_wanted(id, **index)).map(|(id, _)| id.clone()).collect()
    }

    fn apply(&mut self, fetching: Fetching, fetched: Vec<Allocation>, now: Time, tasks: &Tasks) {
        let Fetching { index, assigned, .. } = fetching;
        self.settled.retain(|id| assigned.contains_key(id));
        for id in self.runs.keys().filter(|id| !assigned.contains_key(*id)).cloned().collect::<Vec<_>>() {
            self.runs.remove(&id);
            self.updates.forget(&id);
            self.acknowledged.remove(&id);
        }
        for alloc in fetched {
            let id = alloc.id.clone();
            if self.runs.contains_key(&id) {
                let back = self.runs.get_mut(&id).is_some_and(|run| run.is_back(&alloc));
                self.run(&id, now, |run, chance, now| run.update(alloc, chance, tasks, now));
                if back {
                    self.say_again(&id);
                }
            } else if status::is_terminal(&alloc.client_status) {
                self.settled.insert(id);
            } else {
                let waits = self.runs.get(&alloc.previous_allocation).is_some_and(|run| !run.is_done());
                self.runs.insert(id.clone(), Run::new(alloc, self.seed, now));
                self.run(&id, now, |run, chance, _| run.begin(waits, chance, tasks));
            }
        }
        self.min_index = index;
        self.contacted = true;
        self.look();
        self.go(Loop::Pull);
    }

    fn task_step(&mut self, id: &str, generation: u64, now: Time, tasks: &Tasks) {
        if self.runs.get(id).is_some_and(|run| run.generation == generation) {
            self.run(id, now, |run, chance, now| run.step(chance, tasks, now));
        }
    }

    /// Changes one allocation's run, and does what follows.
    fn run(
        &mut self,
        id: &str,
        now: Time,
        change: impl FnOnce(&mut Run, &mut Rng, Time) -> Option<Duration>,
    ) {
        let clock = self.clock.shows(now);
        let Some(run) = self.runs.get_mut(id) else { return };
        let due = change(run, &mut self.chance, clock);
        let generation = run.generation;
        let judged_in = run.judge(clock);
        let update = run.report(&self.id.to_string());
        let done = run.phase == Phase::Done;
        if let Some(span) = due {
            self.after(span, Step::Task { alloc: id.to_string(), generation });
        }
        if let Some(span) = judged_in {
            self.after(span, Step::Health { alloc: id.to_string(), generation });
        }
        if let Some(update) = update {
            self.updates.put(update);
            self.look();
        }
        if done {
            self.follow(id, now);
        }
    }

    /// What waited for this allocation's end may begin.
    fn follow(&mut self, ended: &str, now: Time) {
        let waits = |run: &Run| run.phase == Phase::Waiting && run.alloc.previous_allocation == ended;
        let next = self.runs.iter().find(|(_, run)| waits(run)).map(|(id, _)| id.clone());
        if let Some(next) = next {
            self.run(&next, now, |run, chance, _| run.begin(false, chance, &Tasks::instant()));
        }
    }

    /// The servers had lost sight of this node: they hear at once how things are.
    fn say_again(&mut self, id: &str) {
        let Some(run) = self.runs.get_mut(id) else { return };
        self.updates.put_again(run.update_now(&self.id.to_string()));
        self.look();
    }

    /// Updates are looked at while there may be any.
    fn look(&mut self) {
        self.idle_looks = 0;
        if !self.looking && self.up && self.contacted {
            self.looking = true;
            self.after(UPDATE_EVERY, Step::Go(Loop::Updates));
        }
    }

    fn send_updates(&mut self) {
        let batch = self.updates.take();
        if batch.is_empty() {
            self.idle_looks += 1;
            self.looking = self.idle_looks < IDLE_LOOKS;
            if self.looking {
                self.after(UPDATE_EVERY, Step::Go(Loop::Updates));
            }
            return;
        }
        self.sending = batch.clone();
        let command = Command::UpdateAllocs { node: self.id, updates: batch };
        let request = Request::unnamed(Actor::Node(self.id), command);
        self.ask(Loop::Updates, Ask::submit(request), Duration::from_secs(10));
    }

    fn sent(&mut self, reply: Option<Reply>) {
        let batch = std::mem::take(&mut self.sending);
        if matches!(reply, Some(Reply::Leader(LeaderAnswer::Submitted(Ok(_))))) {
            for update in &batch {
                if self.runs.contains_key(&update.id) {
                    self.acknowledged.insert(update.id.clone(), update.clone());
                }
            }
            self.updates.acknowledge(batch);
            self.idle_looks = 0;
            return self.after(UPDATE_EVERY, Step::Go(Loop::Updates));
        }
        self.updates.put_back(batch);
        let wait = Duration::from_secs(5).0 + self.below(Duration::from_secs(5)).0;
        self.after(Duration(wait), Step::Go(Loop::Updates));
    }

    fn go(&mut self, of: Loop) {
        self.after(Duration::from_millis(10), Step::Go(of));
    }

    fn below(&mut self, bound: Duration) -> Duration {
        Duration(self.chance.below(bound.0.max(1) as u64) as i64)
    }

    fn ask(&mut self, of: Loop, ask: Ask, within: Duration) {
        self.out.push(NodeOut::Ask { of, ask, within });
    }

    fn after(&mut self, span: Duration, step: Step) {
        self.out.push(NodeOut::After { span, step });
    }
}

//! One server: the real replica, leader and feed, driven by the agenda instead of threads and a clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{Duration, Index, Rng, Term, Time, Uuid};
use control::broker::{BrokerSettings, Delivery};
use control::heartbeats::HeartbeatSettings;
use control::lanes::{Lane, Lanes};
use control::leader::controller::Controller;
use control::leader::{Leader, Order};
use control::replica::{Effect, Notice, Replica};
use control::sequencer::{Published, Submission};
use control::{GarbageSettings, LeaderAnswer, LeaderCall, Receipt, SubmitError};
use feed::Feed;
use model::{Actor, AllocId, Command, JobType, NodeId, NodeStatus, Request, SchedulerRules};
use parking_lot::Mutex;
use state::State;

use super::call::{Ask, Call, Reply};
use super::images::Images;
use super::log::ModelLog;
use crate::clock::SimClock;
use crate::planted::Bug;
use crate::shown::{Committed, Shelf, Shown};

/// How long a node's query is held open.
const QUERY_HOLD: Duration = Duration::from_secs(120);

type Done = Arc<Mutex<Vec<(u64, LeaderAnswer)>>>;

/// What a server did, for the world around it.
pub enum Out {
    Published {
        state: Arc<State>,
        decided: bool,
    },
    /// It begins with the state of its image.
    Restored(Arc<State>),
    Reply {
        call: Call,
        reply: Reply,
    },
    Forward(Call),
    Heartbeat {
        node: NodeId,
        at: Time,
        ttl: Duration,
    },
    GivenUp {
        node: NodeId,
        at: Time,
    },
    CountsAnew {
        at: Time,
    },
    Delivered(Delivery),
    Proposed {
        index: Index,
        term: Term,
    },
    Leads(Term),
    Follows,
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    pub heartbeats: HeartbeatSettings,
    pub broker: BrokerSettings,
    /// Commands decided in one batch at most.
    pub batch_max: u64,
    /// Batches from one image of its state to the next; never any if it is zero.
    pub image_every: u64,
    pub bug: Option<Bug>,
}

/// A node's query that is answered when there is something newer, or when its time is over.
struct Query {
    call: Call,
    until: Time,
    /// How many allocations it has seen.
    known: Option<usize>,
}

/// A worker's call for an evaluation.
struct Dequeue {
    call: Call,
    types: Vec<JobType>,
    max: usize,
    until: Time,
}

pub struct Server {
    pub number: usize,
    pub up: bool,
    pub paused: bool,
    /// Counts its starts: what was meant for an earlier life is void.
    pub life: u64,
    pub clock: SimClock,
    pub notices: VecDeque<Notice>,
    /// Batches of the log that it knows.
    pub learned: usize,
    /// The term that it was last notified to lead in, unless it was notified that it leads no more.
    pub notified: Option<Term>,
    pub published: Arc<State>,
    pub feed: Feed,
    pub out: Vec<Out>,
    replica: Replica,
    leader: Leader,
    lanes: Lanes<Submission>,
    rng: Rng,
    seeds: Rng,
    calls: BTreeMap<u64, Call>,
    done: Done,
    queries: Vec<Query>,
    dequeues: VecDeque<Dequeue>,
    shown: Arc<Shown>,
    /// On its disk: what a crash leaves.
    images: Images,
    settings: ServerSettings,
    number_in_log: Uuid,
}

impl Server {
    pub fn new(
        number: usize,
        seed: u64,
        now: Time,
        committed: &Committed,
        settings: ServerSettings,
    ) -> Server {
        let number_in_log = Rng::stream(seed, &format!("server {number}")).uuid();
        let (shown, feed) = show(committed);
        let mut rng = Rng::stream(seed, &format!("chance of server {number}"));
        Server {
            number,
            up: true,
            paused: false,
            life: 0,
            clock: SimClock::new(now),
            notices: VecDeque::new(),
            learned: 0,
            notified: None,
            published: Arc::default(),
            feed,
            out: Vec::new(),
            replica: replica(number_in_log, &settings),
            leader: leader(&settings, &mut rng),
            lanes: Lanes::default(),
            rng,
            seeds: Rng::stream(seed, &format!("seeds of server {number}")),
            calls: BTreeMap::new(),
            done: Done::default(),
            queries: Vec::new(),
            dequeues: VecDeque::new(),
            shown,
            images: Images::default(),
            settings,
            number_in_log,
        }
    }

    /// Everything that was in memory is lost.
    pub fn crash(&mut self, committed: &Committed) {
        (self.shown, self.feed) = show(committed);
        self.replica = replica(self.number_in_log, &self.settings);
        self.leader = leader(&self.settings, &mut self.rng);
        self.lanes = Lanes::default();
        self.calls.clear();
        self.done = Done::default();
        self.queries.clear();
        self.dequeues.clear();
        self.notices.clear();
        (self.learned, self.notified) = (0, None);
        self.published = Arc::default();
        self.images.forget_maker();
        (self.up, self.paused) = (false, false);
        self.life += 1;
    }

    /// It starts, from its image if it has kept one.
    pub fn start(&mut self) {
        self.up = true;
        if let Some(image) = self.images.newest() {
            self.learned = image.index.0 as usize;
            self.notices.push_back(Notice::Restored(image));
        }
    }

    pub fn leads(&self) -> bool {
        self.replica.leads()
    }

    /// Its own idea of the time.
    pub fn clock(&self, now: Time) -> Time {
        self.clock.shows(now)
    }

    /// Sets its clock so far ahead of the true time. Returns by how much that moved it.
    pub fn set_clock(&mut self, now: Time, ahead: Duration) -> Duration {
        let by = self.clock.set(now, ahead);
        self.leader.clock_moved(by);
        by
    }

    /// Something waits for its sequencer.
    pub fn has_work(&self) -> bool {
        !self.notices.is_empty() || (self.replica.has_room() && !self.lanes.is_empty())
    }

    /// The next deadline of its controllers by its own clock, and whose it is.
    pub fn deadline(&self) -> Option<(Time, &'static str)> {
        self.leader.next_deadline()
    }

    /// When it has to be woken, in true time.
    pub fn next_deadline(&self) -> Option<Time> {
        let own = self.leader.next_deadline().map(|(at, _)| self.clock.due(at));
        let queries = self.queries.iter().map(|query| query.until);
        queries.chain(self.dequeues.iter().map(|dequeue| dequeue.until)).chain(own).min()
    }

    /// One round of the sequencer's thread: what the log says, then new batches.
    ///
    /// # Errors
    /// The server has to stop.
    pub fn turn(&mut self, now: Time, log: &mut ModelLog) -> Result<(), String> {
        while let Some(notice) = self.notices.pop_front() {
            self.notice(notice, now, log)?;
        }
        for effect in self.replica.publish_folded() {
            self.carry_out(effect, false, now, log)?;
        }
        while self.replica.has_room() && (self.replica.holds_over() || !self.lanes.is_empty()) {
            let (clock, mut left) = (self.clock(now), 1 + self.rng.below(self.settings.batch_max));
            let Server { replica, seeds, lanes, .. } = self;
            let next = || {
                left = left.checked_sub(1)?;
                lanes.pop()
            };
            if let Some(effect) = replica.fill(clock, seeds, next) {
                self.carry_out(effect, false, now, log)?;
            }
        }
        self.answer(now);
        Ok(())
    }

    fn notice(&mut self, notice: Notice, now: Time, log: &mut ModelLog) -> Result<(), String> {
        let notice = match (notice, self.settings.bug) {
            (Notice::Committed(batch), Some(Bug::AckBeforeCommit))
                if batch.index() <= self.replica.committed().index =>
            {
                return Ok(());
            }
            (Notice::Committed(batch), Some(bug)) if !self.leads() => {
                Notice::Committed(bug.misread(&batch, self.clock(now), self.number))
            }
            (notice, _) => notice,
        };
        let decided = matches!(notice, Notice::Committed(_));
        for effect in self.replica.notice(notice).map_err(|fatal| fatal.to_string())? {
            self.carry_out(effect, decided, now, log)?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        effect: Effect,
        decided: bool,
        now: Time,
        log: &mut ModelLog,
    ) -> Result<(), String> {
        match effect {
            Effect::Publish(published) => self.publish(published, decided, now),
            Effect::Answer(answers) => answers.give(),
            Effect::AnswerIfLeading(answers) => answers.give_if(log.leads(self.number)),
            Effect::Propose(term, batch) => {
                self.out.push(Out::Proposed { index: batch.index(), term });
                let own = batch.clone();
                if let Err(error) = log.propose(self.number, term, batch) {
                    self.replica.refused(&error.into());
                } else if self.settings.bug == Some(Bug::AckBeforeCommit) {
                    self.notice(Notice::Committed(own), now, log)?;
                }
            }
            Effect::Restored(state) => self.out.push(Out::Restored(state)),
            Effect::Lead(term, state) => self.start_leading(term, &state, now),
            Effect::Follow(_) => self.stop_leading(),
            Effect::Diverged(why) => return Err(why),
        }
        Ok(())
    }

    fn start_leading(&mut self, term: Term, state: &State, now: Time) {
        let clock = self.clock(now);
        let orders = self.leader.lead(state, clock);
        if let Some(Bug::LeadsBlind(name)) = self.settings.bug {
            self.controller(name).lead(&State::default(), clock);
        }
        self.out.push(Out::CountsAnew { at: clock });
        self.submit_orders(orders);
        self.out.push(Out::Leads(term));
    }

    /// For bugs that are planted in one.
    fn controller(&mut self, name: &str) -> &mut dyn Controller {
        let found = self.leader.controllers_mut().find(|controller| controller.name() == name);
        found.expect("the bug names a controller")
    }

    fn stop_leading(&mut self) {
        self.leader.follow();
        while let Some(submission) = self.lanes.pop() {
            (submission.answer)(Err(SubmitError::NotLeading));
        }
        for Dequeue { call, .. } in self.dequeues.drain(..) {
            self.out.push(Out::Reply { call, reply: Reply::NoLeader });
        }
        self.out.push(Out::Follows);
    }

    fn publish(&mut self, published: Published, decided: bool, now: Time) {
        let Published { state, mut delta } = published;
        self.published = state.clone();
        let clock = self.clock(now);
        if let Some(bug) = self.settings.bug {
            bug.overlook(&mut delta);
        }
        self.leader.observe(&state, &delta, clock);
        if let Some(Bug::Forgets(name)) = self.settings.bug {
            self.controller(name).follow();
        }
        self.shown.publish(&state);
        if self.settings.image_every > 0 && state.index.0 >= self.images.index().0 + self.settings.image_every
        {
            self.images.keep(&state);
        }
        self.out.push(Out::Published { state, decided });
        self.answer_queries(now);
        self.deliver(now);
    }

    /// One round of the timers' thread.
    pub fn wake(&mut self, now: Time) {
        let clock = self.clock(now);
        let by = match self.settings.bug {
            Some(Bug::ForeignClock) if self.number == 0 => clock.plus(Duration::from_secs(12)),
            Some(Bug::ForeignSpeed) => clock.plus(now.since(self.clock.running(now))),
            _ => clock,
        };
        let orders = self.leader.expire(&self.published, by);
        for order in &orders {
            if let Command::MissHeartbeat { node } = &order.command {
                self.out.push(Out::GivenUp { node: *node, at: clock });
            }
        }
        self.submit_orders(orders);
        self.deliver(now);
        let (over, left) = self.dequeues.drain(..).partition(|dequeue| dequeue.until <= now);
        self.dequeues = left;
        let over: VecDeque<Dequeue> = over;
        over.into_iter().for_each(|dequeue| self.reply(dequeue.call, LeaderAnswer::DequeuedAll(Vec::new())));
        self.answer_queries(now);
    }

    /// A call arrives.
    pub fn call(&mut self, call: Call, now: Time) {
        if call.ask.needs_leader() && !self.leads() {
            self.out.push(Out::Forward(call));
            return;
        }
        match call.ask.clone() {
            Ask::Leader(question) => self.answer_as_leader(call, question, now),
            Ask::Beat(request) => self.beat(call, *request, now),
            Ask::Assigned { .. } | Ask::Allocs { .. } => {
                self.queries.push(Query { call, until: now.plus(self.clock.takes(QUERY_HOLD)), known: None });
                self.answer_queries(now);
            }
        }
    }

    /// As [`control::Control::answer`] does.
    fn answer_as_leader(&mut self, call: Call, question: LeaderCall, now: Time) {
        let clock = self.clock(now);
        match question {
            LeaderCall::Submit(request) => self.submit(call, *request),
            LeaderCall::Dequeue { types, patience, max } => {
                let until = now.plus(self.clock.takes(patience));
                self.dequeues.push_back(Dequeue { call, types, max, until });
                self.deliver(now);
            }
            LeaderCall::Touch { eval, token } => {
                let held = self.leader.touch(eval, token, clock);
                self.reply(call, LeaderAnswer::Held(held));
            }
            LeaderCall::SubmitAll(requests) => self.submit_all(call, requests),
            LeaderCall::TouchAll(deliveries) => {
                let held = self.leader.touch_all(&deliveries, clock);
                self.reply(call, LeaderAnswer::HeldAll(held));
            }
            LeaderCall::Release(release) => {
                let orders = self.leader.release(&self.published, &release, clock);
                self.reply(call, LeaderAnswer::Released);
                self.submit_orders(orders);
                self.deliver(now);
            }
            LeaderCall::RenewLock { key, lock } => {
                let renewed = self.leader.renew_lock(&self.published, &key, lock, clock);
                self.reply(call, LeaderAnswer::Renewed(renewed));
            }
            LeaderCall::Heartbeat { .. }
            | LeaderCall::RenewHeartbeat { .. }
            | LeaderCall::ReadIndex { .. }
            | LeaderCall::KeepImage
            | LeaderCall::Ack { .. }
            | LeaderCall::Nack { .. } => {
                unreachable!("nobody calls {question:?} in this layer")
            }
        }
    }

    fn reply(&mut self, call: Call, answer: LeaderAnswer) {
        self.out.push(Out::Reply { call, reply: Reply::Leader(answer) });
    }

    fn submit(&mut self, call: Call, request: Request) {
        let (number, done) = (call.number, self.done.clone());
        self.calls.insert(number, call);
        let answer = Box::new(move |outcome| done.lock().push((number, LeaderAnswer::Submitted(outcome))));
        self.queue(Submission { request, answer });
    }

    /// Answered once all are.
    fn submit_all(&mut self, call: Call, requests: Vec<Request>) {
        let number = call.number;
        self.calls.insert(number, call);
        let outcomes = Arc::new(Mutex::new(vec![None; requests.len()]));
        for (position, request) in requests.into_iter().enumerate() {
            let (done, outcomes) = (self.done.clone(), outcomes.clone());
            let answer = Box::new(move |outcome| {
                let mut outcomes = outcomes.lock();
                outcomes[position] = Some(outcome);
                let all: Option<Vec<_>> = outcomes.iter().cloned().collect();
                done.lock().extend(all.map(|all| (number, LeaderAnswer::SubmittedAll(all))));
            });
            self.queue(Submission { request, answer });
        }
    }

    fn queue(&mut self, submission: Submission) {
        let lane = Lane::of(&submission.request.command);
        if let Err(submission) = self.lanes.push(lane, submission) {
            (submission.answer)(Err(SubmitError::Busy));
        }
    }

    fn submit_orders(&mut self, orders: impl IntoIterator<Item = Order>) {
        for Order { by, command } in orders {
            let request = Request::unnamed(Actor::Server(by.to_string()), command);
            let lane = Lane::of(&request.command);
            // A full lane rejects it, and the controller looks again at its next deadline.
            self.lanes.push(lane, Submission { request, answer: Box::new(|_| {}) }).ok();
        }
    }

    /// Answers the queries that have something newer to see, or whose time is over.
    fn answer_queries(&mut self, now: Time) {
        let (published, out) = (&self.published, &mut self.out);
        self.queries.retain_mut(|query| {
            let (newer, reply) = look(published, query);
            let over = newer || query.until <= now;
            if over {
                out.push(Out::Reply { call: query.call.clone(), reply });
            }
            !over
        });
    }

    /// Hands evaluations to the workers that wait for them.
    fn deliver(&mut self, now: Time) {
        let clock = self.clock(now);
        while let Some(first) = self.dequeues.front() {
            let deliveries = self.leader.dequeue(&self.published, &first.types, first.max, clock);
            if deliveries.is_empty() {
                return;
            }
            let Dequeue { call, .. } = self.dequeues.pop_front().expect("the front was just looked at");
            self.out.extend(deliveries.iter().cloned().map(Out::Delivered));
            self.reply(call, LeaderAnswer::DequeuedAll(deliveries));
        }
    }

    /// Sends what the sequencer answered.
    fn answer(&mut self, now: Time) {
        let done = std::mem::take(&mut *self.done.lock());
        for (number, answer) in done {
            let Some(call) = self.calls.remove(&number) else { continue };
            let reply = match (&call.ask, answer) {
                (Ask::Beat(request), LeaderAnswer::Submitted(outcome)) => {
                    let ttl = self.grant(&request.actor, &outcome, now);
                    Reply::Lease { outcome, ttl }
                }
                (_, answer) => Reply::Leader(answer),
            };
            self.out.push(Out::Reply { call, reply });
        }
    }

    /// As `gateway/server/src/rpc/node.rs`: who says again what is known renews without a decision.
    fn beat(&mut self, call: Call, request: Request, now: Time) {
        let clock = self.clock(now);
        let renewed = match request.command {
            Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready } => {
                self.leader.renew_heartbeat(&self.published, node, clock).map(|ttl| (node, ttl))
            }
            _ => None,
        };
        let Some((node, ttl)) = renewed else { return self.submit(call, request) };
        self.out.push(Out::Heartbeat { node, at: clock, ttl });
        let index = self.published.index;
        let receipt = Receipt { index, time: clock, wrote: false, reply: model::Reply::default() };
        self.out.push(Out::Reply { call, reply: Reply::Lease { outcome: Ok(receipt), ttl } });
    }

    /// As `gateway/server/src/rpc/node.rs`: the heartbeats of a node that is down are not counted.
    fn grant(&mut self, actor: &Actor, outcome: &Result<Receipt, SubmitError>, now: Time) -> Duration {
        let (Actor::Node(node), Ok(_)) = (actor, outcome) else { return Duration::ZERO };
        let row = self.published.nodes.find(*node);
        if row.is_none_or(|row| self.published.nodes.hot(row).status == NodeStatus::Down) {
            return Duration::ZERO;
        }
        let clock = self.clock(now);
        let Some(ttl) = self.leader.heartbeat(*node, clock) else { return Duration::ZERO };
        self.out.push(Out::Heartbeat { node: *node, at: clock, ttl });
        ttl
    }
}

/// The answer to a node's query on this state, and whether it is newer than what the node knows.
fn look(state: &State, query: &mut Query) -> (bool, Reply) {
    let newer = |index: u64, known: u64| known == 0 || index > known;
    match &query.call.ask {
        Ask::Assigned { node, min_index, .. } => {
            let (index, allocs) = state::node::assigned(state, *node, &mut query.known);
            let reply = Reply::Assigned { index: index.max(1), allocs: allocs.0.into_iter().collect() };
            (newer(index, *min_index), reply)
        }
        Ask::Allocs { ids, min_index } => {
            let ids = ids.iter().map(|id| id.parse().expect("nodes ask for what they were assigned"));
            let (index, found) = state::alloc::requested(state, &ids.collect::<Vec<AllocId>>());
            let documents = found.iter().map(|alloc| state::alloc::document(state, alloc));
            (newer(index, *min_index), Reply::Allocs(documents.collect()))
        }
        Ask::Leader(_) | Ask::Beat(_) => unreachable!("only queries wait for news"),
    }
}

fn show(committed: &Committed) -> (Arc<Shown>, Feed) {
    let shown = Arc::new(Shown::new(Arc::new(Shelf(committed.clone()))));
    (shown.clone(), shown.feed())
}

fn replica(proposer: Uuid, settings: &ServerSettings) -> Replica {
    Replica::new(proposer, settings.bug.and_then(Bug::rules).unwrap_or(rules::decide))
}

fn leader(settings: &ServerSettings, rng: &mut Rng) -> Leader {
    let garbage = GarbageSettings::default();
    let (broker, heartbeats) = (settings.broker.clone(), settings.heartbeats.clone());
    Leader::new(broker, heartbeats, garbage, SchedulerRules::default(), Rng::new(rng.next()))
}

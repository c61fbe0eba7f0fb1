//! One server: the real sequencer, broker, heartbeats and feed, held together as `control/src/driver.rs` holds
//! them, without its threads and its clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::{Duration, Index, Rng, Term, Time, Uuid};
use control::broker::{Broker, BrokerSettings, Delivery};
use control::heartbeats::{HeartbeatSettings, Heartbeats};
use control::lanes::{Lane, Lanes};
use control::sequencer::{Filled, Published, Sequencer, Submission};
use control::{Receipt, SubmitError};
use http_gateway::events::Feed;
use journal::EncodedBatch;
use model::{Actor, Command, JobType, NodeId, NodeStatus, Request, RequestId};
use parking_lot::Mutex;
use state::{Delta, State};

use super::call::{Ask, Call, Reply};
use super::images::Images;
use super::log::ModelLog;
use super::query;
use crate::planted::Bug;
use crate::shown::{Committed, Shelf, Shown};

const TYPES: [JobType; 4] = [JobType::Service, JobType::Batch, JobType::System, JobType::Sysbatch];
/// How long a question for work is held open.
const DEQUEUE_HOLD: Duration = Duration::from_secs(20);
/// How long a question for news is held open.
const QUERY_HOLD: Duration = Duration::from_secs(120);

type Done = Arc<Mutex<Vec<(u64, Result<Receipt, SubmitError>)>>>;

/// What the log has to say to a server.
pub enum News {
    Committed(EncodedBatch),
    Leading(Term),
    Following,
}

/// What a server did, for the world around it.
pub enum Out {
    Published {
        state: Arc<State>,
        decided: bool,
    },
    /// It begins with the state of its image.
    Restored,
    Reply {
        call: Call,
        reply: Reply,
    },
    Forward(Call),
    Heard {
        node: NodeId,
        at: Time,
        ttl: Duration,
    },
    GivenUp {
        node: NodeId,
        at: Time,
    },
    CountsAnew,
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

/// A question that waits for news.
struct Waiting {
    call: Call,
    until: Time,
    query: query::Query,
}

pub struct Server {
    pub number: usize,
    pub up: bool,
    pub paused: bool,
    /// Counts its starts: what was meant for an earlier life is void.
    pub life: u64,
    /// How far its clock is ahead of the true time.
    pub ahead: Duration,
    pub news: VecDeque<News>,
    /// Batches of the log that it was told of.
    pub learned: usize,
    /// The term it was last told to lead in, unless it was told that it leads no more.
    pub told: Option<Term>,
    pub published: Arc<State>,
    pub feed: Feed,
    pub out: Vec<Out>,
    sequencer: Sequencer,
    lanes: Lanes<Submission>,
    broker: Broker,
    heartbeats: Heartbeats,
    chance: Rng,
    seeds: Rng,
    calls: BTreeMap<u64, Call>,
    done: Done,
    waiting: Vec<Waiting>,
    hungry: VecDeque<(Call, Time)>,
    shown: Arc<Shown>,
    /// On its disk: what a crash leaves.
    images: Images,
    settings: ServerSettings,
    number_in_log: Uuid,
}

impl Server {
    pub fn new(number: usize, seed: u64, committed: &Committed, settings: ServerSettings) -> Server {
        let number_in_log = Rng::stream(seed, &format!("server {number}")).uuid();
        let (shown, feed) = show(committed);
        Server {
            number,
            up: true,
            paused: false,
            life: 0,
            ahead: Duration::ZERO,
            news: VecDeque::new(),
            learned: 0,
            told: None,
            published: Arc::default(),
            feed,
            out: Vec::new(),
            sequencer: sequencer(number_in_log, settings.bug),
            lanes: Lanes::default(),
            broker: Broker::new(settings.broker.clone()),
            heartbeats: Heartbeats::new(settings.heartbeats.clone()),
            chance: Rng::stream(seed, &format!("chance of server {number}")),
            seeds: Rng::stream(seed, &format!("seeds of server {number}")),
            calls: BTreeMap::new(),
            done: Done::default(),
            waiting: Vec::new(),
            hungry: VecDeque::new(),
            shown,
            images: Images::default(),
            settings,
            number_in_log,
        }
    }

    /// Everything that was in memory is lost.
    pub fn crash(&mut self, committed: &Committed) {
        let settings = self.settings.clone();
        (self.shown, self.feed) = show(committed);
        self.sequencer = sequencer(self.number_in_log, settings.bug);
        self.lanes = Lanes::default();
        self.broker = Broker::new(settings.broker);
        self.heartbeats = Heartbeats::new(settings.heartbeats);
        self.calls.clear();
        self.done = Done::default();
        self.waiting.clear();
        self.hungry.clear();
        self.news.clear();
        (self.learned, self.told) = (0, None);
        self.published = Arc::default();
        self.images.forget_maker();
        (self.up, self.paused) = (false, false);
        self.life += 1;
    }

    /// It starts, from its image if it has kept one.
    ///
    /// # Errors
    /// The image cannot be read.
    pub fn start(&mut self) -> Result<(), String> {
        self.up = true;
        let Some(state) = self.images.newest()? else { return Ok(()) };
        self.sequencer.restore(state.clone());
        self.learned = state.index.0 as usize;
        self.published = Arc::new(state);
        self.shown.publish(&self.published);
        self.out.push(Out::Restored);
        Ok(())
    }

    pub fn leads(&self) -> bool {
        self.sequencer.leads()
    }

    /// Its own idea of the time.
    pub fn clock(&self, now: Time) -> Time {
        now.plus(self.ahead)
    }

    /// Something waits for its sequencer.
    pub fn has_work(&self) -> bool {
        !self.news.is_empty() || (self.sequencer.has_room() && !self.lanes.is_empty())
    }

    /// When it has to be woken, in true time.
    pub fn next_deadline(&self) -> Option<Time> {
        let own = self.heartbeats.next_deadline().into_iter().chain(self.broker.next_deadline());
        let own = own.map(|at| Time(at.0 - self.ahead.0)).min();
        let held = self.waiting.iter().map(|waiting| waiting.until);
        held.chain(self.hungry.iter().map(|(_, until)| *until)).chain(own).min()
    }

    /// One round of the sequencer's thread: what the log said, then new batches.
    ///
    /// # Errors
    /// The log does not follow on what was folded.
    pub fn turn(&mut self, now: Time, log: &mut ModelLog) -> Result<(), String> {
        while let Some(news) = self.news.pop_front() {
            self.hear(news, now)?;
        }
        self.publish_folded(now);
        while self.sequencer.has_room() && !self.lanes.is_empty() {
            let (clock, mut left) = (self.clock(now), 1 + self.chance.below(self.settings.batch_max));
            let Server { sequencer, seeds, lanes, .. } = self;
            let next = || {
                left = left.checked_sub(1)?;
                lanes.pop()
            };
            let (term, batch) = match sequencer.fill(clock, seeds, next) {
                Filled::Batch(term, batch) => (term, batch),
                Filled::Answers(answers) => {
                    answers.give_if(log.leads(self.number));
                    continue;
                }
                Filled::Nothing => continue,
            };
            self.out.push(Out::Proposed { index: batch.index(), term });
            let own = batch.clone();
            if let Err(error) = log.propose(self.number, term, batch) {
                self.sequencer.refused(&error.into());
                break;
            }
            if self.settings.bug == Some(Bug::AckBeforeCommit) {
                self.hear(News::Committed(own), now)?;
            }
        }
        self.answer(now);
        Ok(())
    }

    fn hear(&mut self, news: News, now: Time) -> Result<(), String> {
        match news {
            News::Committed(batch) => {
                if self.settings.bug == Some(Bug::AckBeforeCommit)
                    && batch.index() <= self.sequencer.committed().index
                {
                    return Ok(());
                }
                let batch = self.settings.bug.map_or(batch.clone(), |bug| {
                    if self.leads() { batch } else { bug.misread(&batch, self.clock(now), self.number) }
                });
                let own = self.sequencer.commit(&batch).map_err(|damage| damage.to_string())?;
                if let Some((published, answers)) = own {
                    self.publish(published, true, now);
                    answers.give();
                }
            }
            News::Leading(term) => {
                self.publish_folded(now);
                self.sequencer.lead(term);
                self.start_leading(now);
                self.out.push(Out::Leads(term));
            }
            News::Following => {
                self.sequencer.follow();
                self.broker.follow();
                self.heartbeats.clear();
                while let Some(submission) = self.lanes.pop() {
                    (submission.answer)(Err(SubmitError::NotLeading));
                }
                for (call, _) in self.hungry.drain(..) {
                    self.out.push(Out::Reply { call, reply: Reply::NoLeader });
                }
                self.out.push(Out::Follows);
            }
        }
        Ok(())
    }

    fn start_leading(&mut self, now: Time) {
        let clock = self.clock(now);
        let state = self.sequencer.committed().clone();
        if self.settings.bug == Some(Bug::BrokerForgets) {
            self.broker.lead(&State::default(), clock);
        } else {
            self.broker.lead(&state, clock);
        }
        self.heartbeats.rebuild(&state, clock);
        self.out.push(Out::CountsAnew);
        if state.cluster.is_nil() {
            self.submit_and_forget(Command::FoundCluster, "leader");
        }
    }

    fn publish_folded(&mut self, now: Time) {
        if self.published.index < self.sequencer.committed().index {
            let state = Arc::new(self.sequencer.committed().clone());
            self.publish(Published { state, delta: Delta::default() }, false, now);
        }
    }

    fn publish(&mut self, published: Published, decided: bool, now: Time) {
        let Published { state, mut delta } = published;
        self.published = state.clone();
        let clock = self.clock(now);
        if self.settings.bug == Some(Bug::NobodyUnblocks) {
            delta.capacity = false;
        }
        self.broker.observe(&state, &delta, clock);
        for row in &delta.nodes {
            let hot = state.nodes.hot(*row);
            if hot.gone || hot.status == NodeStatus::Down {
                self.heartbeats.forget(state.nodes.cold(*row).id);
            }
        }
        self.shown.publish(&state);
        if self.settings.image_every > 0 && state.index.0 >= self.images.index().0 + self.settings.image_every
        {
            self.images.keep(&state);
        }
        self.out.push(Out::Published { state, decided });
        self.look_again();
        self.feed_workers(now);
    }

    /// One look of the timers' thread.
    pub fn wake(&mut self, now: Time) {
        let clock = self.clock(now);
        let by = match self.settings.bug {
            Some(Bug::ForeignClock) if self.number == 0 => clock.plus(Duration::from_secs(12)),
            _ => clock,
        };
        for command in self.heartbeats.expire(by) {
            if let Command::MissHeartbeat { node } = &command {
                self.out.push(Out::GivenUp { node: *node, at: clock });
            }
            self.submit_and_forget(command, "heartbeats");
        }
        for command in self.broker.expire(&self.published, clock, &mut self.chance) {
            self.submit_and_forget(command, "broker");
        }
        self.feed_workers(now);
        while self.hungry.front().is_some_and(|(_, until)| *until <= now) {
            let (call, _) = self.hungry.pop_front().expect("the front was just looked at");
            self.out.push(Out::Reply { call, reply: Reply::Delivered(None) });
        }
        let over = |waiting: &mut Waiting| waiting.until <= now;
        for mut waiting in self.waiting.extract_if(.., over).collect::<Vec<_>>() {
            let (_, reply) = waiting.query.look(&self.published);
            self.out.push(Out::Reply { call: waiting.call, reply });
        }
    }

    /// A question arrives.
    pub fn ask(&mut self, call: Call, now: Time) {
        if call.ask.needs_leader() && !self.leads() {
            self.out.push(Out::Forward(call));
            return;
        }
        match &call.ask {
            Ask::Submit(request) | Ask::Beat(request) => {
                let request = request.clone();
                self.submit(call, request);
            }
            Ask::Assigned { .. } | Ask::Allocs { .. } => self.query(call, now),
            Ask::Dequeue => {
                self.hungry.push_back((call, now.plus(DEQUEUE_HOLD)));
                self.feed_workers(now);
            }
            Ask::Settle { token, settlement } => {
                if self.broker.touch(settlement.eval, *token, self.clock(now)).is_err() {
                    self.out.push(Out::Reply { call, reply: Reply::TakenAway });
                    return;
                }
                let (command, actor) =
                    (Command::SettleEval(settlement.clone()), Actor::Server("worker".into()));
                let request = Request { id: RequestId::default(), actor, command };
                self.submit(call, request);
            }
            Ask::Ack { eval, token } => {
                let held = self.broker.ack(&self.published, *eval, *token, self.clock(now));
                self.out.push(Out::Reply { call, reply: Reply::Held(held) });
                self.feed_workers(now);
            }
            Ask::Nack { eval, token } => {
                let clock = self.clock(now);
                let held = self.broker.nack(*eval, *token, clock, &mut self.chance);
                let reply = Reply::Held(held.as_ref().map(|_| ()).map_err(|error| *error));
                self.out.push(Out::Reply { call, reply });
                if let Ok(Some(command)) = held {
                    self.submit_and_forget(command, "broker");
                }
            }
        }
    }

    fn submit(&mut self, call: Call, request: Request) {
        let (number, done) = (call.number, self.done.clone());
        self.calls.insert(number, call);
        let answer = Box::new(move |outcome| done.lock().push((number, outcome)));
        let lane = Lane::of(&request.command);
        if let Err(submission) = self.lanes.push(lane, Submission { request, answer }) {
            (submission.answer)(Err(SubmitError::Busy));
        }
    }

    fn submit_and_forget(&mut self, command: Command, name: &str) {
        let request = Request { id: RequestId::default(), actor: Actor::Server(name.to_string()), command };
        let lane = Lane::of(&request.command);
        // A full lane refuses, and a controller looks again at its next deadline.
        self.lanes.push(lane, Submission { request, answer: Box::new(|_| {}) }).ok();
    }

    fn query(&mut self, call: Call, now: Time) {
        let mut query = query::Query::of(&call.ask);
        let (over, reply) = query.look(&self.published);
        if over {
            self.out.push(Out::Reply { call, reply });
        } else {
            self.waiting.push(Waiting { call, until: now.plus(QUERY_HOLD), query });
        }
    }

    fn look_again(&mut self) {
        let (published, out) = (&self.published, &mut self.out);
        self.waiting.retain_mut(|waiting| {
            let (over, reply) = waiting.query.look(published);
            if over {
                out.push(Out::Reply { call: waiting.call.clone(), reply });
            }
            !over
        });
    }

    fn feed_workers(&mut self, now: Time) {
        let clock = self.clock(now);
        while !self.hungry.is_empty() {
            let delivery = self.broker.dequeue(&self.published, &TYPES, clock, &mut self.chance);
            let Some(delivery) = delivery else { return };
            let (call, _) = self.hungry.pop_front().expect("somebody is hungry");
            self.out.push(Out::Delivered(delivery.clone()));
            self.out.push(Out::Reply { call, reply: Reply::Delivered(Some(delivery)) });
        }
    }

    /// Sends on what the sequencer answered.
    fn answer(&mut self, now: Time) {
        let done = std::mem::take(&mut *self.done.lock());
        for (number, outcome) in done {
            let Some(call) = self.calls.remove(&number) else { continue };
            let reply = match &call.ask {
                Ask::Beat(request) => {
                    let ttl = self.grant(&request.actor, &outcome, now);
                    Reply::Lease { outcome, ttl }
                }
                _ => Reply::Outcome(outcome),
            };
            self.out.push(Out::Reply { call, reply });
        }
    }

    /// As `gateway/server/src/rpc/node.rs`: who is down is not counted.
    fn grant(&mut self, actor: &Actor, outcome: &Result<Receipt, SubmitError>, now: Time) -> Duration {
        let (Actor::Node(node), Ok(_), true) = (actor, outcome, self.leads()) else { return Duration::ZERO };
        let row = self.published.nodes.find(*node);
        if row.is_none_or(|row| self.published.nodes.hot(row).status == NodeStatus::Down) {
            return Duration::ZERO;
        }
        let clock = self.clock(now);
        let ttl = self.heartbeats.heard(*node, clock, &mut self.chance);
        self.out.push(Out::Heard { node: *node, at: clock, ttl });
        ttl
    }
}

fn show(committed: &Committed) -> (Arc<Shown>, Feed) {
    let shown = Arc::new(Shown::new(Arc::new(Shelf(committed.clone()))));
    (shown.clone(), shown.feed())
}

#[cfg(not(feature = "planted"))]
fn sequencer(proposer: Uuid, _: Option<Bug>) -> Sequencer {
    Sequencer::new(proposer)
}

#[cfg(feature = "planted")]
fn sequencer(proposer: Uuid, bug: Option<Bug>) -> Sequencer {
    let mut sequencer = Sequencer::new(proposer);
    if let Some(rules) = bug.and_then(Bug::rules) {
        sequencer.rules = rules;
    }
    sequencer
}

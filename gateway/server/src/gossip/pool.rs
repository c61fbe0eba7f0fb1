//! The servers that know each other, without a socket or a clock: packets and the time are inputs, packets are outputs.
//!
//! SWIM itself is foca's. Around it are the greeting, by which two processes make sure that the other one lives
//! now and may come in, the list of servers as operators see it, and their keys (`pool/keys.rs`).

mod keys;
mod reconnect;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Rng, Uuid};
use foca::{Foca, Timer};
use parking_lot::Mutex;

use super::greeting::{Hello, Refused};
use super::key_query::{KeyAnswer, KeyQueries, KeyReport, KeyRequest};
use super::keyring::Keyring;
use super::member::{Codec, Identity, Member, Parting};
use super::notice::{Counts, Notice, Notices};
use super::replay::{Cookie, PacketCheck, ReplayGuard};
use super::seal::{SealError, Sealer};
use super::swim::{Chance, Effects, Swim, config, room};

/// Most servers of all regions. Messages about one more are dropped and counted.
pub const MEMBERS_MAX: usize = 512;

/// Packets on their way out. More at a time are dropped, as a network would.
const OUTBOX_MAX: usize = 4_096;

/// Greetings sent in a second without being asked for: packets of unknown sessions are answered with one.
const GREETINGS_MAX: u32 = 64;

/// How often is looked for what is due: servers to forget, servers to greet.
const SWEEP: Duration = Duration::from_secs(1);

/// How long an order to leave holds for a server that still counts as alive: five times what it takes to find that it
/// is dead.
const FORCE_LEAVE_WAIT: Duration = Duration::from_secs(30);

/// How soon failures are found, and how long they are remembered. Shorter finds them sooner and costs more packets.
#[derive(Clone, Debug)]
pub struct Timings {
    /// Each server asks another one whether it lives, this often.
    pub probe: Duration,
    /// When to ask others to ask, if it does not answer.
    pub round_trip: Duration,
    /// How long who does not answer may take to object.
    pub suspicion: Duration,
    /// News are passed on this often.
    pub spread: Duration,
    /// Servers that failed are asked again whether they are back.
    pub retry: Duration,
    /// How long servers that failed or left are still listed.
    pub forget: Duration,
}

impl Default for Timings {
    /// A dead server is known after about 6 seconds.
    fn default() -> Timings {
        Timings {
            probe: Duration::from_secs(1),
            round_trip: Duration::from_millis(400),
            suspicion: Duration::from_secs(4),
            spread: Duration::from_millis(200),
            retry: Duration::from_secs(10),
            forget: Duration::from_secs(72 * 3_600),
        }
    }
}

/// How a server is, as the others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Alive,
    Leaving,
    Left,
    Failed,
}

impl Standing {
    /// As Nomad's API spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Standing::Alive => "alive",
            Standing::Leaving => "leaving",
            Standing::Left => "left",
            Standing::Failed => "failed",
        }
    }

    /// It answers.
    pub const fn is_live(self) -> bool {
        matches!(self, Standing::Alive | Standing::Leaving)
    }
}

/// A server and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub member: Arc<Member>,
    pub standing: Standing,
    /// When its standing last changed, in time since the pool began.
    pub since: Duration,
    /// An operator had it leave, and it is not known yet whether it is still there.
    pub ordered: Option<Parting>,
}

/// How a greeting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeted {
    Welcome(Arc<Member>),
    Refused(String),
    /// A list of all servers also names the one that reads it.
    Ourselves,
}

/// That a server shall leave as soon as it has failed.
#[derive(Clone, Copy, Debug)]
struct LeaveOrder {
    parting: Parting,
    until: Duration,
}

/// Stores the keys of this server before they count.
pub type SaveKeys = Box<dyn FnMut(&Keyring) -> Result<(), String> + Send>;

pub struct Pool {
    swim: Swim,
    effects: Effects,
    sealer: Sealer,
    save_keys: SaveKeys,
    key_queries: KeyQueries,
    key_reports: Vec<(u64, Result<KeyReport, String>)>,
    sessions: ReplayGuard,
    timings: Timings,
    rng: Rng,
    now: Duration,
    swept: Duration,
    /// When failed servers were last greeted.
    reconnected: Duration,
    /// Greetings that may still be sent in this second.
    greetings_left: u32,
    /// Ids that SWIM holds or is about to.
    roll: Arc<Mutex<BTreeSet<Uuid>>>,
    sightings: BTreeMap<Uuid, Sighting>,
    /// Live servers that shall leave once they have failed, by id; no more than there are servers.
    leave_orders: BTreeMap<Uuid, LeaveOrder>,
    outgoing: VecDeque<(SocketAddr, Vec<u8>)>,
    greeted: Vec<(u64, Greeted)>,
    notices: Notices,
    counts: Counts,
    changed: bool,
}

/// Content of a packet: its first byte.
const SWIM: u8 = 0;
const HELLO: u8 = 1;
const REFUSED: u8 = 2;
const KEY_REQUEST: u8 = 3;
const KEY_ANSWER: u8 = 4;

impl Pool {
    pub fn new(own: Member, keyring: Keyring, save_keys: SaveKeys, timings: Timings, seed: u64) -> Pool {
        let mut rng = Rng::stream(seed, "gossip");
        let session = drawn(&mut rng);
        let roll = Arc::new(Mutex::new(BTreeSet::from([own.id])));
        let codec = Codec { room: room(roll.clone()) };
        let chance = Chance(Rng::stream(seed, "swim"));
        let swim = Foca::new(Identity(Arc::new(own)), config(&timings), chance, codec);
        let mut pool = Pool {
            swim,
            effects: Effects::default(),
            sealer: Sealer::new(keyring, session),
            save_keys,
            key_queries: KeyQueries::default(),
            key_reports: Vec::new(),
            sessions: ReplayGuard::new(drawn(&mut rng)),
            timings,
            rng,
            now: Duration::ZERO,
            swept: Duration::ZERO,
            reconnected: Duration::ZERO,
            greetings_left: GREETINGS_MAX,
            roll,
            sightings: BTreeMap::new(),
            leave_orders: BTreeMap::new(),
            outgoing: VecDeque::new(),
            greeted: Vec::new(),
            notices: Notices::default(),
            counts: Counts::default(),
            changed: true,
        };
        pool.look();
        pool
    }

    pub fn own(&self) -> &Arc<Member> {
        &self.swim.identity().0
    }

    /// Every server that is known and not pruned, this one included.
    pub fn sightings(&self) -> impl Iterator<Item = &Sighting> {
        let pruned = |seen: &Sighting| seen.member.parting == Parting::Pruned && !seen.standing.is_live();
        self.sightings.values().filter(move |seen| !pruned(seen))
    }

    /// Whether the sightings have changed since this was last asked.
    pub fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The next packet to send.
    pub fn outgoing(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outgoing.pop_front()
    }

    /// Greetings that have ended, by the number they were given; also those that others began.
    pub fn greeted(&mut self) -> Vec<(u64, Greeted)> {
        let ended = std::mem::take(&mut self.greeted);
        ended.into_iter().filter(|(number, _)| *number != 0).collect()
    }

    /// What an operator should read.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }

    /// When [`Pool::pass`] is due at the latest.
    pub fn next(&self) -> Duration {
        let sweep = self.swept + SWEEP;
        self.effects.timers.first_key_value().map_or(sweep, |((due, _), _)| sweep.min(*due))
    }

    /// Does what is due.
    pub fn pass(&mut self, now: Duration) {
        self.now = self.now.max(now);
        while let Some(entry) = self.effects.timers.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let timer = entry.remove();
            self.swim_with(|swim, effects| swim.handle_timer(timer, effects));
        }
        if self.now >= self.swept + SWEEP {
            self.swept = self.now;
            self.greetings_left = GREETINGS_MAX;
            self.resume();
            self.forget();
            self.follow_leave_orders();
            self.greet_unmet();
            self.greet_failed_when_alone();
            self.ask_for_keys_again();
        }
        self.look();
    }

    /// Takes a packet from the network.
    pub fn receive(&mut self, now: Duration, from: SocketAddr, packet: &[u8]) {
        self.now = self.now.max(now);
        let opened = match self.sealer.open(packet) {
            Ok(opened) => opened,
            Err(why) => return self.unopened(from, why),
        };
        let Some((kind, content)) = opened.content.split_first() else {
            self.counts.malformed += 1;
            return;
        };
        if opened.session == self.sealer.session() {
            if let (&HELLO, Ok(hello)) = (kind, Hello::decode(content)) {
                self.greeted.push((hello.number, Greeted::Ourselves));
            }
            return;
        }
        let entry = self.sessions.take(&opened.session, opened.number, self.now);
        match (kind, entry) {
            (_, PacketCheck::Repeated) => self.counts.repeated += 1,
            (&SWIM, PacketCheck::New) => self.swim_with(|swim, effects| swim.handle_data(content, effects)),
            (&SWIM, PacketCheck::UnknownSession) => self.greet_unknown(from, 0),
            (&HELLO, _) => match Hello::decode(content) {
                Ok(hello) => self.hello(from, (opened.session, opened.number), entry, hello),
                Err(_) => self.counts.malformed += 1,
            },
            (&REFUSED, _) => match Refused::decode(content) {
                Ok(refused) => self.refused(from, refused),
                Err(_) => self.counts.malformed += 1,
            },
            (&KEY_REQUEST, PacketCheck::New) => match KeyRequest::decode(content) {
                Ok(request) => self.key_request(from, request),
                Err(_) => self.counts.malformed += 1,
            },
            (&KEY_ANSWER, PacketCheck::New) => match KeyAnswer::decode(content) {
                Ok(answer) => self.key_answer(answer),
                Err(_) => self.counts.malformed += 1,
            },
            (&KEY_REQUEST | &KEY_ANSWER, PacketCheck::UnknownSession) => self.greet_unknown(from, 0),
            (_, _) => self.counts.malformed += 1,
        }
        self.look();
    }

    /// Greets the server that listens at an address. The number comes back from [`Pool::greeted`], if anything does: draw it
    /// at random, because others draw theirs.
    pub fn greet(&mut self, address: SocketAddr, number: u64) {
        let hello = self.own_hello(number, None);
        self.send(address, HELLO, &hello.encode());
    }

    /// Says something new about this server.
    pub fn describe(&mut self, change: impl FnOnce(&mut Member)) {
        let mut own = Member::clone(self.own());
        change(&mut own);
        if own != **self.own() {
            own.generation += 1;
            self.become_newer(own);
        }
    }

    /// Ends this server's membership: the others do not take it for a failure. Call [`Pool::describe`] with
    /// [`Parting::Leaving`] a moment before.
    pub fn leave(&mut self) {
        self.swim_with(|swim, effects| swim.leave_cluster(effects));
        self.effects.changed = true;
        self.look();
    }

    /// Has a failed server count as one that left. False if no server has that name: the full one, or of a server of this
    /// region its name alone.
    ///
    /// A server that just died counts as alive until the others have found out: it leaves then. One that stays alive
    /// stays a member. Meanwhile its last sighting decides the order.
    pub fn force_leave(&mut self, name: &str, prune: bool) -> bool {
        let region = self.own().region.clone();
        let named = |seen: &&Sighting| {
            let Member { name: short, region: other, .. } = &*seen.member;
            seen.member.full_name() == name || (short == name && *other == region)
        };
        let found: Vec<Sighting> = self.sightings().filter(named).cloned().collect();
        let parting = if prune { Parting::Pruned } else { Parting::Leaving };
        let until = self.now + FORCE_LEAVE_WAIT;
        for seen in &found {
            self.leave_orders.insert(seen.member.id, LeaveOrder { parting, until });
            self.effects.changed = true;
        }
        self.follow_leave_orders();
        self.look();
        !found.is_empty()
    }

    /// Carries out the orders for servers that have failed, and drops those that came too early.
    fn follow_leave_orders(&mut self) {
        let now = self.now;
        let failed = |id: &Uuid| self.sightings.get(id).filter(|seen| !seen.standing.is_live());
        let due: Vec<(Arc<Member>, Parting)> = self
            .leave_orders
            .iter()
            .filter_map(|(id, order)| Some((failed(id)?.member.clone(), order.parting)))
            .collect();
        for (member, parting) in &due {
            self.leave_orders.remove(&member.id);
            if member.parting == *parting {
                continue;
            }
            let gone =
                Member { parting: *parting, generation: member.generation + 1, ..Member::clone(member) };
            let update = foca::Member::down(Identity(Arc::new(gone)));
            self.swim_with(|swim, effects| swim.apply_many(std::iter::once(update), true, effects));
        }
        let orders = self.leave_orders.len();
        self.leave_orders.retain(|_, order| order.until > now);
        self.effects.changed |= self.leave_orders.len() != orders;
        if !due.is_empty() {
            self.swim_with(|swim, effects| swim.gossip(effects));
            self.look();
        }
    }

    fn become_newer(&mut self, own: Member) {
        let own = Identity(Arc::new(own));
        self.swim_with(|swim, effects| swim.change_identity(own, effects));
        // A changed self begins alone.
        self.resume();
        self.effects.changed = true;
        self.look();
    }

    /// Has SWIM work on something, and takes what comes of it.
    fn swim_with(&mut self, work: impl FnOnce(&mut Swim, &mut Effects) -> Result<(), foca::Error>) {
        self.effects.now = self.now;
        if let Err(error) = work(&mut self.swim, &mut self.effects) {
            self.counts.malformed += 1;
            self.notices.detail(error.to_string());
        }
        for (to, content) in std::mem::take(&mut self.effects.packets) {
            self.send(to, SWIM, &content);
        }
    }

    fn send(&mut self, to: SocketAddr, kind: u8, content: &[u8]) {
        if self.outgoing.len() >= OUTBOX_MAX {
            self.counts.unsent += 1;
            return;
        }
        let content = [&[kind], content].concat();
        self.outgoing.push_back((to, self.sealer.seal(&content)));
    }

    fn unopened(&mut self, from: SocketAddr, why: SealError) {
        match why {
            SealError::NotAuthentic => self.counts.unauthentic += 1,
            SealError::NotSealed | SealError::Sealed => self.counts.mixed += 1,
            SealError::Foreign | SealError::Version(_) => self.counts.malformed += 1,
        }
        if why != SealError::Foreign {
            self.notices.add(self.now, Notice::Unopened { from, why });
        }
    }

    /// A greeting: its sender is alive if it has our cookie, and is accepted unless it conflicts with another server.
    fn hello(&mut self, from: SocketAddr, packet: ([u8; 16], u64), entry: PacketCheck, hello: Hello) {
        let (session, number) = packet;
        if entry == PacketCheck::UnknownSession && hello.cookie != Some(self.sessions.cookie()) {
            // It may be a recording: the sender has to prove that it reads what is sent now.
            return self.answer(from, &hello, false);
        }
        if let Some(why) = self.objection(&hello.member) {
            self.notices
                .add(self.now, Notice::Refusing { from, name: hello.member.full_name(), why: why.clone() });
            let refused = Refused { cookie: hello.own_cookie, number: hello.number, why: why.clone() };
            self.counts.refused += 1;
            self.greeted.push((hello.number, Greeted::Refused(why)));
            return self.send(from, REFUSED, &refused.encode());
        }
        if entry == PacketCheck::UnknownSession {
            let next = drawn(&mut self.rng);
            self.sessions.admit(session, number, hello.member.id, self.now, next);
        }
        if hello.known_generation > self.own().generation {
            // They remember a newer self, from a clock that was ahead: messages of this one would not count.
            let generation = hello.known_generation + 1;
            self.become_newer(Member { generation, ..Member::clone(self.own()) });
        }
        if hello.asks {
            self.answer(from, &hello, true);
        }
        if !hello.welcome {
            return;
        }
        self.greeted.push((hello.number, Greeted::Welcome(Arc::new(hello.member.clone()))));
        // Joining is asked for until SWIM has the other's newest self; its answer names all others.
        let peer = Identity(Arc::new(hello.member));
        if !self.swim.iter_members().any(|member| *member.id() == peer) {
            self.swim_with(|swim, effects| swim.announce(peer, effects));
        }
    }

    /// Answers a greeting with the cookie it needs. It goes on until both know that they are accepted.
    fn answer(&mut self, to: SocketAddr, hello: &Hello, welcome: bool) {
        if !welcome && !self.may_greet() {
            return;
        }
        let mut answer = self.own_hello(hello.number, Some(hello.own_cookie));
        (answer.welcome, answer.asks) = (welcome, !hello.welcome);
        answer.known_generation = self.known_generation(hello.member.id);
        self.send(to, HELLO, &answer.encode());
    }

    fn greet_unknown(&mut self, from: SocketAddr, number: u64) {
        self.counts.unknown_sessions += 1;
        if self.may_greet() {
            self.greet(from, number);
        }
    }

    fn may_greet(&mut self) -> bool {
        let may = self.greetings_left > 0;
        self.greetings_left = self.greetings_left.saturating_sub(1);
        may
    }

    fn own_hello(&self, number: u64, cookie: Option<Cookie>) -> Hello {
        let (own_cookie, member) = (self.sessions.cookie(), Member::clone(self.own()));
        Hello { number, cookie, own_cookie, welcome: false, asks: true, known_generation: 0, member }
    }

    fn known_generation(&self, id: Uuid) -> u64 {
        self.sightings.get(&id).map_or(0, |seen| seen.member.generation)
    }

    /// Why a server is rejected: a live one has its name, its number or its id.
    fn objection(&self, new: &Member) -> Option<String> {
        if let Some(field) = new.unfit() {
            return Some(format!("its {field} is empty or too long"));
        }
        let live = || self.sightings.values().filter(|seen| seen.standing.is_live()).map(|seen| &seen.member);
        if let Some(twin) = live().find(|old| old.id == new.id && old.serf != new.serf) {
            return Some(format!(
                "the server at {} has the same id {}: was a data directory copied?",
                twin.serf, twin.id
            ));
        }
        let others = || live().filter(|old| old.id != new.id && old.region == new.region);
        if let Some(old) = others().find(|old| old.name == new.name) {
            let (name, serf, id) = (old.full_name(), old.serf, old.id);
            return Some(format!("the name \"{name}\" belongs to the server {id} at {serf}, which is alive"));
        }
        others().find(|old| old.number == new.number).map(|old| {
            format!("its raft number {} belongs to the server \"{}\"", new.number, old.full_name())
        })
    }

    fn refused(&mut self, from: SocketAddr, refused: Refused) {
        if refused.cookie != self.sessions.cookie() {
            self.counts.repeated += 1;
            return;
        }
        self.notices.add(self.now, Notice::RefusedBy { from, why: refused.why.clone() });
        self.greeted.push((refused.number, Greeted::Refused(refused.why)));
    }

    /// Lets go of servers that failed or left long ago.
    fn forget(&mut self) {
        let old = |seen: &&Sighting| {
            !seen.standing.is_live() && self.now.saturating_sub(seen.since) >= self.timings.forget
        };
        let gone: Vec<Arc<Member>> =
            self.sightings.values().filter(old).map(|seen| seen.member.clone()).collect();
        for member in gone {
            let forget = Timer::RemoveDown(Identity(member));
            self.swim_with(|swim, effects| swim.handle_timer(forget, effects));
            self.effects.changed = true;
        }
        let held = self.swim.iter_membership_state().map(|member| member.id().0.id);
        *self.roll.lock() = held.chain([self.own().id]).collect();
    }

    /// Servers that are known from others are greeted, so that the first message to them is not lost.
    fn greet_unmet(&mut self) {
        let own = self.own().id;
        let unmet = |seen: &&Sighting| {
            seen.member.id != own && seen.standing.is_live() && !self.sessions.knows(seen.member.id)
        };
        let unmet: Vec<SocketAddr> =
            self.sightings.values().filter(unmet).map(|seen| seen.member.serf).collect();
        for address in unmet {
            if self.may_greet() {
                self.greet(address, 0);
            }
        }
    }

    /// Draws up the list of servers anew, if something happened to it.
    fn look(&mut self) {
        if !std::mem::take(&mut self.effects.changed) && !self.sightings.is_empty() {
            return;
        }
        let own = self.own().clone();
        let standing = if own.parting == Parting::Staying { Standing::Alive } else { Standing::Leaving };
        let mut seen = BTreeMap::from([(own.id, self.sighting(own, standing))]);
        for member in self.swim.iter_membership_state() {
            let known = &member.id().0;
            let standing = match (member.state(), known.parting) {
                (foca::State::Down, Parting::Staying) => Standing::Failed,
                (foca::State::Down, _) => Standing::Left,
                (_, Parting::Staying) => Standing::Alive,
                (_, _) => Standing::Leaving,
            };
            seen.entry(known.id).or_insert_with(|| self.sighting(known.clone(), standing));
        }
        if seen != self.sightings {
            self.sightings = seen;
            self.changed = true;
        }
    }

    fn sighting(&self, member: Arc<Member>, standing: Standing) -> Sighting {
        let before = self.sightings.get(&member.id).filter(|before| before.standing == standing);
        let ordered = self.leave_orders.get(&member.id).map(|order| order.parting);
        Sighting { since: before.map_or(self.now, |before| before.since), member, standing, ordered }
    }
}

fn drawn(rng: &mut Rng) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&rng.next().to_le_bytes());
    bytes[8..].copy_from_slice(&rng.next().to_le_bytes());
    bytes
}

//! Servers without threads on simulated disks, in virtual time: everything from one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Rng};
use bytes::Bytes;
use fake_network::{Conditions, FakeNetwork, Gone};
use journal::store::StoreError;
use journal::store::simulated::Disk;
use journal::{Freshness, Journal, NotLeading, ProposeError, Sink};
use model::{Chunk, Image};
use parking_lot::Mutex;
use raft::{Driving, Found, OpenError, RaftJournal, Retention, Settings, Tail, Timings};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::cluster::{member, takes};
use super::{batch_by, settings, timings};

const SERVERS: [u64; 3] = [1, 2, 3];
/// So small that segments are sealed all the time.
const SEGMENT: u64 = 16 << 10;

/// Checksums in a chunk of an image.
const PER_CHUNK: usize = 16;

/// What every sink received, in order, and whether it fits together.
#[derive(Default)]
pub struct Trace {
    pub lines: Vec<String>,
    /// By index: the checksum of what was received first.
    batches: BTreeMap<u64, u32>,
}

/// The state of a server that sums up each batch.
type Sums = Arc<Mutex<Vec<u32>>>;

/// One server's ear. It checks that batches come in order and are the same for everybody.
struct Ear {
    node: u64,
    begun: Instant,
    trace: Arc<Mutex<Trace>>,
    sums: Sums,
    gone: Arc<Gone>,
    dead: Arc<Mutex<Vec<u64>>>,
    broken: Arc<Mutex<Option<String>>>,
}

impl Ear {
    fn note(&self, what: String) {
        let at = self.begun.elapsed().as_micros();
        self.trace.lock().lines.push(format!("{at} {} {what}", self.node));
    }
}

impl Sink for Ear {
    fn committed(&mut self, batch: journal::EncodedBatch) {
        let (index, sum) = (batch.index().0, crc32c::crc32c(batch.bytes()));
        {
            let mut sums = self.sums.lock();
            assert_eq!(index, sums.len() as u64 + 1, "server {} hears batches out of order", self.node);
            sums.push(sum);
            let first = *self.trace.lock().batches.entry(index).or_insert(sum);
            assert_eq!(first, sum, "batch {index} is another on server {}", self.node);
        }
        self.note(format!("committed {index} {sum:08x}"));
    }

    fn restored(&mut self, image: Image) {
        let bytes = image.chunks.iter().flat_map(|chunk| chunk.bytes.clone().expect("each has its bytes"));
        let bytes: Vec<u8> = bytes.collect();
        let sums: Vec<u32> =
            bytes.chunks_exact(4).map(|sum| u32::from_le_bytes(sum.try_into().unwrap())).collect();
        assert_eq!(sums.len() as u64, image.index.0);
        let right: Vec<u32> = self.trace.lock().batches.values().copied().take(sums.len()).collect();
        assert!(sums == right, "the image at {} of server {} is wrong", image.index, self.node);
        *self.sums.lock() = sums;
        self.note(format!("restored {}", image.index));
    }

    fn leading(&mut self, term: base::Term) {
        self.note(format!("leading {}", term.0));
    }

    fn following(&mut self, leader: Option<u64>) {
        self.note(format!("following {leader:?}"));
    }

    fn halted(&mut self, why: String) {
        if self.gone.is() {
            // A call kept it for a while, without a disk.
            return;
        }
        self.note(format!("halted {why}"));
        // It may have been off for a while: what went on without the disk did not need it.
        let power = why.contains("the power went") || why.contains("the power is off");
        let explained = power || why.contains("the log has stopped");
        match explained {
            true => self.dead.lock().push(self.node),
            false => *self.broken.lock() = Some(format!("server {}: {why}", self.node)),
        }
    }
}

pub struct World {
    pub network: Arc<FakeNetwork>,
    pub servers: BTreeMap<u64, Arc<RaftJournal>>,
    pub trace: Arc<Mutex<Trace>>,
    pub rng: Rng,
    pub disks: BTreeMap<u64, Disk>,
    /// By how much the clock of each server is too fast, in parts in a hundred, where it is not right.
    pub fast: BTreeMap<u64, i32>,
    sums: BTreeMap<u64, Sums>,
    /// Of each server that runs, or is about to.
    gone: BTreeMap<u64, Arc<Gone>>,
    /// Servers that cannot go on since their disk has failed.
    dead: Arc<Mutex<Vec<u64>>>,
    /// A server that stopped although nothing in the world explains it.
    broken: Arc<Mutex<Option<String>>>,
    begun: Instant,
    seed: u64,
    starts: u64,
    proposed: u64,
}

impl World {
    /// A founded cluster.
    pub async fn new(seed: u64) -> World {
        World::of(seed, &SERVERS).await
    }

    pub async fn of(seed: u64, servers: &[u64]) -> World {
        let mut world = World {
            network: FakeNetwork::new(seed, Conditions::lossy(Duration::from_millis(5), 20)),
            servers: BTreeMap::new(),
            trace: Arc::default(),
            rng: Rng::stream(seed, "world"),
            disks: servers.iter().map(|node| (*node, Disk::new(seed ^ node))).collect(),
            fast: BTreeMap::new(),
            sums: BTreeMap::new(),
            gone: BTreeMap::new(),
            dead: Arc::default(),
            broken: Arc::default(),
            begun: Instant::now(),
            seed,
            starts: 0,
            proposed: 0,
        };
        for node in servers {
            world.start(*node).await;
        }
        let members: Vec<_> = servers.iter().copied().map(member).collect();
        world.servers[&1].bootstrap(&members).await.unwrap();
        world
    }

    /// Starts a server on what its disk has; if the power goes meanwhile, once more.
    pub async fn start(&mut self, node: u64) {
        loop {
            match self.try_start(node).await {
                Ok(server) => {
                    self.network.join(node, &server, &self.gone[&node]);
                    self.servers.insert(node, server);
                    return;
                }
                Err(OpenError::Store(StoreError::Io { .. })) => self.lose_power(node),
                // Whatever was not safe was acknowledged to nobody.
                Err(why) => panic!("server {node} does not start: {why}"),
            }
        }
    }

    async fn try_start(&mut self, node: u64) -> Result<Arc<RaftJournal>, OpenError> {
        self.starts += 1;
        let seed = Rng::stream(self.seed, &format!("start {}", self.starts)).next();
        let settings = Settings {
            segment_bytes: SEGMENT,
            retention: Retention { bytes: 4 * SEGMENT, age: None },
            archive: None,
            keep: None,
            tail: Tail { entries: 20, bytes: 8 << 10 },
            seed,
            timings: self.timings(node),
            ..settings(std::path::Path::new(""), node, Found::Wait)
        };
        let sums = Sums::default();
        self.sums.insert(node, sums.clone());
        let gone = Arc::<Gone>::default();
        self.gone.insert(node, gone.clone());
        let (dead, broken, ended) = (self.dead.clone(), self.broken.clone(), gone.clone());
        let ear = Ear {
            node,
            begun: self.begun,
            trace: self.trace.clone(),
            sums,
            gone: gone.clone(),
            dead: dead.clone(),
            broken: broken.clone(),
        };
        let delays = Mutex::new(Rng::stream(seed, "disk delays"));
        let driving = Driving {
            delay: Arc::new(move || Duration::from_micros(delays.lock().below(2_000))),
            fatal: Arc::new(move |why| match why.contains("panicked") {
                _ if ended.is() => {}
                true => *broken.lock() = Some(format!("server {node}: {why}")),
                false => dead.lock().push(node),
            }),
        };
        let disk = Arc::new(self.disks[&node].clone());
        RaftJournal::open_on(disk, settings, self.network.links(node, &gone), ear, driving).await
    }

    /// Time is one for all here, so who has a fast clock waits for less.
    fn timings(&self, node: u64) -> Timings {
        let Timings { heartbeat, election } = timings();
        let fast = f64::from(self.fast.get(&node).copied().unwrap_or(0)) / 100.0;
        let truly = |span: Duration| span.div_f64(1.0 + fast);
        Timings { heartbeat: truly(heartbeat), election: truly(election.start)..truly(election.end) }
    }

    pub fn crashes(&self) -> usize {
        self.trace.lock().lines.iter().filter(|line| line.ends_with("crash")).count()
    }

    fn lose_power(&mut self, node: u64) {
        // A call that is under way keeps what is left of the server, which must not answer any more.
        self.gone[&node].go();
        let left = self.disks[&node].crash_by_chance();
        self.disks.insert(node, left);
        self.trace.lock().lines.push(format!("{} {node} crash", self.begun.elapsed().as_micros()));
    }

    /// The power goes: what was not synced is there or not, whole or in part.
    pub fn crash(&mut self, node: u64) {
        if self.servers.remove(&node).is_some() {
            self.network.leave(node);
            self.lose_power(node);
        }
    }

    /// Proposes some batches to everybody who believes to lead.
    pub fn propose(&mut self) {
        for server in self.servers.values() {
            let term = server.status().term;
            for _ in 0..self.rng.below(4) {
                let probe = server.propose(term, batch_by(0, u64::MAX, 0));
                let Err(ProposeError::OutOfOrder { last, .. }) = probe else { break };
                self.proposed += 1;
                let text = self.rng.below(600) as usize;
                if server.propose(term, batch_by(self.proposed, last.0 + 1, text)).is_err() {
                    break;
                }
            }
        }
    }

    /// Who leads and takes proposals.
    pub fn leader(&self) -> Option<u64> {
        self.servers.keys().copied().find(|node| self.takes(*node))
    }

    pub fn takes(&self, node: u64) -> bool {
        self.servers.get(&node).is_some_and(|server| takes(server, server.status().term))
    }

    pub async fn reads(&self, node: u64, freshness: Freshness) -> Result<Index, NotLeading> {
        let (tell, told) = oneshot::channel();
        self.servers[&node].read_index(freshness, Box::new(move |answer| tell.send(answer).unwrap()));
        told.await.expect("an answer")
    }

    /// Commits `count` batches.
    pub async fn fill(&mut self, count: u64) {
        let end = self.servers.values().map(|server| server.committed().0).max().unwrap() + count;
        while self.servers.values().any(|server| server.committed().0 < end) {
            self.propose();
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn keep_all(&mut self) {
        for node in self.servers.keys().copied().collect::<Vec<_>>() {
            self.keep(node);
        }
    }

    /// A server keeps an image of all it has received.
    pub fn keep(&mut self, node: u64) {
        let (Some(server), Some(sums)) = (self.servers.get(&node), self.sums.get(&node)) else { return };
        let sums = sums.lock().clone();
        let chunk = |sums: &[u32]| {
            let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            Chunk::new(Bytes::from(bytes))
        };
        let image =
            Image { index: Index(sums.len() as u64), chunks: sums.chunks(PER_CHUNK).map(chunk).collect() };
        let kept = server.keep(image).map_err(|why| why.to_string());
        self.trace.lock().lines.push(format!("{node} keeps {} {kept:?}", sums.len()));
    }

    /// Servers whose disk has failed are no more.
    pub fn bury(&mut self) {
        if let Some(why) = &*self.broken.lock() {
            let trace = self.trace.lock();
            trace.lines[trace.lines.len().saturating_sub(100)..].iter().for_each(|line| println!("{line}"));
            panic!("{why}");
        }
        let dead = std::mem::take(&mut *self.dead.lock());
        for node in dead {
            self.crash(node);
        }
    }

    /// Whoever leads changes the members, and has time until something else happens.
    fn change_members(&mut self, node: u64) {
        let remove = self.rng.below(2) == 0;
        for server in
            self.servers.values().filter(|server| server.status().leader == Some(server.status().node))
        {
            let server = server.clone();
            tokio::spawn(async move {
                match remove {
                    true => drop(server.remove(node).await),
                    false => drop(server.add(member(node), Duration::from_secs(2)).await),
                }
            });
        }
    }

    /// Something happens.
    pub async fn act(&mut self) {
        sleep(Duration::from_millis(self.rng.below(150))).await;
        let node = SERVERS[self.rng.below(3) as usize];
        self.bury();
        match self.rng.below(26) {
            0 => self.crash(node),
            1 | 2 => {
                for node in SERVERS {
                    if !self.servers.contains_key(&node) {
                        self.start(node).await;
                    }
                }
            }
            3 => self.network.part(&[node]),
            4 => self.network.cut(node, SERVERS[self.rng.below(3) as usize]),
            5 | 6 => self.network.heal(),
            7 => {
                if let Some(server) = self.servers.get(&node).cloned() {
                    tokio::spawn(async move { drop(server.transfer(None).await) });
                }
            }
            8 | 9 => self.keep(node),
            10 => self.change_members(node),
            11 => {
                if let Some(server) = self.servers.get(&node).cloned() {
                    tokio::spawn(async move { drop(server.refetch().await) });
                }
            }
            // The power goes in the midst of whatever the disk does next.
            12 => self.disks[&node].cut_power_at(self.disks[&node].operations() + self.rng.below(20)),
            _ => self.propose(),
        }
    }

    /// No more faults: everybody comes back, agrees, and goes on.
    pub async fn settle(&mut self) {
        self.network.heal();
        self.network.set_conditions(Conditions::lossy(Duration::from_millis(1), 0));
        for node in SERVERS {
            if !self.servers.contains_key(&node) {
                self.start(node).await;
            }
        }
        for _ in 0..20 {
            let before: Vec<Index> = self.servers.values().map(|server| server.committed()).collect();
            self.add_all().await;
            self.propose_one();
            sleep(Duration::from_secs(3)).await;
            self.bury();
            for node in SERVERS {
                if !self.servers.contains_key(&node) {
                    self.start(node).await;
                }
            }
            let after: Vec<Index> = self.servers.values().map(|server| server.committed()).collect();
            if after.iter().all(|last| *last == after[0]) && after != before {
                let last = after[0].0 as usize;
                assert!(self.sums.values().all(|sums| sums.lock().len() == last));
                return;
            }
        }
        let statuses: Vec<_> = self.servers.values().map(|server| server.status()).collect();
        panic!("the servers do not agree after all is well: {statuses:#?}");
    }

    /// Whoever was removed takes part again.
    async fn add_all(&self) {
        for server in self.servers.values() {
            for node in SERVERS {
                // Only a leader can, and only when no other change is on its way.
                let _ = server.add(member(node), Duration::from_secs(2)).await;
            }
        }
    }

    fn propose_one(&mut self) {
        for server in self.servers.values() {
            let term = server.status().term;
            let probe = server.propose(term, batch_by(0, u64::MAX, 0));
            if let Err(ProposeError::OutOfOrder { last, .. }) = probe {
                self.proposed += 1;
                let _ = server.propose(term, batch_by(self.proposed, last.0 + 1, 9));
            }
        }
    }
}

//! Servers without threads on simulated disks, in virtual time: everything from one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Index, Rng};
use journal::store::simulated::Disk;
use journal::{Journal, ProposeError, Sink};
use model::Image;
use parking_lot::Mutex;
use raft::{Driving, Found, RaftJournal, Settings};
use tokio::time::{Instant, sleep};

use super::cluster::member;
use super::web::Web;
use super::{batch_by, settings};

const SERVERS: [u64; 3] = [1, 2, 3];
/// So small that segments are sealed all the time.
const SEGMENT: u64 = 16 << 10;

/// What every sink heard, in the order of hearing, and whether it fits together.
#[derive(Default)]
pub struct Trace {
    pub lines: Vec<String>,
    /// By index: the bytes that somebody heard first.
    batches: BTreeMap<u64, Vec<u8>>,
}

/// One server's ear. It checks that batches come in order and are the same for everybody.
struct Ear {
    node: u64,
    begun: Instant,
    trace: Arc<Mutex<Trace>>,
    last: u64,
}

impl Ear {
    fn note(&self, what: String) {
        let at = self.begun.elapsed().as_micros();
        self.trace.lock().lines.push(format!("{at} {} {what}", self.node));
    }
}

impl Sink for Ear {
    fn committed(&mut self, batch: journal::EncodedBatch) {
        let index = batch.index().0;
        assert_eq!(index, self.last + 1, "server {} hears batches out of order", self.node);
        self.last = index;
        let hash = blake(batch.bytes());
        {
            let mut trace = self.trace.lock();
            let first = trace.batches.entry(index).or_insert_with(|| batch.bytes().to_vec());
            assert!(first[..] == batch.bytes()[..], "batch {index} is another on server {}", self.node);
        }
        self.note(format!("committed {index} {hash:08x}"));
    }

    fn restored(&mut self, image: Image) {
        self.last = image.index.0;
        self.note(format!("restored {}", image.index));
    }

    fn leading(&mut self, term: base::Term) {
        self.note(format!("leading {}", term.0));
    }

    fn following(&mut self, leader: Option<u64>) {
        self.note(format!("following {leader:?}"));
    }

    fn halted(&mut self, why: String) {
        self.note(format!("halted {why}"));
    }
}

fn blake(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

pub struct World {
    pub web: Arc<Web>,
    pub servers: BTreeMap<u64, Arc<RaftJournal>>,
    pub trace: Arc<Mutex<Trace>>,
    pub rng: Rng,
    disks: BTreeMap<u64, Disk>,
    begun: Instant,
    seed: u64,
    starts: u64,
    proposed: u64,
}

impl World {
    /// A founded cluster.
    pub async fn new(seed: u64) -> World {
        let mut world = World {
            web: Arc::default(),
            servers: BTreeMap::new(),
            trace: Arc::default(),
            rng: Rng::stream(seed, "world"),
            disks: SERVERS.iter().map(|node| (*node, Disk::new(seed ^ node))).collect(),
            begun: Instant::now(),
            seed,
            starts: 0,
            proposed: 0,
        };
        world.web.weather(seed, Duration::from_millis(5), 20);
        for node in SERVERS {
            world.start(node).await;
        }
        world.servers[&1].bootstrap(&SERVERS.map(member)).await.unwrap();
        world
    }

    pub async fn start(&mut self, node: u64) {
        self.starts += 1;
        let seed = Rng::stream(self.seed, &format!("start {}", self.starts)).next();
        let settings = Settings {
            segment_bytes: SEGMENT,
            seed,
            ..settings(std::path::Path::new(""), node, Found::Wait)
        };
        let ear = Ear { node, begun: self.begun, trace: self.trace.clone(), last: 0 };
        let delays = Mutex::new(Rng::stream(seed, "disk delays"));
        let driving = Driving {
            delay: Arc::new(move || Duration::from_micros(delays.lock().below(2_000))),
            fatal: Arc::new(|why| panic!("{why}")),
        };
        let disk = Arc::new(self.disks[&node].clone());
        let server = RaftJournal::open_on(disk, settings, self.web.links(node), ear, driving).await.unwrap();
        self.web.join(node, &server);
        self.servers.insert(node, server);
    }

    /// The power goes: what was not synced is there or not, whole or in part.
    pub fn crash(&mut self, node: u64) {
        if self.servers.remove(&node).is_some() {
            self.web.leave(node);
            let left = self.disks[&node].crash_by_chance();
            self.disks.insert(node, left);
            self.trace.lock().lines.push(format!("{} {node} crash", self.begun.elapsed().as_micros()));
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

    /// Something happens.
    pub async fn act(&mut self) {
        sleep(Duration::from_millis(self.rng.below(150))).await;
        let node = SERVERS[self.rng.below(3) as usize];
        match self.rng.below(20) {
            0 => self.crash(node),
            1 | 2 => {
                for node in SERVERS {
                    if !self.servers.contains_key(&node) {
                        self.start(node).await;
                    }
                }
            }
            3 => self.web.part(&[node]),
            4 => self.web.cut(node, SERVERS[self.rng.below(3) as usize]),
            5 | 6 => self.web.heal(),
            7 => {
                if let Some(server) = self.servers.get(&node).cloned() {
                    tokio::spawn(async move { drop(server.transfer(None).await) });
                }
            }
            _ => self.propose(),
        }
    }

    /// No more faults: everybody comes back, agrees, and goes on.
    pub async fn settle(&mut self) {
        self.web.heal();
        self.web.weather(self.seed, Duration::from_millis(1), 0);
        for node in SERVERS {
            if !self.servers.contains_key(&node) {
                self.start(node).await;
            }
        }
        for _ in 0..20 {
            let before: Vec<Index> = self.servers.values().map(|server| server.committed()).collect();
            self.propose_one();
            sleep(Duration::from_secs(2)).await;
            let after: Vec<Index> = self.servers.values().map(|server| server.committed()).collect();
            if after.iter().all(|last| *last == after[0]) && after != before {
                return;
            }
        }
        panic!("the servers do not agree after all is well");
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

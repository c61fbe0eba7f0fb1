//! What outlives a server's process: its place, its disk, its number, and somebody who starts it again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Duration, Rng, Time};
use fake_network::Gone;
use journal::store::StoreError;
use journal::store::simulated::Disk;
use parking_lot::Mutex;
use raft::{Driving, Found, OpenError, RaftJournal, Settings, Timings};
use tokio::sync::Notify;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;

use super::disk;
use super::process::{Begin, Died, Ear, Process};
use super::world::World;
use crate::clock::SimClock;
use crate::fact::Fact;

/// How long a server stays dead once faults are over, at most.
const DOWN_IN_CALM: Duration = Duration::from_millis(200);

pub struct Server {
    /// Its number in the log: another one for each log it began with.
    pub number: Cell<u64>,
    pub disk: RefCell<Disk>,
    pub process: RefCell<Option<Process>>,
    pub clock: RefCell<SimClock>,
    /// A byte on its disk was changed.
    pub flipped: Cell<bool>,
    /// How long its sequencer waits before its next turn, besides what is usual.
    pub stalled: Cell<std::time::Duration>,
    /// The same for its disk and its next step, in microseconds.
    pub stalled_disk: Arc<AtomicU64>,
    /// Told when its process ends.
    pub ended: Arc<Notify>,
}

/// How a start went.
enum Started {
    Lives,
    /// What was safely written is not there any more.
    Damaged(String),
    /// The disk failed meanwhile: it is as dead as before.
    Failed,
}

impl Server {
    pub fn new(number: u64, seed: u64, now: Time) -> Server {
        Server {
            number: Cell::new(number),
            disk: RefCell::new(Disk::new(seed ^ number)),
            process: RefCell::default(),
            clock: RefCell::new(SimClock::new(now)),
            flipped: Cell::default(),
            stalled: Cell::default(),
            stalled_disk: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Ends the process. What it has written stays written, as unsynced as it was.
    pub fn kill(&self) {
        self.end();
        self.disk.replace_with(|disk| disk.kill());
    }

    /// The power goes: what was not synced is there or not, whole or in part.
    pub fn lose_power(&self) {
        self.end();
        self.disk.replace_with(|disk| disk.crash_by_chance());
    }

    /// An empty disk in place of the one it has.
    pub fn lose_disk(&self, number: u64, seed: u64) {
        self.end();
        self.disk.replace_with(|disk| {
            // Whatever still holds the old one does nothing more with it.
            disk.kill();
            Disk::new(seed)
        });
        self.number.set(number);
        self.flipped.set(false);
    }

    fn end(&self) {
        drop(self.process.take());
        self.ended.notify_one();
    }

    /// Its log, and a flag that is set when its process ends.
    pub fn journal(&self) -> Option<(Arc<RaftJournal>, Arc<Gone>)> {
        let process = self.process.borrow();
        process.as_ref().map(|process| (process.journal.clone(), process.gone.clone()))
    }

    /// It is sure that it leads.
    pub fn leads(&self) -> bool {
        let process = self.process.borrow();
        let leader = process.as_ref().and_then(|process| process.journal.status().leader);
        leader == Some(self.number.get())
    }

    /// Why it cannot go on, if it cannot.
    fn died(&self) -> Option<String> {
        self.process.borrow().as_ref().and_then(|process| process.died.lock().clone())
    }

    /// Waits until the process is no more, or cannot go on. Returns why, in the second case.
    async fn ended(&self) -> Option<String> {
        loop {
            if let Some(why) = self.died() {
                return Some(why);
            }
            if self.process.borrow().is_none() {
                return None;
            }
            self.ended.notified().await;
        }
    }
}

impl World {
    /// Starts a server again, whenever it has died.
    pub async fn keep_up(self: Rc<Self>, place: usize) {
        let mut chance = Rng::stream(self.seed ^ place as u64, "keeper");
        loop {
            match self.start(place).await {
                Started::Lives => {
                    let why = self.servers[place].ended().await;
                    why.into_iter().for_each(|why| self.bury(place, &why));
                }
                Started::Failed => self.servers[place].lose_power(),
                Started::Damaged(why) => self.find_damage(place, &why),
            }
            let most = if self.calm.get() { DOWN_IN_CALM } else { self.options.down_max };
            sleep(std::time::Duration::from_nanos(chance.below(most.0 as u64))).await;
        }
    }

    /// A process that could not go on has ended by itself.
    fn bury(self: &Rc<Self>, place: usize, why: &str) {
        let server = &self.servers[place];
        self.tell(format_args!("server {place} cannot go on: {why}"));
        if why.contains("panicked") {
            self.violated("a server goes on unless its disk fails", format!("server {place}: {why}"));
        }
        match server.flipped.get() {
            true => self.begin_anew(place),
            false => server.lose_power(),
        }
    }

    fn find_damage(self: &Rc<Self>, place: usize, why: &str) {
        self.tell(format_args!("server {place} finds that {why}"));
        match self.servers[place].flipped.get() {
            true => self.begin_anew(place),
            false => self.violated("C3 a crash alone damages no log", format!("server {place}: {why}")),
        }
    }

    /// Starts a process on the disk that is there.
    async fn start(self: &Rc<Self>, place: usize) -> Started {
        let (server, number) = (&self.servers[place], self.servers[place].number.get());
        let seed = self.next_seed();
        let (wakes, woken) = unbounded_channel();
        let (gone, died) = (Arc::<Gone>::default(), Died::default());
        let links = self.network.links(number, &gone);
        let disk = server.disk.borrow().clone();
        let files = disk::files(disk.clone(), self.bug);
        let (settings, driving) =
            (self.settings(server, number, seed), self.driving(server, seed, died.clone()));
        let ear = Ear(wakes.clone());
        let opened = RaftJournal::open_on(files, settings, links, ear, driving).await;
        if disk.is_off() {
            gone.go();
            return Started::Failed;
        }
        let journal = match opened {
            Ok(journal) => journal,
            Err(OpenError::Store(why @ StoreError::Damaged { .. })) => {
                return Started::Damaged(why.to_string());
            }
            Err(OpenError::Store(StoreError::Io { .. })) => return Started::Failed,
            Err(other) => return Started::Damaged(other.to_string()),
        };
        self.network.join(number, &journal, &gone);
        self.tell(format_args!("server {place} starts as number {number}"));
        self.see(&Fact::Restarted { server: place });
        let process = Process::begin(self, place, Begin { journal, gone, died, seed, wakes, woken });
        server.process.replace(Some(process));
        Started::Lives
    }

    fn settings(&self, server: &Server, number: u64, seed: u64) -> Settings {
        let log = self.options.log;
        Settings {
            dir: Default::default(),
            node: number,
            address: address(number),
            segment_bytes: log.segment_bytes,
            retention: log.retention,
            archive: None,
            keep: None,
            tail: log.tail,
            found: if self.servers.len() == 1 { Found::Alone } else { Found::Wait },
            timings: by(&server.clock.borrow()),
            seed,
        }
    }

    fn driving(&self, server: &Server, seed: u64, died: Died) -> Driving {
        let delays = Mutex::new(Rng::stream(seed, "disk delays"));
        let (most, stalled) = (self.options.disk_max.0 as u64, server.stalled_disk.clone());
        let ended = server.ended.clone();
        Driving {
            delay: Arc::new(move || {
                let usual = std::time::Duration::from_nanos(delays.lock().below(most + 1));
                usual + std::time::Duration::from_micros(stalled.swap(0, Ordering::Relaxed))
            }),
            fatal: Arc::new(move |why| {
                died.lock().get_or_insert_with(|| why.to_string());
                ended.notify_one();
            }),
        }
    }
}

/// The log waits in true time, as there is but one in a run, so all that a server waits for is as much shorter as its clock
/// is too fast.
fn by(clock: &SimClock) -> Timings {
    let Timings { heartbeat, election } = Timings::default();
    let truly = |span: std::time::Duration| clock.takes(span.into()).to_std();
    Timings { heartbeat: truly(heartbeat), election: truly(election.start)..truly(election.end) }
}

pub fn address(number: u64) -> String {
    format!("server-{number}:4647")
}

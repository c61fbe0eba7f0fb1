//! What goes wrong, and how often.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration as Span;

use base::{Duration, Rng};
use journal::Journal;
use journal::store::simulated::Operation;
use tokio::time::sleep;

use super::world::World;
use crate::clock::draw_speed;
use crate::options::Every;

/// How long a link is cut, a disk is full, something stands still, at most.
const LASTS_MAX: Duration = Duration::from_secs(10);

/// The farthest a clock is stepped.
const STEP_MAX: Duration = Duration::from_secs(120);

/// A sync that is to fail is one of the next so many.
const SYNCS_MAX: u64 = 5;

/// How soon the power goes after a failed sync, if it does, at most, in milliseconds.
const POWER_GOES_MAX: u64 = 200;

/// How long a changed byte may stay unnoticed before the server is put aside, at most.
const UNNOTICED_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// As `kill -9`: the system keeps what was written.
    Kill,
    /// An orderly end.
    Stop,
    LosePower,
    AllLosePower,
    /// Nothing passes between a server and all others.
    Isolate,
    /// Nothing passes from one server to another.
    CutOneWay,
    Transfer,
    FillDisk,
    FailSync,
    StallDisk,
    StallSequencer,
    StepClock,
    LoseDisk,
    FlipByte,
    ChangeMembers,
    DriftClock,
}

impl Fault {
    pub const ALL: [Fault; 16] = [
        Fault::Kill,
        Fault::Stop,
        Fault::LosePower,
        Fault::AllLosePower,
        Fault::Isolate,
        Fault::CutOneWay,
        Fault::Transfer,
        Fault::FillDisk,
        Fault::FailSync,
        Fault::StallDisk,
        Fault::StallSequencer,
        Fault::StepClock,
        Fault::LoseDisk,
        Fault::FlipByte,
        Fault::ChangeMembers,
        Fault::DriftClock,
    ];

    /// Half of them are off in any run.
    pub fn every(self, rng: &mut Rng) -> Every {
        let (least, most) = match self {
            Fault::Kill | Fault::LosePower | Fault::Isolate | Fault::CutOneWay => (3, 20),
            Fault::Stop | Fault::StallDisk | Fault::StallSequencer | Fault::StepClock | Fault::DriftClock => {
                (5, 30)
            }
            Fault::Transfer | Fault::FillDisk | Fault::FailSync | Fault::ChangeMembers => (5, 30),
            Fault::AllLosePower | Fault::LoseDisk | Fault::FlipByte => (10, 40),
        };
        crate::options::often(rng, least, most)
    }
}

impl World {
    /// One kind of fault, until the storm is over.
    pub async fn keep_breaking(self: Rc<Self>, fault: Fault, every: Duration) {
        let mut rng = Rng::stream(self.seed, &format!("{fault:?}"));
        loop {
            sleep(Span::from_nanos(rng.below(2 * every.0 as u64))).await;
            if self.calm.get() {
                return;
            }
            let place = rng.below(self.servers.len() as u64) as usize;
            self.break_something(fault, place, &mut rng).await;
        }
    }

    async fn break_something(self: &Rc<Self>, fault: Fault, place: usize, rng: &mut Rng) {
        match fault {
            Fault::Kill => {
                self.tell(format_args!("server {place} is killed"));
                self.servers[place].kill();
            }
            Fault::Stop => self.stop(place).await,
            Fault::LosePower => self.lose_power(place),
            Fault::AllLosePower => (0..self.servers.len()).for_each(|place| self.lose_power(place)),
            Fault::Isolate => self.isolate(place, lasts(rng)),
            Fault::CutOneWay => self.cut_one_way(place, rng),
            Fault::Transfer => self.transfer(place).await,
            Fault::FillDisk => self.fill_disk(place, lasts(rng)).await,
            Fault::FailSync => self.fail_sync(place, rng).await,
            Fault::StallDisk => {
                let micros = lasts(rng).as_micros() as u64;
                self.tell(format_args!("the disk of server {place} stands still for {} ms", micros / 1_000));
                self.servers[place].stalled_disk.store(micros, Ordering::Relaxed);
            }
            Fault::StallSequencer => {
                let span = lasts(rng);
                self.tell(format_args!("server {place} does not decide for {} ms", span.as_millis()));
                self.servers[place].stalled.set(span);
            }
            Fault::StepClock => self.step_clock(place, rng),
            Fault::DriftClock => self.drift_clock(place, draw_speed(rng, self.options.drift_max)),
            Fault::LoseDisk => self.lose_disk(place),
            Fault::FlipByte => self.flip_byte(place, rng).await,
            Fault::ChangeMembers => self.change_members(place, rng).await,
        }
    }

    async fn stop(&self, place: usize) {
        let Some((journal, gone)) = self.servers[place].journal() else { return };
        self.tell(format_args!("server {place} is stopped"));
        if gone.unless(async move { journal.shutdown().await }).await.is_some() {
            self.servers[place].kill();
        }
    }

    fn lose_power(&self, place: usize) {
        self.tell(format_args!("server {place} loses power"));
        self.servers[place].lose_power();
    }

    fn isolate(&self, place: usize, span: Span) {
        self.tell(format_args!("server {place} is cut off for {} ms", span.as_millis()));
        for other in (0..self.servers.len()).filter(|other| *other != place) {
            self.cut(place, other, span);
            self.cut(other, place, span);
        }
    }

    fn cut_one_way(&self, from: usize, rng: &mut Rng) {
        let (to, span) = (rng.below(self.servers.len() as u64) as usize, lasts(rng));
        self.tell(format_args!("nothing of server {from} reaches server {to} for {} ms", span.as_millis()));
        self.cut(from, to, span);
    }

    fn cut(&self, from: usize, to: usize, span: Span) {
        let number = |place: usize| self.servers[place].number.get();
        self.network.cut_for(number(from), number(to), span);
    }

    async fn transfer(&self, place: usize) {
        let Some((journal, gone)) = self.servers[place].journal() else { return };
        let handed = gone.unless(async move { journal.transfer(None).await }).await;
        self.tell(format_args!("server {place} was to hand leadership over: {handed:?}"));
    }

    async fn fill_disk(&self, place: usize, span: Span) {
        self.tell(format_args!("the disk of server {place} is full for {} ms", span.as_millis()));
        let disk = self.servers[place].disk.borrow().clone();
        disk.set_capacity(Some(disk.used()));
        sleep(span).await;
        // It may have another one by now, made of this one.
        self.servers[place].disk.borrow().set_capacity(None);
    }

    /// Where a disk fails, the power may go soon.
    async fn fail_sync(&self, place: usize, rng: &mut Rng) {
        self.tell(format_args!("a sync of server {place} will fail"));
        self.servers[place].disk.borrow().fail(Operation::Sync, rng.below(SYNCS_MAX));
        if rng.below(2) == 0 {
            sleep(Span::from_millis(rng.below(POWER_GOES_MAX))).await;
            self.lose_power(place);
        }
    }

    fn step_clock(&self, place: usize, rng: &mut Rng) {
        let ahead = Duration(rng.below(2 * STEP_MAX.0 as u64) as i64 - STEP_MAX.0);
        self.tell(format_args!("the clock of server {place} is {} ms ahead", ahead.as_millis()));
        self.servers[place].clock.borrow_mut().set(self.now(), ahead);
    }

    /// What it waits for in its log follows at its next start (`server.rs`).
    pub fn drift_clock(&self, place: usize, fast: i64) {
        self.tell(format_args!("the clock of server {place} is too fast by {fast} parts in a million"));
        let mut clock = self.servers[place].clock.borrow_mut();
        self.astray.set(self.astray.get().max(clock.astray(self.now())));
        clock.drift(self.now(), fast);
    }

    fn lose_disk(self: &Rc<Self>, place: usize) {
        if self.may_damage() {
            self.tell(format_args!("server {place} loses its disk"));
            self.begin_anew(place);
        }
    }

    /// Changes a byte that was safely written long ago. In what was written last, damage looks like a torn write: that
    /// a server lost its last group cannot be noticed (`log/DESIGN.md`).
    async fn flip_byte(self: &Rc<Self>, place: usize, rng: &mut Rng) {
        let server = &self.servers[place];
        let files = server.disk.borrow().files();
        let newest = files.keys().rfind(|name| name.ends_with(".seg")).cloned();
        let kept = |name: &str| {
            name.ends_with(".img") || (name.ends_with(".seg") && Some(name) != newest.as_deref())
        };
        let old: Vec<(&String, usize)> =
            files.iter().filter(|(name, _)| kept(name)).map(|(name, bytes)| (name, bytes.len())).collect();
        let Some((name, bytes)) = old.get(rng.below(old.len().max(1) as u64) as usize) else { return };
        if !self.may_damage() {
            return;
        }
        let byte = rng.below(*bytes as u64) as usize;
        self.tell(format_args!("byte {byte} of {name} of server {place} is changed"));
        server.disk.borrow().flip(name, byte, 1 << rng.below(8));
        server.flipped.set(true);
        if rng.below(2) == 0 {
            server.kill();
        }
        sleep(Span::from_nanos(rng.below(UNNOTICED_MAX.0 as u64))).await;
        if server.flipped.get() {
            self.audit(place);
            self.begin_anew(place);
        }
    }

    /// Whatever a server reads in its log is what was committed. What it cannot read it may refuse.
    fn audit(&self, place: usize) {
        let Some((journal, _)) = self.servers[place].journal() else { return };
        let mut next = journal.horizon();
        while next <= journal.committed() {
            let read = journal.read(next, 1);
            let mut scene = self.scene.borrow_mut();
            read.iter().flatten().for_each(|batch| scene.in_log(place, batch));
            next = next.next();
        }
    }
}

fn lasts(rng: &mut Rng) -> Span {
    Span::from_nanos(rng.below(LASTS_MAX.0 as u64))
}

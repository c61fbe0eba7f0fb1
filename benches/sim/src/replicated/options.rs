//! What a seed turns on in this layer, and how often.

use std::fmt;

use base::{Duration, Rng};
use raft::{Retention, Tail};

use super::fault::Fault;
use crate::options::{DRIFTS, Every, Network, millis, pick};

/// Everything that is drawn before the first step.
#[derive(Clone, Debug)]
pub struct Options {
    pub servers: usize,
    pub clients: usize,
    pub readers: usize,
    pub jobs: usize,
    /// How long faults go on.
    pub storm: Duration,
    /// Parts in a million by which a clock is too fast or too slow, at most.
    pub drift_max: i64,
    /// Between two things that a client asks, at most.
    pub pause_max: Duration,
    pub network: Network,
    /// A step of a disk takes up to this long.
    pub disk_max: Duration,
    /// A sequencer gets its turn up to so much later.
    pub turn_max: Duration,
    /// How long a server stays dead at most.
    pub down_max: Duration,
    /// Commands decided in one batch at most.
    pub batch_max: u64,
    /// Between two images of a server.
    pub image: Every,
    pub log: LogSizes,
    /// How often each fault that is on comes.
    pub faults: Vec<(Fault, Duration)>,
}

/// So small that segments are sealed, and followers need images, all the time.
#[derive(Clone, Copy, Debug)]
pub struct LogSizes {
    pub segment_bytes: u64,
    pub retention: Retention,
    pub tail: Tail,
}

impl Options {
    pub fn draw(seed: u64) -> Options {
        let mut rng = Rng::stream(seed, "options of the log");
        let rng = &mut rng;
        Options {
            servers: pick(rng, &[1, 3, 3, 3, 3, 5]),
            clients: 1 + rng.below(3) as usize,
            readers: 1 + rng.below(2) as usize,
            jobs: 1 + rng.below(4) as usize,
            storm: Duration::from_secs(pick(rng, &[20, 40, 80])),
            drift_max: pick(&mut Rng::stream(seed, "drift of the log"), &DRIFTS),
            pause_max: millis(rng, 20, 1_000),
            network: Network {
                delay_max: Duration::from_millis(pick(rng, &[1, 10, 60, 200])),
                lost: pick(rng, &[0, 0, 10, 60]),
                twice: pick(rng, &[0, 0, 20]),
                late: pick(rng, &[0, 0, 5, 20]),
            },
            disk_max: Duration::from_millis(pick(rng, &[1, 5, 30])),
            turn_max: Duration::from_millis(pick(rng, &[0, 2, 50])),
            down_max: Duration::from_millis(pick(rng, &[500, 3_000, 15_000])),
            batch_max: pick(rng, &[1, 3, 1_000]),
            image: pick(rng, &[None, Some(2), Some(5), Some(20)]).map(Duration::from_secs),
            log: LogSizes::draw(rng),
            faults: Fault::ALL.into_iter().filter_map(|fault| Some((fault, fault.every(rng)?))).collect(),
        }
    }
}

impl LogSizes {
    fn draw(rng: &mut Rng) -> LogSizes {
        let segment_bytes = pick(rng, &[4 << 10, 16 << 10, 64 << 10]);
        let segments = pick(rng, &[2, 4, 1_000]);
        LogSizes {
            segment_bytes,
            retention: Retention { bytes: segments * segment_bytes, age: None },
            tail: Tail { entries: pick(rng, &[0, 5, 20, 1_000]), bytes: pick(rng, &[8 << 10, 64 << 20]) },
        }
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { servers, clients, readers, jobs, storm, .. } = self;
        let millis = |span: Duration| span.as_millis();
        writeln!(
            f,
            "{servers} servers, {clients} clients on {jobs} jobs, {readers} readers; storm of {} s; clocks too fast or slow by up to {} parts in a million",
            millis(*storm) / 1_000,
            self.drift_max
        )?;
        writeln!(f, "{:?}", self.network)?;
        writeln!(
            f,
            "at most: {} ms between questions, {} ms a disk's step, {} ms a turn, {} ms dead, {} commands a batch",
            millis(self.pause_max),
            millis(self.disk_max),
            millis(self.turn_max),
            millis(self.down_max),
            self.batch_max
        )?;
        writeln!(f, "images every {:?}; {:?}", self.image, self.log)?;
        let faults =
            self.faults.iter().map(|(fault, every)| format!("{fault:?} {} s", millis(*every) / 1_000));
        write!(f, "faults, every: {}", faults.collect::<Vec<_>>().join(", "))
    }
}

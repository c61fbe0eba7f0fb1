//! What is drawn of a federation before the first step.

use std::fmt;

use base::{Duration, Rng};

use crate::options::{Every, Options, millis, often, pick};

/// The regions by their names; the first decides for all.
pub(super) const NAMES: [&str; 3] = ["a", "b", "c"];

/// How long faults and operations go on everywhere.
const STORM: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(super) struct RegionsOptions {
    pub regions: Vec<Options>,
    pub links: Links,
    pub work: Work,
    /// After the storm no region reaches another one for this long at least.
    pub apart: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Links {
    pub delay_max: Duration,
    /// Messages in a thousand that are lost.
    pub lost: u64,
    /// Messages in a thousand that come twice.
    pub twice: u64,
    /// Messages in a thousand that take up to 30 s.
    pub late: u64,
    /// A link is cut, one way or both.
    pub cut: Every,
}

/// Of all regions together.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Somebody writes what all regions have in common.
    pub shared: Duration,
    /// Somebody writes a token that is of one region.
    pub local: Duration,
    /// Somebody writes in a region what another one decides.
    pub stray: Every,
    /// A job is registered in several regions, or stopped in them.
    pub spread: Every,
}

impl RegionsOptions {
    pub fn draw(seed: u64) -> RegionsOptions {
        let mut rng = Rng::stream(seed, "regions");
        let rng = &mut rng;
        let count = 2 + rng.below(2) as usize;
        RegionsOptions {
            regions: (0..count).map(|region| region_of(seed, region)).collect(),
            links: Links {
                delay_max: millis(rng, 5, 400),
                lost: pick(rng, &[0, 5, 50]),
                twice: pick(rng, &[0, 20, 100]),
                late: pick(rng, &[0, 5, 20]),
                cut: often(rng, 5, 40),
            },
            work: Work {
                shared: Duration::from_millis(pick(rng, &[500, 1_500, 5_000])),
                local: Duration::from_secs(pick(rng, &[5, 20])),
                stray: often(rng, 5, 30),
                spread: (rng.below(4) > 0).then(|| Duration::from_secs(8 + rng.below(20) as i64)),
            },
            apart: Duration::from_secs(pick(rng, &[10, 60, 150])),
        }
    }
}

/// A small cluster with everything that a seed of the first layer may turn on, but for what has nothing to do with other regions.
fn region_of(seed: u64, region: usize) -> Options {
    let mut options = Options::draw(seed_of(seed, region));
    let mut rng = Rng::stream(seed_of(seed, region), "region");
    options.servers = options.servers.min(3);
    options.nodes = 1 + rng.below(3) as usize;
    options.jobs = 1 + rng.below(2) as usize;
    (options.clients, options.workers_per_server, options.readers) = (1, 1, 1);
    options.storm = STORM;
    options.tasks.run_max = Duration::from_secs(30);
    let operations = &mut options.operations;
    (operations.volume, operations.variable, operations.cursor) = (None, None, None);
    options
}

/// Regions have nothing in common that chance decides.
pub(super) fn seed_of(seed: u64, region: usize) -> u64 {
    Rng::stream(seed ^ (region as u64) << 32, "seed of a region").next()
}

impl fmt::Display for RegionsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}\n{:?}\napart for {} s", self.links, self.work, self.apart.as_millis() / 1_000)?;
        for (region, options) in NAMES.iter().zip(&self.regions) {
            write!(f, "region {region}: {options}")?;
        }
        Ok(())
    }
}

//! What a run is asked to do, and its bounds.

use std::time::Duration;

use anyhow::bail;

pub(crate) const NODES_MAX: u32 = 100_000;
const CLIENTS_MAX: u32 = 10_000;
const SUBSCRIBERS_MAX: u32 = 20_000;
const RATE_MAX: f64 = 100_000.0;
/// As many as numbers of eight digits name.
const JOBS_MAX: u32 = 10_000_000;
const COUNT_MAX: u32 = 100_000;
/// Allocations of one run: each is remembered.
pub const ALLOCS_MAX: u32 = 20_000_000;
const TIME_MAX: Duration = Duration::from_secs(24 * 3600);
const STEPS_MAX: u32 = 50;

/// What a task of a job asks for.
pub(crate) const JOB_MHZ: u64 = 20;
pub(crate) const JOB_MIB: u64 = 32;

/// A run against a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// `http://HOST:PORT`.
    pub address: String,
    pub token: String,
    /// Empty for the server's default.
    pub namespace: String,
    /// `HOST:PORT` of the node RPC; that of the leader unless given.
    pub rpc: Option<String>,
    /// In the names of everything that the run creates, so that no two runs meet.
    pub run: String,
    pub nodes: u32,
    /// Nodes fetch their allocations and report them running; otherwise they only send heartbeats.
    pub live: bool,
    pub node_mhz: u32,
    pub node_mib: u32,
    /// Instead of the time that the server grants.
    pub beat_every: Option<Duration>,
    /// So many nodes fall silent in the middle of the run.
    pub failing: u32,
    /// Connections over which nodes speak.
    pub rpc_connections: u32,
    pub load: Load,
    /// Jobs at most.
    pub jobs: u32,
    /// Allocations of each.
    pub count: u32,
    pub batch: bool,
    /// For how long jobs are submitted; of each step of a ramp.
    pub time: Duration,
    /// How long to wait for what is not placed yet.
    pub settle: Duration,
    /// Readers of the whole event stream besides.
    pub subscribers: u32,
    /// The server's process, if it is on this host.
    pub pid: Option<u32>,
    /// Time a loop that is always the same, too.
    pub calibrate: bool,
    pub seed: u64,
}

#[derive(Clone, Debug)]
pub enum Load {
    /// No jobs: heartbeats and subscribers alone.
    None,
    /// Each of these clients submits its next job after the last one.
    Closed { clients: u32, wait: Wait },
    /// Jobs come at a rate, however those before are doing.
    Open { rate: f64, connections: u32, ramp: Option<Ramp> },
}

/// When a client of a closed loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Accepted,
    Placed,
    Running,
}

/// The rate is multiplied by this from step to step, until a percentile is beyond the limit.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    pub factor: f64,
    /// For the 99th percentile of the time from the intended submission to the placement.
    pub limit: Duration,
}

impl Ramp {
    pub(crate) const STEPS_MAX: u32 = STEPS_MAX;
}

impl ClusterOptions {
    /// # Errors
    /// What is out of bounds, by the name of its flag.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.namespace == "*" {
            bail!("-namespace: expected one namespace, not all of them");
        }
        within("nodes", self.nodes, 0, NODES_MAX)?;
        within("node-cpu", self.node_mhz, JOB_MHZ as u32, 100_000_000)?;
        within("node-memory", self.node_mib, JOB_MIB as u32, 100_000_000)?;
        within("fail", self.failing, 0, self.nodes)?;
        within("rpc-connections", self.rpc_connections, 1, 1_000)?;
        within("jobs", self.jobs, 0, JOBS_MAX)?;
        within("count", self.count, 1, COUNT_MAX)?;
        within("subscribers", self.subscribers, 0, SUBSCRIBERS_MAX)?;
        span("time", self.time, Duration::from_millis(100))?;
        span("settle", self.settle, Duration::ZERO)?;
        if let Some(every) = self.beat_every {
            span("beat-every", every, Duration::from_millis(10))?;
        }
        match &self.load {
            Load::None => Ok(()),
            Load::Closed { clients, wait } => {
                within("clients", *clients, 1, CLIENTS_MAX)?;
                if *wait == Wait::Running && !self.live {
                    bail!("-wait running: expected with -live, for other nodes run nothing");
                }
                self.check_jobs()
            }
            Load::Open { rate, connections, ramp } => {
                within("connections", *connections, 1, CLIENTS_MAX)?;
                if !(0.01..=RATE_MAX).contains(rate) {
                    bail!("-rate: expected 0.01 to {RATE_MAX} jobs a second, not {rate}");
                }
                if let Some(ramp) = ramp.filter(|ramp| !(1.01..=10.0).contains(&ramp.factor)) {
                    bail!("-ramp: expected a factor of 1.01 to 10, not {}", ramp.factor);
                }
                if let Some(ramp) = ramp {
                    span("limit", ramp.limit, Duration::from_millis(1))?;
                }
                self.check_jobs()
            }
        }
    }

    fn check_jobs(&self) -> anyhow::Result<()> {
        if self.nodes == 0 {
            bail!("-nodes: expected at least 1, for jobs run on nodes of the run alone");
        }
        let allocs = u64::from(self.jobs) * u64::from(self.count);
        if allocs > u64::from(ALLOCS_MAX) {
            bail!("-jobs: {} of {} allocations each are more than {ALLOCS_MAX}", self.jobs, self.count);
        }
        Ok(())
    }

    /// How many allocations find room on the nodes. Half of their racks are suitable.
    pub(crate) fn room(&self) -> u64 {
        let each = (u64::from(self.node_mhz) / JOB_MHZ).min(u64::from(self.node_mib) / JOB_MIB);
        let suitable = (0..self.nodes).filter(|number| crate::fleet::is_suitable(*number)).count();
        each * suitable as u64
    }
}

fn within(flag: &str, given: u32, least: u32, most: u32) -> anyhow::Result<()> {
    if !(least..=most).contains(&given) {
        bail!("-{flag}: expected {least} to {most}, not {given}");
    }
    Ok(())
}

fn span(flag: &str, given: Duration, least: Duration) -> anyhow::Result<()> {
    if !(least..=TIME_MAX).contains(&given) {
        bail!("-{flag}: expected {least:?} to 24h, not {given:?}");
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn usual() -> ClusterOptions {
        ClusterOptions {
            address: "http://127.0.0.1:4646".to_string(),
            token: String::new(),
            namespace: String::new(),
            rpc: None,
            run: "0a1b2c3d".to_string(),
            nodes: 100,
            live: false,
            node_mhz: 64_000,
            node_mib: 131_072,
            beat_every: None,
            failing: 0,
            rpc_connections: 8,
            load: Load::Closed { clients: 64, wait: Wait::Accepted },
            jobs: 1_000,
            count: 1,
            batch: false,
            time: Duration::from_secs(10),
            settle: Duration::from_secs(30),
            subscribers: 0,
            pid: None,
            calibrate: false,
            seed: 1,
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_named_by_its_flag() {
        type Change = fn(&mut ClusterOptions);
        let cases: [(Change, &str); 9] = [
            (
                |options| options.namespace = "*".to_string(),
                "-namespace: expected one namespace, not all of them",
            ),
            (|options| options.nodes = 100_001, "-nodes: expected 0 to 100000, not 100001"),
            (|options| options.failing = 101, "-fail: expected 0 to 100, not 101"),
            (|options| options.count = 0, "-count: expected 1 to 100000, not 0"),
            (|options| options.time = Duration::ZERO, "-time: expected 100ms to 24h, not 0ns"),
            (
                |options| options.nodes = 0,
                "-nodes: expected at least 1, for jobs run on nodes of the run alone",
            ),
            (
                |options| options.load = Load::Closed { clients: 1, wait: Wait::Running },
                "-wait running: expected with -live, for other nodes run nothing",
            ),
            (
                |options| options.load = Load::Open { rate: 0.0, connections: 1, ramp: None },
                "-rate: expected 0.01 to 100000 jobs a second, not 0",
            ),
            (
                |options| (options.jobs, options.count) = (1_000, 100_000),
                "-jobs: 1000 of 100000 allocations each are more than 20000000",
            ),
        ];
        usual().check().unwrap();
        for (change, message) in cases {
            let mut options = usual();
            change(&mut options);
            assert_eq!(options.check().unwrap_err().to_string(), message);
        }
    }
}

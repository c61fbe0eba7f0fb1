//! What a seed turns on, and how often: a swarm of runs covers more than many runs of one kind.

use std::fmt;

use base::{Duration, Rng};

/// How often something happens on average; `None` is never.
pub type Every = Option<Duration>;

/// Everything that is drawn before the first step.
#[derive(Clone, Debug)]
pub struct Options {
    pub servers: usize,
    pub nodes: usize,
    pub jobs: usize,
    pub clients: usize,
    pub workers_per_server: usize,
    pub readers: usize,
    /// How long faults and operations go on.
    pub storm: Duration,
    pub network: Network,
    pub log: LogOptions,
    pub faults: Faults,
    pub operations: Operations,
    pub tasks: Tasks,
}

#[derive(Clone, Debug)]
pub struct Network {
    /// The usual longest way of a message.
    pub delay_max: Duration,
    /// Messages in a thousand that are lost.
    pub lost: u64,
    /// Answers in a thousand that come twice.
    pub twice: u64,
    /// Messages in a thousand that take up to 30 s.
    pub late: u64,
}

#[derive(Clone, Debug)]
pub struct LogOptions {
    pub commit_max: Duration,
    pub learn_max: Duration,
    pub election_max: Duration,
    /// Commands decided in one batch at most: small makes many batches in flight.
    pub batch_max: u64,
    /// Batches from one image of a server's state to the next; never any if it is zero.
    pub image_every: u64,
}

#[derive(Clone, Debug)]
pub struct Faults {
    pub depose: Every,
    pub crash_server: Every,
    pub pause_server: Every,
    pub step_server_clock: Every,
    pub drift_server_clock: Every,
    pub stall_log: Every,
    pub cut_node: Every,
    pub restart_agent: Every,
    pub reboot_node: Every,
    pub step_node_clock: Every,
    pub drift_node_clock: Every,
    pub kill_worker: Every,
    pub slow_worker: Every,
    /// The farthest a clock is stepped.
    pub step_max: Duration,
    /// Parts in a million by which a clock is too fast or too slow, at most.
    pub drift_max: i64,
}

#[derive(Clone, Debug)]
pub struct Operations {
    /// Of each client.
    pub write: Every,
    pub eligibility: Every,
    pub stop_alloc: Every,
    pub evaluate: Every,
    pub deregister_node: Every,
    pub change_node: Every,
    pub drain: Every,
    pub dispatch: Every,
    pub scale: Every,
    pub steer_deployment: Every,
    pub configure_scheduler: Every,
    /// Jobs mount volumes if there is any such operation.
    pub volume: Every,
    /// Variables are set, and locked by clients that do not renew.
    pub variable: Every,
    /// Cursors of the stream are moved on, split and reset.
    pub cursor: Every,
    /// Of each reader: it goes to another server.
    pub move_reader: Every,
}

#[derive(Clone, Debug)]
pub struct Tasks {
    pub start_max: Duration,
    /// Task runs in a thousand that end in a failure.
    pub failing: u64,
    pub run_max: Duration,
    pub kill_max: Duration,
}

impl Options {
    pub fn draw(seed: u64) -> Options {
        let mut rng = Rng::stream(seed, "options");
        let rng = &mut rng;
        let nodes_max = pick(rng, &[3, 8, 30]);
        Options {
            servers: pick(rng, &[1, 3, 3, 3, 5]),
            nodes: 1 + rng.below(nodes_max) as usize,
            jobs: 1 + rng.below(8) as usize,
            clients: 1 + rng.below(3) as usize,
            workers_per_server: 1 + rng.below(2) as usize,
            readers: 1 + rng.below(2) as usize,
            storm: Duration::from_secs(pick(rng, &[60, 120, 240])),
            network: Network::draw(rng),
            log: LogOptions::draw(rng),
            faults: Faults::draw(rng, &mut Rng::stream(seed, "drift")),
            operations: Operations::draw(
                rng,
                &mut Rng::stream(seed, "volume requests"),
                &mut Rng::stream(seed, "variables"),
                &mut Rng::stream(seed, "cursors"),
            ),
            tasks: Tasks {
                start_max: millis(rng, 50, 5_000),
                failing: pick(rng, &[0, 0, 20, 200]),
                run_max: Duration::from_secs(pick(rng, &[5, 30, 120])),
                kill_max: millis(rng, 50, 8_000),
            },
        }
    }
}

impl Network {
    fn draw(rng: &mut Rng) -> Network {
        Network {
            delay_max: millis(rng, 2, 200),
            lost: pick(rng, &[0, 0, 5, 50]),
            twice: pick(rng, &[0, 0, 20]),
            late: pick(rng, &[0, 0, 5, 20]),
        }
    }
}

impl LogOptions {
    fn draw(rng: &mut Rng) -> LogOptions {
        LogOptions {
            commit_max: millis(rng, 2, 300),
            learn_max: millis(rng, 2, 500),
            election_max: millis(rng, 200, 5_000),
            batch_max: pick(rng, &[1, 3, 1_000]),
            image_every: pick(rng, &[0, 3, 20, 100]),
        }
    }
}

impl Faults {
    fn draw(rng: &mut Rng, of_drift: &mut Rng) -> Faults {
        Faults {
            depose: often(rng, 10, 120),
            crash_server: often(rng, 30, 200),
            pause_server: often(rng, 20, 120),
            step_server_clock: sometimes(rng, 60, 300),
            drift_server_clock: often(of_drift, 10, 120),
            stall_log: often(rng, 20, 200),
            cut_node: often(rng, 5, 100),
            restart_agent: often(rng, 20, 200),
            reboot_node: often(rng, 20, 200),
            step_node_clock: often(rng, 20, 200),
            drift_node_clock: often(of_drift, 10, 120),
            kill_worker: often(rng, 20, 200),
            slow_worker: often(rng, 20, 120),
            step_max: Duration::from_secs(pick(rng, &[1, 20, 120])),
            drift_max: pick(of_drift, &DRIFTS),
        }
    }
}

impl Operations {
    fn draw(rng: &mut Rng, of_volumes: &mut Rng, of_variables: &mut Rng, of_cursors: &mut Rng) -> Operations {
        Operations {
            write: Some(Duration::from_millis(pick(rng, &[500, 3_000, 20_000]))),
            eligibility: often(rng, 10, 200),
            stop_alloc: often(rng, 10, 100),
            evaluate: often(rng, 10, 100),
            deregister_node: sometimes(rng, 30, 200),
            change_node: often(rng, 20, 200),
            drain: often(rng, 15, 120),
            dispatch: often(rng, 5, 60),
            scale: often(rng, 10, 60),
            steer_deployment: often(rng, 10, 60),
            configure_scheduler: often(rng, 15, 60),
            volume: often(of_volumes, 3, 30),
            variable: sometimes(of_variables, 2, 20),
            cursor: sometimes(of_cursors, 2, 20),
            move_reader: often(rng, 5, 60),
        }
    }
}

/// In parts in a million. A crystal is off by some ten, a virtual machine in a bad host by much more.
pub(crate) const DRIFTS: [i64; 5] = [0, 200, 20_000, 20_000, 100_000];

pub(crate) fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// A duration between the two, small ones as likely as large ones.
pub(crate) fn millis(rng: &mut Rng, least: u64, most: u64) -> Duration {
    let doublings = (most / least).max(1).ilog2() as u64 + 1;
    let bound = (least << rng.below(doublings)).min(most);
    Duration::from_millis((bound + rng.below(bound)) as i64)
}

/// On in half of all runs.
pub(crate) fn often(rng: &mut Rng, least: u64, most: u64) -> Every {
    let every = Duration::from_secs((least + rng.below(most - least)) as i64);
    (rng.below(2) == 0).then_some(every)
}

/// On in a fifth of all runs.
pub(crate) fn sometimes(rng: &mut Rng, least: u64, most: u64) -> Every {
    let every = Duration::from_secs((least + rng.below(most - least)) as i64);
    (rng.below(5) == 0).then_some(every)
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { servers, nodes, jobs, clients, workers_per_server, readers, .. } = self;
        writeln!(
            f,
            "{servers} servers with {workers_per_server} workers each, {nodes} nodes, {jobs} jobs, {clients} clients, {readers} readers; storm of {} s",
            self.storm.0 / 1_000_000_000
        )?;
        writeln!(f, "{:?}", self.network)?;
        writeln!(f, "{:?}", self.log)?;
        writeln!(f, "{:?}", self.faults)?;
        writeln!(f, "{:?}", self.operations)?;
        write!(f, "{:?}", self.tasks)
    }
}

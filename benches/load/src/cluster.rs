//! A run against a cluster: nodes are registered, jobs submitted, everything is measured and taken away again.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::calibration;
use crate::cleanup::{self, Leftovers};
use crate::fleet::Fleet;
use crate::http::Agent;
use crate::job::{Names, Registration, in_namespace};
use crate::latency::LatencySummary;
use crate::options::{ClusterOptions, Load, Ramp};
use crate::process::{self, Usage};
use crate::report::{ClusterReport, FailureReport, ProcessReport, StepReport, StreamReport, Units};
use crate::stop::Stop;
use crate::stream::{self, ReaderCounts};
use crate::submit;
use crate::tracker::{self, Tracker};

/// Jobs that are not placed and are asked for by name.
const MISSING_READ_MAX: usize = 100;

/// Subscribers that get nothing for so long have got everything.
const QUIET: Duration = Duration::from_millis(200);

/// Runs, and cleans up whatever happens: also when `interrupt` resolves, and when something fails. `say` gets what is being
/// done, for people who wait.
///
/// # Errors
/// When the options are out of bounds, or the server cannot be reached or does not do what a run needs.
pub async fn run(
    options: ClusterOptions,
    interrupt: impl Future<Output = ()>,
    say: impl Fn(&str),
) -> anyhow::Result<ClusterReport> {
    options.check()?;
    let agent = Agent::find(&options.address, &options.token).await?;
    let server = Server::find(&agent, &options).await?;
    if let Some(pid) = options.pid {
        process::usage(pid)?;
    }
    let fleet = Fleet::connect(&server.rpc, server.region.clone(), &options).await?;
    let (stopping, stop) = Stop::new();
    let mut run = Run {
        stop,
        names: Names::new(&options.run),
        tracker: Tracker::new(options.count, options.failing > 0),
        reader: Arc::default(),
        subscribers: Vec::new(),
        reading: JoinSet::new(),
        steps: Vec::new(),
        registering: Duration::ZERO,
        highest: None,
        agent,
        fleet,
        options,
    };
    let (measured, interrupted) = {
        let mut measuring = pin!(run.measure(&say));
        tokio::select! {
            done = &mut measuring => (done, false),
            () = interrupt => {
                stopping.send_replace(true);
                (measuring.await, true)
            }
        }
    };
    say("cleaning up");
    let leftovers = run.clean_up().await;
    match measured {
        Ok(()) => Ok(run.report(server, interrupted, leftovers)),
        Err(error) if leftovers.is_empty() => Err(error),
        Err(error) => Err(error.context(format!(
            "not cleaned up: {} jobs and {} nodes of run {}",
            leftovers.jobs, leftovers.nodes, run.options.run
        ))),
    }
}

/// The server, as it introduces itself.
struct Server {
    name: String,
    region: String,
    rpc: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentSelf {
    config: AgentConfig,
    member: Member,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct AgentConfig {
    region: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Member {
    name: String,
    tags: std::collections::BTreeMap<String, String>,
}

impl Server {
    async fn find(agent: &Agent, options: &ClusterOptions) -> anyhow::Result<Server> {
        let at = || format!("-address: {}", options.address);
        let own: AgentSelf =
            serde_json::from_slice(&agent.get("/v1/agent/self").await.with_context(at)?.body)
                .with_context(at)?;
        let leader: String =
            serde_json::from_slice(&agent.get("/v1/status/leader").await.with_context(at)?.body)
                .with_context(at)?;
        if leader.is_empty() {
            bail!("-address: {} has no leader", options.address);
        }
        let build = own.member.tags.get("build").cloned().unwrap_or_default();
        Ok(Server {
            name: format!("{} {build}", own.member.name).trim().to_string(),
            region: own.config.region,
            rpc: options.rpc.clone().unwrap_or(leader),
        })
    }
}

struct Run {
    stop: Stop,
    options: ClusterOptions,
    agent: Agent,
    names: Names,
    fleet: Fleet,
    tracker: Tracker,
    reader: Arc<ReaderCounts>,
    subscribers: Vec<Arc<ReaderCounts>>,
    /// The reader and the subscribers.
    reading: JoinSet<()>,
    steps: Vec<StepReport>,
    registering: Duration,
    highest: Option<f64>,
}

/// Everything that is counted, at one moment.
struct Counted {
    at: Instant,
    server: Option<Usage>,
    generator: Usage,
    beats: u64,
    beat_errors: u64,
    calls: u64,
    call_errors: u64,
    reader: [u64; 3],
    subscribers: Vec<[u64; 3]>,
}

fn read(counts: &ReaderCounts) -> [u64; 3] {
    [&counts.events, &counts.bytes, &counts.interruptions].map(|count| count.load(Ordering::Relaxed))
}

impl Run {
    async fn measure(&mut self, say: &impl Fn(&str)) -> anyhow::Result<()> {
        say(&format!("registering {} nodes", self.options.nodes));
        let began = Instant::now();
        self.fleet.register(&self.names, &self.options, &self.stop).await?;
        self.registering = began.elapsed();
        self.open_streams().await?;
        match self.options.load.clone() {
            Load::Open { rate, connections, ramp: Some(ramp) } => {
                self.climb(rate, connections, ramp, say).await
            }
            load => {
                self.step(&load, say).await?;
                Ok(())
            }
        }
    }

    async fn open_streams(&mut self) -> anyhow::Result<()> {
        // From now on: what a server still has of the time before would come first.
        let index = self.agent.get("/v1/nodes?per_page=1").await?.index;
        let path = in_namespace("/v1/event/stream", &self.options);
        let source = stream::Source { agent: self.agent.clone(), path, index };
        if !matches!(self.options.load, Load::None) || self.options.failing > 0 {
            let (tracker, counts) = (self.tracker.clone(), Arc::clone(&self.reader));
            let (names, nodes_fail) = (self.names.clone(), self.options.failing > 0);
            let reader = stream::watch(source.clone(), names, nodes_fail, tracker, counts);
            self.reading.spawn(reader.await?);
        }
        for _ in 0..self.options.subscribers {
            let counts = Arc::new(ReaderCounts::default());
            let subscriber = stream::subscribe(source.clone(), Arc::clone(&counts));
            self.reading.spawn(subscriber.await.context("-subscribers")?);
            self.subscribers.push(counts);
        }
        Ok(())
    }

    /// Steps of rising rates, until one is too much.
    async fn climb(
        &mut self,
        mut rate: f64,
        connections: u32,
        ramp: Ramp,
        say: &impl Fn(&str),
    ) -> anyhow::Result<()> {
        for _ in 0..Ramp::STEPS_MAX {
            let load = Load::Open { rate, connections, ramp: None };
            let report = self.step(&load, say).await?;
            let within = |summary: LatencySummary| summary.p99 <= ramp.limit.as_secs_f64() * 1e3;
            let good = !self.stop.is_set()
                && report.placed_after.is_some_and(within)
                && report.errors == 0
                && report.unplaced == 0;
            if !good {
                break;
            }
            self.highest = Some(rate);
            rate *= ramp.factor;
        }
        Ok(())
    }

    /// Submits, waits for what was submitted, and measures it all.
    async fn step(&mut self, load: &Load, say: &impl Fn(&str)) -> anyhow::Result<StepReport> {
        let title = self.title(load);
        say(&title);
        self.check_room(load)?;
        self.tracker.begin_step();
        let before = self.counted()?;
        let start = self.tracker.now();
        self.submit(load).await;
        let submitting = before.at.elapsed();
        let after_last = self.tracker.step();
        self.settle().await;
        let (after, step) = (self.counted()?, self.tracker.step());
        let span = after.at - before.at;
        let placing =
            step.last_placed.map_or(span, |last| last.saturating_sub(start)).max(submitting.min(span));
        let report = StepReport {
            load: title,
            offered_per_second: match load {
                Load::Open { rate, .. } => Some(*rate),
                Load::None | Load::Closed { .. } => None,
            },
            submitting_seconds: submitting.as_secs_f64(),
            accepted_per_second: step.accepted as f64 / submitting.as_secs_f64(),
            placed_per_second: step.placed as f64 / placing.as_secs_f64(),
            backlog: after_last.accepted.saturating_sub(after_last.placed),
            unplaced: step.accepted.saturating_sub(step.placed),
            unseen: self.unseen().await?,
            ..self.report_of(&before, &after, &step)
        };
        self.steps.push(report.clone());
        Ok(report)
    }

    fn title(&self, load: &Load) -> String {
        let count = match self.options.count {
            1 => String::new(),
            count => format!(" of {count} allocations"),
        };
        let time = self.options.time;
        match load {
            Load::None => format!("no jobs, {time:?}"),
            Load::Closed { clients, wait } => {
                let wait = format!("{wait:?}").to_lowercase();
                format!("closed loop, {clients} clients, each until its job{count} is {wait}, {time:?}")
            }
            Load::Open { rate, .. } => format!("open loop, {rate:.1} jobs/s{count}, {time:?}"),
        }
    }

    /// What cannot be placed for want of room measures nothing.
    fn check_room(&self, load: &Load) -> anyhow::Result<()> {
        let jobs = match load {
            Load::None => return Ok(()),
            Load::Open { rate, .. } => {
                ((rate * self.options.time.as_secs_f64()) as u64).min(u64::from(self.options.jobs))
            }
            // How many come of it shows only when it runs.
            Load::Closed { .. } => return Ok(()),
        };
        let needed = (jobs + u64::from(self.tracker.submitted_ever())) * u64::from(self.options.count);
        let room = self.options.room();
        if needed > room {
            bail!(
                "-nodes: {needed} allocations find no room on {} nodes, which hold {room}: give more nodes, or larger ones \
                 (-node-cpu, -node-memory)",
                self.options.nodes
            );
        }
        Ok(())
    }

    async fn submit(&mut self, load: &Load) {
        let step = submit::Step {
            agent: self.agent.clone(),
            registration: Registration::new(&self.agent, &self.names, &self.options),
            tracker: self.tracker.clone(),
            stop: self.stop.clone(),
            left: self.options.jobs.saturating_sub(self.tracker.submitted_ever()),
            time: self.options.time,
            settle: self.options.settle,
        };
        let (time, seed) = (self.options.time, self.options.seed);
        let stop = self.stop.clone();
        let submit = async {
            match load {
                Load::None => stop.or(tokio::time::sleep(time)).await.unwrap_or(()),
                Load::Closed { clients, wait } => step.closed(*clients, *wait).await,
                Load::Open { rate, connections, .. } => step.open(*rate, *connections, seed).await,
            }
        };
        tokio::join!(submit, self.fail_nodes());
    }

    /// In the middle of the time, those nodes that are to fail fall silent.
    async fn fail_nodes(&mut self) {
        let count = self.options.failing;
        if count == 0 {
            return;
        }
        if self.stop.or(tokio::time::sleep(self.options.time / 2)).await.is_none() {
            return;
        }
        // Those with the most on them, so that something is lost.
        let mut ids: Vec<u128> = self.fleet.ids.iter().map(base::Uuid::as_u128).collect();
        self.tracker.sort_by_allocs(&mut ids);
        ids.truncate(count as usize);
        self.fleet.fail(&ids);
        self.tracker.nodes_failed(ids.into_iter().collect());
    }

    /// How many of the jobs that were not seen placed have allocations all the same: what the stream has left out. Some are
    /// looked at.
    async fn unseen(&self) -> anyhow::Result<u64> {
        let mut unseen = 0;
        for job in self.tracker.missing().into_iter().take(MISSING_READ_MAX) {
            let path = in_namespace(&format!("/v1/job/{}/allocations", self.names.job(job)), &self.options);
            let answer: serde_json::Value = serde_json::from_slice(&self.agent.get(&path).await?.body)?;
            unseen += u64::from(answer.as_array().is_some_and(|allocs| !allocs.is_empty()));
        }
        Ok(unseen)
    }

    /// Waits until everything is placed, and runs if it can, but not for ever.
    async fn settle(&self) {
        let live = self.options.live;
        let all = async {
            let mut changed = self.tracker.changed();
            loop {
                changed.borrow_and_update();
                let step = self.tracker.totals();
                let placed = step.placed >= step.accepted && (!live || step.running >= step.accepted);
                if placed && self.tracker.is_recovered() {
                    return self.subscribers_are_quiet().await;
                }
                // The sender lives as long as the tracker.
                let _ = changed.changed().await;
            }
        };
        // What is not there by then is counted.
        let _ = self.stop.or(tokio::time::timeout(self.options.settle, all)).await;
    }

    /// Until subscribers, which may be behind the reader, get nothing any more.
    async fn subscribers_are_quiet(&self) {
        let events = || self.subscribers.iter().map(|counts| read(counts)[0]).sum::<u64>();
        let mut before = None;
        while !self.subscribers.is_empty() && before.replace(events()) != Some(events()) {
            tokio::time::sleep(QUIET).await;
        }
    }

    fn counted(&self) -> anyhow::Result<Counted> {
        let counts = &self.fleet.shared.counts;
        Ok(Counted {
            at: Instant::now(),
            server: self.options.pid.map(process::usage).transpose()?,
            generator: process::own()?,
            beats: counts.beats.load(Ordering::Relaxed),
            beat_errors: counts.beat_errors.load(Ordering::Relaxed),
            calls: counts.calls.load(Ordering::Relaxed),
            call_errors: counts.call_errors.load(Ordering::Relaxed),
            reader: read(&self.reader),
            subscribers: self.subscribers.iter().map(|counts| read(counts)).collect(),
        })
    }

    fn report_of(&self, before: &Counted, after: &Counted, step: &tracker::Step) -> StepReport {
        let span = after.at - before.at;
        let beats = after.beats - before.beats;
        let deliveries: Vec<[u64; 3]> = before
            .subscribers
            .iter()
            .zip(&after.subscribers)
            .map(|(before, after)| [0, 1, 2].map(|at| after[at] - before[at]))
            .collect();
        let units = Units {
            // What was accepted and not placed costs too, but is no job done.
            jobs: if step.placed > 0 { step.placed } else { step.accepted },
            heartbeats: beats,
            deliveries: deliveries.iter().map(|subscriber| subscriber[0]).sum(),
            span,
        };
        let own = Units { heartbeats: 0, deliveries: 0, ..units };
        let server = before.server.zip(after.server);
        let reader = [0, 1, 2].map(|at| after.reader[at] - before.reader[at]);
        StepReport {
            seconds: span.as_secs_f64(),
            submitted: step.submitted,
            accepted: step.accepted,
            errors: step.errors,
            first_error: step.first_error.clone(),
            placed: step.placed,
            allocations_placed: step.allocs_placed,
            running: step.running,
            accepted_after: step.accepted_after.summary(),
            placed_after: step.placed_after.summary(),
            running_after: step.running_after.summary(),
            server: server.map(|(before, after)| ProcessReport::new(before, after, units)),
            generator: ProcessReport::new(before.generator, after.generator, own),
            heartbeats: beats,
            heartbeat_errors: after.beat_errors - before.beat_errors,
            node_calls: after.calls - before.calls,
            node_call_errors: after.call_errors - before.call_errors,
            failure: self.tracker.failure().map(|(failed, lost)| FailureReport {
                nodes: self.options.failing,
                down_after: failed.down_after.summary(),
                lost,
                replaced: failed.replaced,
                replaced_after: failed.replaced_after.summary(),
            }),
            nodes_down_alive: self.tracker.down_alive(),
            first_node_error: self.fleet.shared.first_error(),
            reader: StreamReport::new(&[reader], span),
            subscribers: (!deliveries.is_empty()).then(|| StreamReport::new(&deliveries, span)),
            ..StepReport::default()
        }
    }

    async fn clean_up(&mut self) -> Leftovers {
        self.reading.shutdown().await;
        let mut left = Leftovers::default();
        let count = self.tracker.submitted_ever();
        cleanup::jobs(&self.agent, &self.names, &self.options, count, &mut left).await;
        self.fleet.stop().await;
        cleanup::nodes(&self.agent, &self.fleet.ids, &mut left).await;
        if !self.fleet.ids.is_empty() {
            cleanup::pool(&self.agent, &self.names, &mut left).await;
        }
        left
    }

    fn report(self, server: Server, interrupted: bool, leftovers: Leftovers) -> ClusterReport {
        let ramp = match &self.options.load {
            Load::Open { ramp, .. } => *ramp,
            Load::None | Load::Closed { .. } => None,
        };
        ClusterReport {
            run: self.options.run.clone(),
            address: self.options.address.clone(),
            server: server.name,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            nodes: self.options.nodes,
            live: self.options.live,
            subscribers: self.options.subscribers,
            allocations_per_job: self.options.count,
            seed: self.options.seed,
            registering_seconds: self.registering.as_secs_f64(),
            steps: self.steps,
            highest_rate: self.highest,
            ramp_limit_ms: ramp.map(|ramp| ramp.limit.as_secs_f64() * 1e3),
            calibration_ms: self.options.calibrate.then(|| calibration::measure().as_secs_f64() * 1e3),
            interrupted,
            leftovers,
        }
    }
}

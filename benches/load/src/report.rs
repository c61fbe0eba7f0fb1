//! What came of a run, as JSON and as a table.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::cleanup::Leftovers;
use crate::latency::LatencySummary;
use crate::process::Usage;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ClusterReport {
    pub run: String,
    pub address: String,
    /// What the server says it is.
    pub server: String,
    pub processors: usize,
    pub nodes: u32,
    pub live: bool,
    pub subscribers: u32,
    pub allocations_per_job: u32,
    pub seed: u64,
    pub registering_seconds: f64,
    pub steps: Vec<StepReport>,
    /// The last step of a ramp whose 99th percentile was within the limit, without errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp_limit_ms: Option<f64>,
    /// Processor time of a loop that is always the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_ms: Option<f64>,
    /// Ctrl-C.
    pub interrupted: bool,
    pub leftovers: Leftovers,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepReport {
    pub load: String,
    /// From the first submission until nothing was left to wait for.
    pub seconds: f64,
    /// In which jobs were submitted.
    pub submitting_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_second: Option<f64>,
    pub submitted: u64,
    pub accepted: u64,
    pub errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    pub accepted_per_second: f64,
    /// Jobs whose allocations were all placed.
    pub placed: u64,
    pub allocations_placed: u64,
    /// Until the last of them.
    pub placed_per_second: f64,
    pub running: u64,
    /// Accepted and not placed when the last job was submitted.
    pub backlog: u64,
    /// The same at the end of the wait.
    pub unplaced: u64,
    /// Of the first hundred of these, those that have allocations all the same: the event stream has left them out.
    pub unseen: u64,
    #[serde(rename = "AcceptedMs")]
    pub accepted_after: Option<LatencySummary>,
    #[serde(rename = "PlacedMs")]
    pub placed_after: Option<LatencySummary>,
    #[serde(rename = "RunningMs")]
    pub running_after: Option<LatencySummary>,
    pub server: Option<ProcessReport>,
    pub generator: ProcessReport,
    pub heartbeats: u64,
    pub heartbeat_errors: u64,
    pub node_calls: u64,
    pub node_call_errors: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_node_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureReport>,
    /// Nodes that were down though they send heartbeats, since the run began.
    pub nodes_down_alive: u64,
    pub reader: StreamReport,
    pub subscribers: Option<StreamReport>,
}

/// Nodes that fell silent. Times count from then on.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct FailureReport {
    pub nodes: u32,
    #[serde(rename = "DownMs")]
    pub down_after: Option<LatencySummary>,
    /// Allocations that were placed on them.
    pub lost: u64,
    pub replaced: u64,
    #[serde(rename = "ReplacedMs")]
    pub replaced_after: Option<LatencySummary>,
}

/// Events of the stream that were read.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct StreamReport {
    pub deliveries: u64,
    pub bytes: u64,
    pub deliveries_per_second: f64,
    /// The server ended a stream, which was then opened again: events may be missing.
    pub interruptions: u64,
    /// Of the subscriber with the fewest and with the most.
    pub fewest: u64,
    pub most: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ProcessReport {
    pub cpu_seconds: f64,
    /// Of one processor.
    pub cpu_share: f64,
    pub cpu_ms_per_job: Option<f64>,
    pub cpu_us_per_heartbeat: Option<f64>,
    pub cpu_us_per_delivery: Option<f64>,
    pub resident_mib: f64,
    pub resident_mib_before: f64,
    pub resident_kib_per_job: Option<f64>,
}

/// By what the use of processors and memory is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub jobs: u64,
    pub heartbeats: u64,
    pub deliveries: u64,
    pub span: Duration,
}

impl ProcessReport {
    pub(crate) fn new(before: Usage, after: Usage, units: Units) -> ProcessReport {
        let cpu = after.cpu_seconds - before.cpu_seconds;
        let per = |amount: f64, count: u64| (count > 0).then(|| amount / count as f64);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let grown = after.resident_bytes as f64 - before.resident_bytes as f64;
        let idle = units.jobs == 0;
        ProcessReport {
            cpu_seconds: cpu,
            cpu_share: cpu / units.span.as_secs_f64().max(1e-9),
            cpu_ms_per_job: per(cpu * 1e3, units.jobs),
            cpu_us_per_heartbeat: per(cpu * 1e6, units.heartbeats).filter(|_| idle),
            cpu_us_per_delivery: per(cpu * 1e6, units.deliveries),
            resident_mib: mib(after.resident_bytes),
            resident_mib_before: mib(before.resident_bytes),
            resident_kib_per_job: per(grown / 1024.0, units.jobs),
        }
    }
}

impl StreamReport {
    /// Of events, bytes and interruptions of each reader.
    pub(crate) fn new(readers: &[[u64; 3]], span: Duration) -> StreamReport {
        let sum = |at: usize| readers.iter().map(|reader| reader[at]).sum::<u64>();
        let events = || readers.iter().map(|reader| reader[0]);
        StreamReport {
            deliveries: sum(0),
            bytes: sum(1),
            deliveries_per_second: sum(0) as f64 / span.as_secs_f64().max(1e-9),
            interruptions: sum(2),
            fewest: events().min().unwrap_or_default(),
            most: events().max().unwrap_or_default(),
        }
    }
}

impl ClusterReport {
    /// For people.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let kind = if self.live { "live" } else { "bare" };
        let line = format!(
            "{} at {}, {} processors here\n{} {kind} nodes, registered in {:.1} s; {} subscribers; seed {}; run {}\n",
            self.server,
            self.address,
            self.processors,
            self.nodes,
            self.registering_seconds,
            self.subscribers,
            self.seed,
            self.run,
        );
        text.push_str(&line);
        for step in &self.steps {
            text.push('\n');
            step.write(&mut text, self.allocations_per_job, self.processors);
        }
        if let Some(limit) = self.ramp_limit_ms {
            let found = match self.highest_rate {
                Some(rate) => format!("{rate:.0} jobs/s"),
                None => "none of those tried".to_string(),
            };
            let _ = writeln!(text, "\nHighest rate with p99 to placed within {limit:.0} ms: {found}");
        }
        if let Some(loop_ms) = self.calibration_ms {
            let _ = writeln!(text, "\nThe calibration loop took {loop_ms:.2} ms of processor time");
        }
        if self.interrupted {
            text.push_str("\nInterrupted: these are no results\n");
        }
        let left = &self.leftovers;
        if !left.is_empty() {
            let _ = writeln!(
                text,
                "\nNot cleaned up: {} jobs, {} nodes{} of the run {}: {}",
                left.jobs,
                left.nodes,
                if left.pool { " and the node pool" } else { "" },
                self.run,
                left.first_error.as_deref().unwrap_or_default(),
            );
        }
        text
    }
}

impl StepReport {
    fn write(&self, text: &mut String, count: u32, processors: usize) {
        let _ = writeln!(text, "{}", self.load);
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:<12} {value}");
        };
        if self.submitted > 0 {
            row(
                "accepted",
                format!(
                    "{} of {} in {:.1} s, {:.0}/s; {} errors",
                    self.accepted,
                    self.submitted,
                    self.submitting_seconds,
                    self.accepted_per_second,
                    self.errors
                ),
            );
            row(
                "placed",
                format!(
                    "{}, {:.0}/s; {} outstanding when the last was submitted, {} never",
                    self.placed, self.placed_per_second, self.backlog, self.unplaced
                ),
            );
            if count > 1 {
                let rate = self.placed_per_second * f64::from(count);
                row("allocations", format!("{} placed, {rate:.0}/s", self.allocations_placed));
            }
        }
        if let Some(error) = &self.first_error {
            row("first error", error.clone());
        }
        if let Some(failure) = &self.failure {
            row(
                "failure",
                format!(
                    "{} nodes fell silent, {} are down; {} allocations on them, {} replaced",
                    failure.nodes,
                    failure.down_after.map_or(0, |down| down.count),
                    failure.lost,
                    failure.replaced
                ),
            );
        }
        self.write_latencies(&mut row);
        self.write_costs(&mut row);
        self.write_warnings(&mut row, processors);
    }

    fn write_costs(&self, row: &mut impl FnMut(&str, String)) {
        if let Some(server) = &self.server {
            row("server", server.line());
        }
        row("generator", self.generator.line());
        row(
            "heartbeats",
            format!(
                "{} in {:.1} s, {} failed; other calls of nodes {}, {} failed",
                self.heartbeats, self.seconds, self.heartbeat_errors, self.node_calls, self.node_call_errors
            ),
        );
        if let Some(error) = &self.first_node_error {
            row("node error", error.clone());
        }
        if let Some(subscribers) = &self.subscribers {
            row(
                "deliveries",
                format!(
                    "{}, {:.0}/s, {:.1} MB; fewest and most of one subscriber {} and {}; {} interruptions",
                    subscribers.deliveries,
                    subscribers.deliveries_per_second,
                    subscribers.bytes as f64 / 1e6,
                    subscribers.fewest,
                    subscribers.most,
                    subscribers.interruptions
                ),
            );
        }
    }

    fn write_warnings(&self, row: &mut impl FnMut(&str, String), processors: usize) {
        let sum = self.server.map_or(0.0, |server| server.cpu_seconds);
        if self.unseen > 0 {
            row(
                "warning",
                format!(
                    "{} jobs have allocations that the event stream did not show: do not trust these numbers",
                    self.unseen
                ),
            );
        }
        if self.reader.interruptions > 0 {
            row(
                "warning",
                format!(
                    "the server ended the reader's stream {} times: what was placed meanwhile may not have been seen",
                    self.reader.interruptions
                ),
            );
        }
        if self.nodes_down_alive > 0 {
            row(
                "warning",
                format!(
                    "{} nodes were down though they send heartbeats: what was on them was replaced as well",
                    self.nodes_down_alive
                ),
            );
        }
        let whole = self.seconds * processors as f64;
        if self.generator.cpu_seconds > 0.45 * whole {
            row(
                "warning",
                "the generator took more than 45 % of this host: it may be what was measured".to_string(),
            );
        } else if sum > 0.0 && self.generator.cpu_seconds > sum {
            row("warning", "the generator took more processor time than the server".to_string());
        }
    }

    fn write_latencies(&self, row: &mut impl FnMut(&str, String)) {
        let kinds = [
            ("to accepted", self.accepted_after),
            ("to placed", self.placed_after),
            ("to running", self.running_after),
            ("to down", self.failure.as_ref().and_then(|failure| failure.down_after)),
            ("to replaced", self.failure.as_ref().and_then(|failure| failure.replaced_after)),
        ];
        for (name, summary) in kinds.into_iter().filter_map(|(name, summary)| Some((name, summary?))) {
            row(
                name,
                format!(
                    "p50 {} p90 {} p99 {} p99.9 {} max {}",
                    milliseconds(summary.p50),
                    milliseconds(summary.p90),
                    milliseconds(summary.p99),
                    milliseconds(summary.p999),
                    milliseconds(summary.max)
                ),
            );
        }
    }
}

impl ProcessReport {
    fn line(&self) -> String {
        let mut text =
            format!("{:.2} s of processor time, {:.0} % of one", self.cpu_seconds, self.cpu_share * 100.0);
        if let Some(each) = self.cpu_ms_per_job {
            let _ = write!(text, ", {each:.3} ms a job");
        }
        if let Some(each) = self.cpu_us_per_heartbeat {
            let _ = write!(text, ", {each:.1} us a heartbeat");
        }
        if let Some(each) = self.cpu_us_per_delivery {
            let _ = write!(text, ", {each:.2} us a delivery");
        }
        let _ = write!(text, "; memory {:.0} to {:.0} MiB", self.resident_mib_before, self.resident_mib);
        if let Some(each) = self.resident_kib_per_job {
            let _ = write!(text, ", {each:.1} KiB a job");
        }
        text
    }
}

fn milliseconds(value: f64) -> String {
    if value < 10.0 { format!("{value:.2} ms") } else { format!("{value:.0} ms") }
}

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::Router;
use axum::extract::State as With;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use model::document::Timestamp;
use model::{ClientStatus, Eligibility, JobStatus, NodeStatus};
use state::State;
use state::job::GroupSummary;

use api::{GaugeValue, MetricsSummary, SampledValue};

use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::blocking::WAITING_READS_MAX;
use crate::error::Failure;
use crate::request::Read;

const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/metrics", get(metrics))
}

/// Gauges are read off the state when asked: nothing is counted beside it.
async fn metrics(With(server): With<AppState>, read: Read) -> Answer {
    let prometheus = read.params.get("format") == Some("prometheus");
    if prometheus && !server.agent.prometheus {
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Prometheus is not enabled"));
    }
    let requests = server.request_stats.report(std::time::Instant::now());
    let gauges = tokio::task::spawn_blocking(move || gauges(&server)).await?;
    if prometheus {
        return Ok(([(header::CONTENT_TYPE, PROMETHEUS)], exposition(&gauges)).into_response());
    }
    Ok(answer::json(&summary(gauges, requests)))
}

/// A number with a name and labels.
#[derive(Debug)]
struct Gauge {
    name: String,
    /// What it counts, for people who see it on a dashboard.
    help: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

fn gauge(name: impl Into<String>, help: &'static str, value: impl Into<f64>) -> Gauge {
    Gauge { name: name.into(), help, labels: Vec::new(), value: value.into() }
}

/// Counts and indexes stay exact in a double up to 2^53.
fn count(name: impl Into<String>, help: &'static str, value: usize) -> Gauge {
    gauge(name, help, value as f64)
}

fn gauges(server: &AppState) -> Vec<Gauge> {
    let control = &server.control;
    let state = control.state();
    let broker = control.broker_stats();
    let journal = control.journal();
    let mut all = vec![
        count("nomad.nomad.broker.total_ready", "Evaluations that wait for a scheduler.", broker.ready),
        count("nomad.nomad.broker.total_unacked", "Evaluations that a scheduler works on.", broker.unacked),
        count("nomad.nomad.broker.total_waiting", "Evaluations that wait for their time.", broker.delayed),
        count(
            "nomad.nomad.blocked_evals.total_blocked",
            "Evaluations that wait for room.",
            state.evals.blocked().count(),
        ),
        count(
            "nomad.nomad.heartbeat.active",
            "Nodes whose heartbeats are watched.",
            control.heartbeats_tracked(),
        ),
        gauge(
            "nomad.raft.appliedIndex",
            "Index of the newest batch that is in the state.",
            state.index.0 as f64,
        ),
        gauge(
            "nomad.raft.lastIndex",
            "Index of the newest batch that is committed.",
            journal.committed().0 as f64,
        ),
        gauge(
            "sojourn.log.oldest_index",
            "Index of the oldest batch that the log keeps.",
            journal.horizon().0 as f64,
        ),
        count(
            "sojourn.commands.waiting",
            "Commands that wait for the sequencer.",
            control.commands_waiting(),
        ),
        gauge("sojourn.leader", "1 while this server leads.", if control.leads() { 1 } else { 0 }),
        count(
            "sojourn.reads.waiting",
            "Blocking queries that wait for news.",
            WAITING_READS_MAX - server.waiting_reads.available_permits(),
        ),
        gauge(
            "sojourn.uptime_seconds",
            "Seconds since this agent started.",
            now().since(server.agent.started).as_secs_f64(),
        ),
    ];
    all.extend(nodes(&state));
    all.extend(jobs(&state));
    all
}

fn nodes(state: &State) -> Vec<Gauge> {
    let mut by_status: BTreeMap<NodeStatus, usize> = NodeStatus::ALL.iter().map(|s| (*s, 0)).collect();
    let mut ineligible = 0;
    for (_, hot) in state.nodes.scan().filter(|(_, hot)| !hot.gone) {
        *by_status.entry(hot.status).or_default() += 1;
        ineligible += usize::from(hot.eligibility == Eligibility::Ineligible);
    }
    let line = |(status, number): (NodeStatus, usize)| Gauge {
        labels: vec![("status", status.to_string())],
        ..count("sojourn.nodes", "Nodes, by status.", number)
    };
    let mut all: Vec<Gauge> = by_status.into_iter().map(line).collect();
    all.push(count("sojourn.nodes_ineligible", "Nodes that take no new allocations.", ineligible));
    all
}

/// Jobs by status, allocations by client status, and a line of counters for each group.
fn jobs(state: &State) -> Vec<Gauge> {
    let mut by_status: BTreeMap<JobStatus, usize> = JobStatus::ALL.iter().map(|s| (*s, 0)).collect();
    let mut totals: BTreeMap<ClientStatus, usize> = ClientStatus::ALL.iter().map(|s| (*s, 0)).collect();
    let mut groups = Vec::new();
    for (_, job) in state.jobs.iter() {
        *by_status.entry(job.status).or_default() += 1;
        for (group, counts) in state::job::summary(job) {
            by_client(counts).into_iter().for_each(|(status, n)| *totals.entry(status).or_default() += n);
            let labels = [("job", &job.key.id), ("namespace", &job.key.namespace)];
            let labels = labels.map(|(name, value)| (name, value.clone()));
            let labels: Vec<_> = labels.into_iter().chain([("task_group", group.to_string())]).collect();
            groups.extend(of_group(counts).map(|(word, number)| Gauge {
                labels: labels.clone(),
                ..gauge(format!("nomad.nomad.job_summary.{word}"), "Allocations of a task group.", number)
            }));
        }
    }
    let jobs = by_status
        .into_iter()
        .map(|(status, n)| count(format!("nomad.nomad.job_status.{status}"), "Jobs of this status.", n));
    let allocs = totals.into_iter().map(|(status, number)| Gauge {
        labels: vec![("client_status", status.to_string())],
        ..count("sojourn.allocations", "Allocations, by client status.", number)
    });
    let mut all: Vec<Gauge> = jobs.chain(allocs).collect();
    // One name after the other: the text form wants all lines of a name together.
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    all.extend(groups);
    all
}

fn by_client(counts: GroupSummary) -> [(ClientStatus, usize); 6] {
    [
        (ClientStatus::Pending, counts.starting),
        (ClientStatus::Running, counts.running),
        (ClientStatus::Complete, counts.complete),
        (ClientStatus::Failed, counts.failed),
        (ClientStatus::Lost, counts.lost),
        (ClientStatus::Unknown, counts.unknown),
    ]
    .map(|(status, number)| (status, number as usize))
}

fn of_group(counts: GroupSummary) -> impl Iterator<Item = (&'static str, u32)> {
    let GroupSummary { queued, starting, running, complete, failed, lost, unknown } = counts;
    [
        ("queued", queued),
        ("starting", starting),
        ("running", running),
        ("complete", complete),
        ("failed", failed),
        ("lost", lost),
        ("unknown", unknown),
    ]
    .into_iter()
}

fn summary(gauges: Vec<Gauge>, (counter, sample): (SampledValue, SampledValue)) -> MetricsSummary {
    let seconds = Timestamp::from(base::Time::from_secs(now().secs())).to_string();
    let value = |gauge: Gauge| GaugeValue {
        name: gauge.name,
        value: gauge.value as f32,
        labels: gauge.labels.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
    };
    MetricsSummary {
        timestamp: format!("{} +0000 UTC", seconds.trim_end_matches('Z').replace('T', " ")),
        gauges: gauges.into_iter().map(value).collect(),
        counters: vec![counter].into(),
        samples: vec![sample].into(),
        ..MetricsSummary::default()
    }
}

/// The text form of Prometheus.
fn exposition(gauges: &[Gauge]) -> String {
    let mut text = String::new();
    let mut last = "";
    for gauge in gauges {
        let name = gauge.name.replace(['.', '-'], "_");
        if gauge.name != last {
            let _infallible = writeln!(text, "# HELP {name} {}\n# TYPE {name} gauge", gauge.help);
        }
        last = &gauge.name;
        let labels: Vec<String> =
            gauge.labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _infallible = writeln!(text, "{name}{labels} {}", gauge.value);
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_name_stand_together_and_labels_are_escaped() {
        let with = |job: &str| Gauge { labels: vec![("job", job.to_string())], ..gauge("a.b-c", "B.", 2) };
        let text = exposition(&[gauge("x", "X.", 0.5), with("plain"), with("q\"\\\n")]);
        let expected = "# HELP x X.\n# TYPE x gauge\nx 0.5\n# HELP a_b_c B.\n# TYPE a_b_c gauge\n\
                        a_b_c{job=\"plain\"} 2\na_b_c{job=\"q\\\"\\\\\\n\"} 2\n";
        assert_eq!(text, expected);
    }
}

//! What this server, and the node in the same process, say about themselves in numbers.

use std::collections::BTreeMap;
use std::time::Instant;

use axum::Router;
use axum::extract::State as With;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics::{EXPOSITION_TYPE, Figures, Gauge, exposition, summary};
use model::command::failed_groups;
use model::document::AllocationMetric;
use model::{ClientStatus, Eligibility, EvalStatus, JobStatus, JobType, NodeStatus};
use state::State;
use state::job::GroupSummary;
use tokio::runtime::Handle;

use crate::access::Anyone;
use crate::answer::{self, Answer};
use crate::app_state::{AppState, now};
use crate::blocking::WAITING_READS_MAX;
use crate::error::Failure;
use crate::events::sink_gauges;
use crate::request::ReadNow;

pub(super) fn router() -> Router<AppState> {
    Router::new().route("/v1/metrics", get(metrics))
}

/// Gauges are read off the state when asked: nothing is counted beside it.
async fn metrics(With(server): With<AppState>, ReadNow(read): ReadNow<Anyone>) -> Answer {
    let prometheus = read.params.get("format") == Some("prometheus");
    if prometheus && !server.agent.prometheus {
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Prometheus is not enabled"));
    }
    let clock = Instant::now();
    let mut sampled = server.request_stats.report(clock);
    sampled.extend(server.control.timings());
    sampled.extend(server.rpc_stats.report(clock));
    sampled.extend(server.sink_samples.report(clock));
    let of_others = [server.node_figures.read(clock).await, server.cluster.figures(clock)];
    let host = server.agent.metrics_host.then(|| server.agent.name.clone());
    let mut health = autopilot(&server).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let mut gauges = tokio::task::spawn_blocking(move || gauges(&server)).await?;
    gauges.append(&mut health);
    gauges.extend(metrics::process(tasks));
    for figures in of_others {
        gauges.extend(figures.gauges);
        sampled.extend(figures.sampled);
    }
    let figures = Figures { gauges, sampled, host };
    if prometheus {
        return Ok(([(header::CONTENT_TYPE, EXPOSITION_TYPE)], exposition(&figures)).into_response());
    }
    Ok(answer::json(&summary(&figures, now())))
}

fn gauges(server: &AppState) -> Vec<Gauge> {
    let control = &server.control;
    let state = control.state();
    let journal = control.journal();
    let mut all = vec![
        Gauge::count("nomad.nomad.blocked_evals.total_blocked", state.evals.blocked().count()),
        Gauge::count("nomad.nomad.blocked_evals.total_escaped", escaped(&state)),
        Gauge::count("nomad.raft.peers", server.cluster.peers().len()),
        Gauge::count("nomad.nomad.heartbeat.active", control.heartbeats_tracked()),
        Gauge::count("nomad.nomad.plan.queue_depth", control.commands_waiting()),
        Gauge::new("nomad.raft.appliedIndex", state.index.0 as f64),
        Gauge::new("nomad.raft.lastIndex", journal.committed().0 as f64),
        Gauge::new("nomad.state.snapshotIndex", state.index.0 as f64),
        Gauge::new("sojourn.log.oldest_index", journal.horizon().0 as f64),
        Gauge::count("sojourn.commands.waiting", control.commands_waiting()),
        Gauge::new("sojourn.evaluations.longest_wait_seconds", control.longest_wait().as_secs_f64()),
        Gauge::new("sojourn.leader", if control.leads() { 1 } else { 0 }),
        Gauge::count("sojourn.reads.waiting", WAITING_READS_MAX - server.waiting_reads.available_permits()),
        Gauge::new("sojourn.uptime_seconds", now().since(server.agent.started).as_secs_f64()),
    ];
    all.extend(broker(server, &state));
    all.extend(nodes(&state));
    all.extend(lacking(&state));
    all.extend(jobs(&state));
    match sink_gauges(server, &state) {
        Ok(gauges) => all.extend(gauges),
        Err(error) => tracing::warn!(%error, "how far sinks are behind is not known"),
    }
    all
}

fn broker(server: &AppState, state: &State) -> Vec<Gauge> {
    let (stats, by_type) = (server.control.broker_stats(), server.control.broker_stats_by_type());
    let known = stats.ready + stats.unacked + stats.delayed;
    // Only the leader has a broker: elsewhere nothing waits in one.
    let pending = if server.control.leads() { pending(state).saturating_sub(known) } else { 0 };
    let mut all = vec![
        Gauge::count("nomad.nomad.broker.total_ready", stats.ready),
        Gauge::count("nomad.nomad.broker.total_unacked", stats.unacked),
        Gauge::count("nomad.nomad.broker.total_pending", pending),
        Gauge::count("nomad.nomad.broker.total_waiting", stats.delayed),
    ];
    for (kind, ready, unacked) in BROKER_TYPES {
        let (now_ready, now_unacked) = by_type.get(&kind).copied().unwrap_or_default();
        all.extend([Gauge::count(ready, now_ready), Gauge::count(unacked, now_unacked)]);
    }
    all
}

const BROKER_TYPES: [(JobType, &str, &str); 4] = [
    (JobType::Service, "nomad.nomad.broker.service_ready", "nomad.nomad.broker.service_unacked"),
    (JobType::Batch, "nomad.nomad.broker.batch_ready", "nomad.nomad.broker.batch_unacked"),
    (JobType::System, "nomad.nomad.broker.system_ready", "nomad.nomad.broker.system_unacked"),
    (JobType::Sysbatch, "nomad.nomad.broker.sysbatch_ready", "nomad.nomad.broker.sysbatch_unacked"),
];

fn pending(state: &State) -> usize {
    let live = state.jobs.iter().flat_map(|(_, job)| job.live_evals.iter());
    live.filter(|eval| state.evals.get(**eval).status == EvalStatus::Pending).count()
}

/// Only the leader looks at the others; elsewhere nothing is known of their health.
async fn autopilot(server: &AppState) -> Vec<Gauge> {
    if !server.control.leads() {
        return Vec::new();
    }
    // A server that stops to lead meanwhile has no figures either.
    let Ok(health) = server.cluster.health().await else { return Vec::new() };
    vec![
        Gauge::new("nomad.autopilot.healthy", u8::from(health.healthy)),
        Gauge::new("nomad.autopilot.failure_tolerance", health.failure_tolerance as f64),
    ]
}

fn escaped(state: &State) -> usize {
    state.evals.blocked().filter(|(_, eval)| state.evals.get(*eval).outcome.escaped).count()
}

/// What blocked jobs asked for and no node had: by job, and by where it was looked for.
fn lacking(state: &State) -> Vec<Gauge> {
    let (mut all, mut by_place) = (Vec::new(), BTreeMap::<[String; 3], Lack>::new());
    for (job, eval) in state.evals.blocked() {
        let mut of_job = Lack::default();
        for (_, metrics) in failed_groups(&state.evals.get(eval).outcome) {
            let lack = Lack::of(&metrics);
            of_job.add(lack);
            for place in places(&metrics) {
                by_place.entry(place).or_default().add(lack);
            }
        }
        let key = &state.jobs.get(job).key;
        let names = ["nomad.nomad.blocked_evals.job.cpu", "nomad.nomad.blocked_evals.job.memory"];
        all.extend(
            of_job
                .gauges(names)
                .map(|gauge| gauge.with("job", key.id.as_str()).with("namespace", key.namespace.as_str())),
        );
    }
    for ([datacenter, class, pool], lack) in &by_place {
        let names = ["nomad.nomad.blocked_evals.cpu", "nomad.nomad.blocked_evals.memory"];
        all.extend(lack.gauges(names).map(|gauge| {
            let gauge = gauge.with("datacenter", datacenter.as_str()).with("node_class", class.as_str());
            gauge.with("node_pool", pool.as_str())
        }));
    }
    all
}

/// MHz and MiB that were asked for in vain.
#[derive(Clone, Copy, Default)]
struct Lack {
    cpu: i64,
    memory: i64,
}

impl Lack {
    fn of(metrics: &AllocationMetric) -> Lack {
        let mut all = Lack::default();
        for asked in metrics.resources_exhausted.values() {
            all.add(Lack { cpu: asked.cpu.unwrap_or(0), memory: asked.memory_mb.unwrap_or(0) });
        }
        all
    }

    fn add(&mut self, other: Lack) {
        self.cpu += other.cpu;
        self.memory += other.memory;
    }

    fn gauges(self, [cpu, memory]: [&'static str; 2]) -> [Gauge; 2] {
        [Gauge::new(cpu, self.cpu as f64), Gauge::new(memory, self.memory as f64)]
    }
}

/// Datacenter, class and pool of the nodes that were full. As in Nomad, each datacenter is combined with each class, and
/// nodes without a class have an empty one.
fn places(metrics: &AllocationMetric) -> Vec<[String; 3]> {
    let mut classes: Vec<&str> = metrics.class_exhausted.keys().map(String::as_str).collect();
    if classes.is_empty() {
        classes.push("");
    }
    let pool = &metrics.node_pool;
    let of_datacenter = |datacenter: &String| {
        let place = |class: &&str| [datacenter.clone(), class.to_string(), pool.clone()];
        classes.iter().map(place).collect::<Vec<_>>()
    };
    metrics.nodes_available.keys().flat_map(of_datacenter).collect()
}

fn nodes(state: &State) -> Vec<Gauge> {
    let mut by_status: BTreeMap<NodeStatus, usize> = NodeStatus::ALL.iter().map(|s| (*s, 0)).collect();
    let mut ineligible = 0;
    for (_, hot) in state.nodes.scan().filter(|(_, hot)| !hot.gone) {
        *by_status.entry(hot.status).or_default() += 1;
        ineligible += usize::from(hot.eligibility == Eligibility::Ineligible);
    }
    let line = |(status, number): (NodeStatus, usize)| {
        Gauge::count("sojourn.nodes", number).with("status", status.to_string())
    };
    let mut all: Vec<Gauge> = by_status.into_iter().map(line).collect();
    all.push(Gauge::count("sojourn.nodes_ineligible", ineligible));
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
            groups.extend(of_group(counts).map(|(name, number)| {
                let gauge = Gauge::new(name, number).with("job", job.key.id.as_str());
                gauge.with("namespace", job.key.namespace.as_str()).with("task_group", group)
            }));
        }
    }
    let jobs = by_status.into_iter().map(|(status, n)| Gauge::count(of_status(status), n));
    let allocs = totals.into_iter().map(|(status, number)| {
        Gauge::count("sojourn.allocations", number).with("client_status", status.to_string())
    });
    jobs.chain(allocs).chain(groups).collect()
}

const fn of_status(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "nomad.nomad.job_status.pending",
        JobStatus::Running => "nomad.nomad.job_status.running",
        JobStatus::Dead => "nomad.nomad.job_status.dead",
    }
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
        ("nomad.nomad.job_summary.queued", queued),
        ("nomad.nomad.job_summary.starting", starting),
        ("nomad.nomad.job_summary.running", running),
        ("nomad.nomad.job_summary.complete", complete),
        ("nomad.nomad.job_summary.failed", failed),
        ("nomad.nomad.job_summary.lost", lost),
        ("nomad.nomad.job_summary.unknown", unknown),
    ]
    .into_iter()
}

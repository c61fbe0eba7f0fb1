//! What the node says about itself in numbers, as metrics.

use std::collections::BTreeMap;
use std::time::Instant;

use metrics::{Figures, Gauge, Labels as AllLabels, Sampled};
use model::document::{Allocation, Node};

use crate::LocalNode;
use crate::alloc::handle::AllocHandle;
use crate::alloc::hooks::{await_previous, migrate_disk};
use crate::context::Context;
use crate::stats;

/// Which figures are given; operators choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedFigures {
    /// Of the host.
    pub node: bool,
    /// Of each task: reading them takes a moment each time.
    pub allocations: bool,
}

/// All figures, read now. What does not depend on what is published is given in any case.
pub async fn read(local: &LocalNode, published: PublishedFigures) -> Figures {
    let (node, allocs) = (local.context.node(), local.allocs.all());
    let labels = Labels::of(&node, local.contact.last_beat.borrow().is_some());
    let mut gauges = counts(&labels, &allocs);
    gauges.extend(room(&labels, &node, &allocs));
    if published.node {
        gauges.extend(host(&labels, local).await);
    }
    if published.allocations {
        let running = allocs.iter().filter(|(_, handle)| !handle.is_done());
        let read = running.map(|(id, handle)| tasks(&labels, &local.context, id, handle));
        gauges.extend(futures_util::future::join_all(read).await.into_iter().flatten());
    }
    let mut sampled = local.context.counters.report(Instant::now());
    let is_of_task = |one: &Sampled| one.labels.iter().any(|(label, _)| *label == ALLOC_LABEL);
    sampled.retain(|one| published.allocations || !is_of_task(one));
    for one in &mut sampled {
        one.labels.splice(..0, labels.0.clone());
    }
    Figures { gauges, sampled, host: None }
}

/// What is said about a task has this label.
const ALLOC_LABEL: &str = "alloc_id";

/// The labels of every figure of a node.
struct Labels(AllLabels);

impl Labels {
    fn of(node: &Node, is_known: bool) -> Labels {
        // A node is ready from its first heartbeat on; whether the servers still think so they say themselves.
        let status = if is_known { "ready" } else { "initializing" }.to_string();
        let named = [
            ("node_id", &node.id),
            ("datacenter", &node.datacenter),
            ("node_class", &node.node_class),
            ("node_pool", &node.node_pool),
            ("node_status", &status),
            ("node_scheduling_eligibility", &node.scheduling_eligibility),
        ];
        Labels(named.map(|(label, value)| (label, value.clone())).into())
    }

    fn gauge(&self, name: &'static str, value: impl Into<f64>) -> Gauge {
        Gauge { labels: self.0.clone(), ..Gauge::new(name, value) }
    }
}

fn counts(labels: &Labels, allocs: &[(String, AllocHandle)]) -> Vec<Gauge> {
    let mut by_status: BTreeMap<&'static str, u32> = ALLOCATIONS.iter().map(|name| (*name, 0)).collect();
    let mut by_task: BTreeMap<&'static str, u32> = TASKS.iter().map(|name| (*name, 0)).collect();
    for (_, handle) in allocs {
        let status = handle.status.borrow().clone();
        let name = match status.client_status.as_str() {
            "running" => RUNNING,
            "" | "pending" => PENDING,
            _ => TERMINAL,
        };
        *by_status.entry(if status.done { TERMINAL } else { name }).or_default() += 1;
        let waits = match handle.current_hook.name() {
            await_previous::NAME => Some(BLOCKED),
            migrate_disk::NAME => Some(MIGRATING),
            _ => None,
        };
        if let Some(name) = waits.filter(|_| !status.done) {
            *by_status.entry(name).or_default() += 1;
        }
        for task in handle.tasks.states().values() {
            let name = match task.state.as_str() {
                "running" => TASKS_RUNNING,
                "dead" => TASKS_DEAD,
                _ => TASKS_PENDING,
            };
            *by_task.entry(name).or_default() += 1;
        }
    }
    by_status.into_iter().chain(by_task).map(|(name, count)| labels.gauge(name, count)).collect()
}

const PENDING: &str = "nomad.client.allocations.pending";
const RUNNING: &str = "nomad.client.allocations.running";
const TERMINAL: &str = "nomad.client.allocations.terminal";
/// These are part of `pending` too.
const BLOCKED: &str = "nomad.client.allocations.blocked";
const MIGRATING: &str = "nomad.client.allocations.migrating";
const ALLOCATIONS: [&str; 5] = [PENDING, RUNNING, TERMINAL, BLOCKED, MIGRATING];
const TASKS_PENDING: &str = "nomad.client.tasks.pending";
const TASKS_RUNNING: &str = "nomad.client.tasks.running";
const TASKS_DEAD: &str = "nomad.client.tasks.dead";
const TASKS: [&str; 3] = [TASKS_PENDING, TASKS_RUNNING, TASKS_DEAD];

/// What was given to allocations that have not ended, and what is left.
fn room(labels: &Labels, node: &Node, allocs: &[(String, AllocHandle)]) -> Vec<Gauge> {
    let given = allocs.iter().filter(|(_, handle)| !handle.is_done()).fold([0_i64; 3], |sum, (_, handle)| {
        let own = given(&handle.alloc.borrow());
        [sum[0] + own[0], sum[1] + own[1], sum[2] + own[2]]
    });
    let offered = node.node_resources.clone().unwrap_or_default();
    let offered = [offered.cpu.cpu_shares, offered.memory.memory_mb, offered.disk.disk_mb];
    let kept = node.reserved_resources.clone().unwrap_or_default();
    let kept = [kept.cpu.cpu_shares as i64, kept.memory.memory_mb as i64, kept.disk.disk_mb as i64];
    let names = [
        ("nomad.client.allocated.cpu", "nomad.client.unallocated.cpu"),
        ("nomad.client.allocated.memory", "nomad.client.unallocated.memory"),
        ("nomad.client.allocated.disk", "nomad.client.unallocated.disk"),
    ];
    let both = |(at, (allocated, unallocated)): (usize, (&'static str, &'static str))| {
        let left = offered[at] - kept[at] - given[at];
        [labels.gauge(allocated, given[at] as f64), labels.gauge(unallocated, left as f64)]
    };
    names.into_iter().enumerate().flat_map(both).collect()
}

/// CPU in MHz, memory and disk in MiB.
fn given(alloc: &Allocation) -> [i64; 3] {
    let Some(resources) = &alloc.allocated_resources else { return [0; 3] };
    let tasks = resources.tasks.values();
    let (cpu, memory) =
        tasks.fold((0, 0), |(cpu, memory), task| (cpu + task.cpu.cpu_shares, memory + task.memory.memory_mb));
    [cpu, memory, resources.shared.disk_mb]
}

async fn host(labels: &Labels, local: &LocalNode) -> Vec<Gauge> {
    let host = stats::of_host(&local.context).await;
    let mut gauges = vec![
        labels.gauge("nomad.client.uptime", host.uptime as f64),
        labels.gauge("nomad.client.host.cpu.total_ticks_count", host.cpu_ticks_consumed),
    ];
    let memory = host.memory.unwrap_or_default();
    gauges.extend([
        labels.gauge("nomad.client.host.memory.total", memory.total as f64),
        labels.gauge("nomad.client.host.memory.available", memory.available as f64),
        labels.gauge("nomad.client.host.memory.used", memory.used as f64),
        labels.gauge("nomad.client.host.memory.free", memory.free as f64),
    ]);
    for core in &host.cpu {
        let of_core = [
            ("nomad.client.host.cpu.user", core.user),
            ("nomad.client.host.cpu.system", core.system),
            ("nomad.client.host.cpu.idle", core.idle),
            ("nomad.client.host.cpu.total_percent", core.user + core.system),
        ];
        gauges.extend(of_core.map(|(name, value)| labels.gauge(name, value).with("cpu", core.cpu.as_str())));
    }
    for disk in &host.disk_stats {
        let of_disk = [
            ("nomad.client.host.disk.size", disk.size as f64),
            ("nomad.client.host.disk.used", disk.used as f64),
            ("nomad.client.host.disk.available", disk.available as f64),
            ("nomad.client.host.disk.used_percent", disk.used_percent),
            ("nomad.client.host.disk.inodes_percent", disk.inodes_used_percent),
        ];
        gauges.extend(
            of_disk.map(|(name, value)| labels.gauge(name, value).with("disk", disk.device.as_str())),
        );
    }
    gauges
}

async fn tasks(labels: &Labels, context: &Context, id: &str, handle: &AllocHandle) -> Vec<Gauge> {
    let usage = stats::of_alloc(context, id, handle, "").await;
    let alloc = handle.alloc.borrow().clone();
    let mut gauges = Vec::new();
    for (task, used) in &usage.tasks {
        let Some(used) = &used.resource_usage else { continue };
        let given = alloc.allocated_resources.as_ref().and_then(|resources| resources.tasks.get(task));
        let (cpu, memory) =
            (used.cpu_stats.clone().unwrap_or_default(), used.memory_stats.clone().unwrap_or_default());
        let values = [
            ("nomad.client.allocs.memory.rss", memory.rss as f64),
            ("nomad.client.allocs.memory.usage", memory.usage as f64),
            (
                "nomad.client.allocs.memory.allocated",
                given.map_or(0, |own| own.memory.memory_mb << 20) as f64,
            ),
            (
                "nomad.client.allocs.memory.max_allocated",
                given.map_or(0, |own| own.memory.memory_max_mb.max(own.memory.memory_mb) << 20) as f64,
            ),
            ("nomad.client.allocs.cpu.system", cpu.system_mode),
            ("nomad.client.allocs.cpu.user", cpu.user_mode),
            ("nomad.client.allocs.cpu.total_percent", cpu.percent),
            ("nomad.client.allocs.cpu.total_ticks", cpu.total_ticks),
            ("nomad.client.allocs.cpu.allocated", given.map_or(0, |own| own.cpu.cpu_shares) as f64),
        ];
        let of_group = [
            ("nomad.client.allocs.memory.cache", "Cache", memory.cache),
            ("nomad.client.allocs.memory.swap", "Swap", memory.swap),
            ("nomad.client.allocs.memory.mapped_file", "Mapped File", memory.mapped_file),
            ("nomad.client.allocs.memory.max_usage", "Max Usage", memory.max_usage),
            ("nomad.client.allocs.memory.kernel_usage", "Kernel Usage", memory.kernel_usage),
            ("nomad.client.allocs.cpu.throttled_periods", "Throttled Periods", cpu.throttled_periods),
            ("nomad.client.allocs.cpu.throttled_time", "Throttled Time", cpu.throttled_time),
        ];
        let is_measured =
            |measured: &str| memory.measured.iter().chain(cpu.measured.iter()).any(|known| known == measured);
        let of_group = of_group.into_iter().filter(|(_, measured, _)| is_measured(measured));
        let values = values.into_iter().chain(of_group.map(|(name, _, value)| (name, value as f64)));
        gauges.extend(values.map(|(name, value)| {
            let mut gauge = labels.gauge(name, value);
            gauge.labels.extend(of_task(&alloc, task));
            gauge
        }));
    }
    gauges
}

/// The labels of what is said about a task, besides those of its node.
pub(crate) fn of_task(alloc: &Allocation, task: &str) -> AllLabels {
    vec![
        ("job", alloc.job_id.clone()),
        ("task_group", alloc.task_group.clone()),
        ("task", task.to_string()),
        (ALLOC_LABEL, alloc.id.clone()),
        ("namespace", alloc.namespace.clone()),
    ]
}

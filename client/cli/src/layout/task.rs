//! The tasks of an allocation: resources, what was measured, volumes, events.

use api::{AllocResourceUsage, ResourceUsage};
use model::document::{Allocation, NetworkResource, TaskEvent, TaskState, VolumeRequest};

use super::alloc::{group_of, lifecycle, task_of, tasks};
use super::cell;
use crate::output::{OutputStyle, Table, bytes, fields};

/// Most events of a task that are shown, unless all are asked for.
const EVENTS_MAX: usize = 10;

const MIB: u64 = 1 << 20;

/// A cell with nothing in it.
const BLANK: &str = " ";

/// Each task: its state, resources and recent events. `usage` is the measured resource usage, if known.
///
/// `stats` shows everything that was measured.
pub(crate) fn sections(
    style: &OutputStyle,
    alloc: &Allocation,
    usage: Option<&AllocResourceUsage>,
    stats: bool,
) -> String {
    let mut text = String::new();
    for (name, state) in tasks(alloc) {
        let stage = lifecycle(alloc.job.as_ref(), &alloc.task_group, name);
        let stage = stage.map(|stage| format!(" ({stage})")).unwrap_or_default();
        let used =
            usage.and_then(|usage| usage.tasks.get(name)).and_then(|task| task.resource_usage.as_ref());
        let title = format!("Task \"{name}\"{stage} is \"{}\"", state.state);
        text.push_str(&style.section(&title, &task_resources(alloc, name, used)));
        if let Some(used) = used {
            let devices = || super::devices::usage("Device Stats", &used.device_stats);
            text.push_str(&if stats { measured(used) } else { devices() });
        }
        text.push_str(&volumes(style, alloc, name));
        text.push_str(&task_events(style, state));
    }
    text
}

fn task_resources(alloc: &Allocation, task: &str, used: Option<&ResourceUsage>) -> String {
    let Some(resources) = alloc.allocated_resources.as_ref() else { return String::new() };
    let Some(limits) = resources.tasks.get(task) else { return String::new() };
    let cpu = used.and_then(|used| used.cpu_stats.as_ref()).map_or(0.0, |stats| stats.total_ticks);
    let memory = used.and_then(|used| used.memory_stats.as_ref());
    let memory = memory.map_or(0, |stats| if stats.rss > 0 { stats.rss } else { stats.usage });
    let mib = |count: i64| bytes(u64::try_from(count).unwrap_or(0) * MIB);
    let addresses = addresses(&limits.networks);
    let mut rows = vec![[
        format!("{cpu:.0}/{} MHz", limits.cpu.cpu_shares),
        format!("{}/{}", bytes(memory), mib(limits.memory.memory_mb)),
        mib(resources.shared.disk_mb),
        addresses.first().cloned().unwrap_or_default(),
    ]];
    let max = Some(limits.memory.memory_max_mb).filter(|max| *max > limits.memory.memory_mb);
    let max = max.map(|max| format!("Max: {}", mib(max))).unwrap_or_default();
    if !max.is_empty() || addresses.len() > 1 {
        rows.push([BLANK.into(), max, BLANK.into(), addresses.get(1).cloned().unwrap_or_default()]);
    }
    rows.extend(
        addresses.iter().skip(2).map(|more| [BLANK.into(), BLANK.into(), BLANK.into(), more.clone()]),
    );
    let mut table = Table::new(["CPU", "Memory", "Disk", "Addresses"]);
    for row in rows {
        // A cell under another is blank rather than "none".
        table.row(row.map(|cell| if cell.is_empty() { BLANK.to_string() } else { cell }));
    }
    format!("Task Resources:\n{}", table.render())
}

/// `label: ip:port` of each port that the task itself was given.
fn addresses(networks: &[NetworkResource]) -> Vec<String> {
    let ports = networks.iter().flat_map(|network| {
        let ports = network.dynamic_ports.iter().chain(network.reserved_ports.iter());
        ports.map(|port| format!("{}: {}:{}", port.label, network.ip, port.value))
    });
    ports.collect()
}

/// The resource usage in full.
fn measured(used: &ResourceUsage) -> String {
    let mut text = String::new();
    if let Some(memory) = &used.memory_stats {
        let known = [
            ("RSS", memory.rss),
            ("Cache", memory.cache),
            ("Swap", memory.swap),
            ("Usage", memory.usage),
            ("Max Usage", memory.max_usage),
            ("Kernel Usage", memory.kernel_usage),
            ("Kernel Max Usage", memory.kernel_max_usage),
        ];
        let row = known.into_iter().filter(|(name, _)| memory.measured.iter().any(|known| known == name));
        let (head, cells): (Vec<_>, Vec<_>) = row.map(|(name, count)| (name, bytes(count))).unzip();
        text.push_str(&titled("Memory Stats", head, cells));
    }
    if let Some(cpu) = &used.cpu_stats {
        let known = [
            ("Percent", format!("{:.2}%", cpu.percent)),
            ("System Mode", format!("{:.2}%", cpu.system_mode)),
            ("User Mode", format!("{:.2}%", cpu.user_mode)),
            ("Throttled Periods", cpu.throttled_periods.to_string()),
            ("Throttled Time", cpu.throttled_time.to_string()),
        ];
        let row = known.into_iter().filter(|(name, _)| cpu.measured.iter().any(|known| known == name));
        let (head, cells): (Vec<_>, Vec<_>) = row.unzip();
        text.push_str(&titled("CPU Stats", head, cells));
    }
    text + &super::devices::usage("Device Stats", &used.device_stats)
}

fn titled(title: &str, head: Vec<&str>, cells: Vec<String>) -> String {
    if head.is_empty() {
        return String::new();
    }
    let mut table = Table::new(head);
    table.row(cells);
    format!("\n{title}\n{}", table.render())
}

/// Volumes that the group asks for and the task mounts.
fn volumes(style: &OutputStyle, alloc: &Allocation, task: &str) -> String {
    let Some(group) = group_of(alloc) else { return String::new() };
    let mounted = task_of(alloc.job.as_ref(), &alloc.task_group, task).map(|task| &task.volume_mounts);
    let mounted: Vec<&VolumeRequest> = mounted
        .into_iter()
        .flatten()
        .filter_map(|mount| group.volumes.get(mount.volume.as_deref()?))
        .collect();
    let of = |kind: &str| mounted.iter().filter(|volume| volume.kind == kind).copied().collect::<Vec<_>>();
    let mut text = String::new();
    for (kind, title) in [("host", "Host Volumes:"), ("csi", "CSI Volumes:")] {
        let volumes = of(kind);
        if volumes.is_empty() {
            continue;
        }
        let name = style.verbose.then_some("Name");
        let mut table = Table::new(name.into_iter().chain(["ID", "Read Only"]));
        for volume in volumes {
            let name = style.verbose.then(|| volume.name.clone());
            table.row(name.into_iter().chain([volume.source.clone(), cell(volume.read_only)]));
        }
        text.push_str(&format!("\n{title}\n{}", table.render()));
    }
    text
}

fn task_events(style: &OutputStyle, state: &TaskState) -> String {
    let entries = [
        ("Started At", style.time(state.started_at.time().0)),
        ("Finished At", style.time(state.finished_at.time().0)),
        ("Total Restarts", cell(state.restarts)),
        ("Last Restart", style.time(state.last_restart.time().0)),
    ];
    let mut table = Table::new(["Time", "Type", "Description"]);
    let most = if style.verbose { usize::MAX } else { EVENTS_MAX };
    for event in state.events.iter().rev().take(most) {
        table.row([style.time(event.time), event.kind.clone(), description(event)]);
    }
    format!("\nTask Events:\n{}\nRecent Events:\n{}", fields(&entries), table.render())
}

/// The node's message if there is one, else a text from the event's fields.
fn description(event: &TaskEvent) -> String {
    if !event.display_message.is_empty() {
        return event.display_message.clone();
    }
    let given = [
        &event.message,
        &event.setup_error,
        &event.driver_error,
        &event.download_error,
        &event.validation_error,
        &event.kill_error,
        &event.restart_reason,
        &event.kill_reason,
        &event.driver_message,
    ];
    if let Some(text) = given.into_iter().find(|text| !text.is_empty()) {
        return text.clone();
    }
    match event.kind.as_str() {
        "Terminated" => format!("Exit Code: {}, Signal: {}", event.exit_code, event.signal),
        "Started" => "Task started by client".to_string(),
        "Received" => "Task received by client".to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use model::document::Port;

    use super::super::alloc::tests::alloc;
    use super::*;

    fn style() -> OutputStyle {
        OutputStyle::for_tests()
    }

    #[test]
    fn a_task_shows_its_resources_and_its_newest_event_first() {
        let text = sections(&style(), &alloc(), None, false);
        let main = text.split("\nTask \"main\"").nth(1).unwrap();
        assert_eq!(
            main,
            " is \"running\"\n\
             Task Resources:\n\
             CPU        Memory       Disk     Addresses\n\
             0/500 MHz  0 B/256 MiB  300 MiB\n\
             \nTask Events:\n\
             Started At     = 2026-01-02T03:04:00Z\n\
             Finished At    = N/A\n\
             Total Restarts = 0\n\
             Last Restart   = N/A\n\
             \nRecent Events:\n\
             Time                  Type      Description\n\
             2026-01-02T03:04:00Z  Started   Task started by client\n\
             2026-01-02T03:03:59Z  Received  Task received by client\n"
        );
        assert!(text.starts_with("\nTask \"setup\" (prestart) is \"dead\"\n"), "{text}");
    }

    #[test]
    fn a_task_that_may_take_more_says_how_much() {
        let mut alloc = alloc();
        let limits = alloc.allocated_resources.as_mut().unwrap().tasks.0.get_mut("main").unwrap();
        limits.memory.memory_max_mb = 512;
        let port = |label: &str, value| Port { label: label.into(), value, ..Port::default() };
        limits.networks = vec![NetworkResource {
            ip: "10.0.0.7".into(),
            dynamic_ports: vec![port("http", 80), port("db", 6379)].into(),
            ..NetworkResource::default()
        }]
        .into();
        let text = sections(&style(), &alloc, None, false);
        let expected = "CPU        Memory        Disk     Addresses\n\
                        0/500 MHz  0 B/256 MiB   300 MiB  http: 10.0.0.7:80\n\
                        \x20          Max: 512 MiB           db: 10.0.0.7:6379\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn everything_measured_is_shown_when_asked_for() {
        let memory =
            api::MemoryStats { rss: 3 << 20, measured: vec!["RSS".to_string()].into(), ..Default::default() };
        let cpu = api::CpuStats {
            percent: 1.5,
            measured: vec!["Percent".to_string()].into(),
            ..Default::default()
        };
        let used = ResourceUsage { memory_stats: Some(memory), cpu_stats: Some(cpu), ..Default::default() };
        assert_eq!(measured(&used), "\nMemory Stats\nRSS\n3.0 MiB\n\nCPU Stats\nPercent\n1.50%\n");
    }
}

//! What allocations and the host use now.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{
    AllocResourceUsage, CpuStats, DeviceGroupStats, HostCPUStats, HostDiskStats, HostMemoryStats, HostStats,
    MemoryStats, ResourceUsage, TaskResourceUsage,
};
use model::document::{List, Map};

use crate::alloc::handle::AllocHandle;
use crate::clock;
use crate::context::Context;
use crate::driver::{RunningTask, Usage};
use crate::samples::{CpuTimes, Pair};
use crate::task::hooks::devices::of_task;
use executor::cgroup::GroupUsage;
use executor::process::TICKS_PER_SECOND;
use futures_util::stream::StreamExt;

/// Between the two readings of what has not been looked at before.
const SAMPLE: Duration = Duration::from_millis(250);

/// What the running tasks of an allocation use; only `task` if it is not empty.
pub async fn of_alloc(context: &Context, id: &str, handle: &AllocHandle, task: &str) -> AllocResourceUsage {
    let wanted = handle.tasks.all_running().into_iter().filter(|(name, _)| task.is_empty() || name == task);
    let readings = wanted.map(|(name, running)| async move {
        let pair = match context.samples.task(id, &name) {
            Some(pair) => Some(pair),
            None => read_twice(&*running).await,
        };
        (name, pair)
    });
    let readings = futures_util::future::join_all(readings).await;
    let (timestamp, core_mhz) = (clock::now().0, core_mhz(context));
    let tasks: BTreeMap<String, TaskResourceUsage> = readings
        .into_iter()
        .filter_map(|(name, pair)| {
            let mut usage = share(&pair?, core_mhz);
            usage.device_stats = devices(context, handle, &name);
            Some((name, TaskResourceUsage { resource_usage: Some(usage), timestamp, pids: Map::default() }))
        })
        .collect();
    let parts = tasks.values().filter_map(|task| task.resource_usage.as_ref());
    let sum = parts.fold(empty(), add);
    AllocResourceUsage { resource_usage: Some(sum), tasks: Map(tasks), timestamp }
}

/// Of the devices that the task was given.
fn devices(context: &Context, handle: &AllocHandle, task: &str) -> List<DeviceGroupStats> {
    let alloc = handle.alloc.borrow();
    context.plugins.devices.stats_of(of_task(&alloc, task))
}

/// For a task that has just been started: two readings, [`SAMPLE`] apart; `None` if it ends in between.
async fn read_twice(task: &dyn RunningTask) -> Option<Pair<Usage>> {
    let mut readings = task.stats(SAMPLE);
    Some(Pair { before: readings.next().await?, now: readings.next().await?, apart: SAMPLE })
}

/// Percent of one core; ticks are MHz, as jobs ask for them.
fn share(pair: &Pair<Usage>, core_mhz: f64) -> ResourceUsage {
    let (before, now) = (&pair.before, &pair.now);
    let percent = |before: u64, now: u64| {
        let seconds = now.saturating_sub(before) as f64 / TICKS_PER_SECOND as f64;
        seconds / pair.apart.as_secs_f64() * 100.0
    };
    let user_mode = percent(before.user_ticks, now.user_ticks);
    let system_mode = percent(before.system_ticks, now.system_ticks);
    let total = user_mode + system_mode;
    let mut cpu = CpuStats { user_mode, system_mode, percent: total, ..empty_cpu() };
    cpu.total_ticks = total / 100.0 * core_mhz;
    let mut memory = MemoryStats { rss: now.resident_bytes, usage: now.resident_bytes, ..empty_memory() };
    put_group(&now.group, &mut memory, &mut cpu);
    ResourceUsage { memory_stats: Some(memory), cpu_stats: Some(cpu), ..ResourceUsage::default() }
}

/// Adds what only a control group says.
fn put_group(group: &GroupUsage, memory: &mut MemoryStats, cpu: &mut CpuStats) {
    measure(&mut memory.measured, "Cache", &mut memory.cache, group.cache_bytes);
    measure(&mut memory.measured, "Swap", &mut memory.swap, group.swap_bytes);
    measure(&mut memory.measured, "Mapped File", &mut memory.mapped_file, group.mapped_bytes);
    measure(&mut memory.measured, "Max Usage", &mut memory.max_usage, group.memory_max_bytes);
    measure(&mut memory.measured, "Kernel Usage", &mut memory.kernel_usage, group.kernel_bytes);
    let (periods, time) = (group.throttled_periods, group.throttled_ns);
    measure(&mut cpu.measured, "Throttled Periods", &mut cpu.throttled_periods, periods);
    measure(&mut cpu.measured, "Throttled Time", &mut cpu.throttled_time, time);
}

/// What is not known is not listed as measured.
fn measure(measured: &mut List<String>, name: &str, place: &mut u64, value: Option<u64>) {
    if let Some(value) = value {
        *place = value;
        measured.push(name.to_string());
    }
}

fn empty() -> ResourceUsage {
    ResourceUsage {
        memory_stats: Some(empty_memory()),
        cpu_stats: Some(empty_cpu()),
        ..ResourceUsage::default()
    }
}

fn empty_memory() -> MemoryStats {
    let measured = ["RSS", "Usage"].map(str::to_string).into_iter().collect();
    MemoryStats { measured, ..MemoryStats::default() }
}

fn empty_cpu() -> CpuStats {
    let measured = ["System Mode", "User Mode", "Percent"].map(str::to_string).into_iter().collect();
    CpuStats { measured, ..CpuStats::default() }
}

fn add(mut sum: ResourceUsage, part: &ResourceUsage) -> ResourceUsage {
    if let (Some(sum), Some(part)) = (&mut sum.cpu_stats, &part.cpu_stats) {
        sum.user_mode += part.user_mode;
        sum.system_mode += part.system_mode;
        sum.percent += part.percent;
        sum.total_ticks += part.total_ticks;
        sum.throttled_periods += part.throttled_periods;
        sum.throttled_time += part.throttled_time;
        unite(&mut sum.measured, &part.measured);
    }
    if let (Some(sum), Some(part)) = (&mut sum.memory_stats, &part.memory_stats) {
        sum.rss += part.rss;
        sum.usage += part.usage;
        sum.cache += part.cache;
        sum.swap += part.swap;
        sum.mapped_file += part.mapped_file;
        sum.max_usage += part.max_usage;
        sum.kernel_usage += part.kernel_usage;
        unite(&mut sum.measured, &part.measured);
    }
    sum.device_stats.0.extend(part.device_stats.0.iter().cloned());
    sum
}

fn unite(all: &mut List<String>, more: &List<String>) {
    for name in more.iter() {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
}

/// The speed of one core of this node.
fn core_mhz(context: &Context) -> f64 {
    let node = context.node();
    let cpu = node.node_resources.as_ref().map(|resources| &resources.cpu);
    cpu.map_or(0.0, |cpu| cpu.cpu_shares as f64 / f64::from(cpu.total_cpu_cores.max(1)))
}

/// The host as a whole.
pub async fn of_host(context: &Context) -> HostStats {
    let pair = match context.samples.host() {
        Some(pair) => pair,
        None => {
            let before = host_times();
            tokio::time::sleep(SAMPLE).await;
            Pair { before, now: host_times(), apart: SAMPLE }
        }
    };
    let cpu: Vec<HostCPUStats> = pair
        .now
        .into_iter()
        .filter_map(|(name, now)| Some(cpu_share(name.clone(), *pair.before.get(&name)?, now)))
        .collect();
    let consumed: f64 = cpu.iter().map(|cpu| (cpu.user + cpu.system) / 100.0 * core_mhz(context)).sum();
    let disk = disk(context);
    HostStats {
        memory: Some(memory(&read("/proc/meminfo"))),
        cpu: cpu.into(),
        disk_stats: vec![disk.clone()].into(),
        alloc_dir_stats: Some(disk),
        device_stats: context.plugins.devices.stats(),
        uptime: read("/proc/uptime").split('.').next().and_then(|secs| secs.parse().ok()).unwrap_or(0),
        cpu_ticks_consumed: consumed,
        timestamp: clock::now().0,
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// What each core has spent since the start of the host.
pub fn host_times() -> CpuTimes {
    cpu_times(&read("/proc/stat"))
}

/// Ticks of each core: user (with nice), system (with interrupts), idle (with waiting).
fn cpu_times(stat: &str) -> CpuTimes {
    let core = |line: &str| -> Option<(String, [u64; 3])> {
        let (name, times) = line.split_once(' ')?;
        name.strip_prefix("cpu")?.parse::<u32>().ok()?;
        let times: Vec<u64> = times.split_ascii_whitespace().filter_map(|time| time.parse().ok()).collect();
        let [user, nice, system, idle, wait, irq, soft] = *times.first_chunk::<7>()?;
        Some((name.to_string(), [user + nice, system + irq + soft, idle + wait]))
    };
    stat.lines().filter_map(core).collect()
}

fn cpu_share(cpu: String, before: [u64; 3], now: [u64; 3]) -> HostCPUStats {
    let spent: Vec<f64> =
        before.iter().zip(now).map(|(before, now)| now.saturating_sub(*before) as f64).collect();
    let total: f64 = spent.iter().sum::<f64>().max(1.0);
    let percent = |part: f64| part / total * 100.0;
    HostCPUStats { cpu, user: percent(spent[0]), system: percent(spent[1]), idle: percent(spent[2]) }
}

fn memory(info: &str) -> HostMemoryStats {
    let bytes = |name: &str| -> u64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    };
    let (total, free, available) = (bytes("MemTotal"), bytes("MemFree"), bytes("MemAvailable"));
    HostMemoryStats { total, available, used: total.saturating_sub(available), free }
}

/// The disk that holds the allocations.
fn disk(context: &Context) -> HostDiskStats {
    let directory = &context.settings.alloc_dir;
    let Ok(disk) = rustix::fs::statvfs(directory) else { return HostDiskStats::default() };
    HostDiskStats {
        device: context.node().attributes.get("unique.storage.volume").cloned().unwrap_or_default(),
        mountpoint: directory.display().to_string(),
        size: disk.f_blocks * disk.f_frsize,
        used: disk.f_blocks.saturating_sub(disk.f_bfree) * disk.f_frsize,
        available: disk.f_bavail * disk.f_frsize,
        used_percent: used_percent(disk.f_blocks, disk.f_bfree, disk.f_bavail),
        inodes_used_percent: used_percent(disk.f_files, disk.f_ffree, disk.f_favail),
    }
}

/// The use of a disk as `df` shows it: of what is used and what may still be used. What is kept back from everybody is
/// neither, and can be much where a disk has a quota.
pub(crate) fn used_percent(total: u64, free: u64, available: u64) -> f64 {
    let used = total.saturating_sub(free);
    used as f64 / (used + available).max(1) as f64 * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_is_not_used() {
        assert_eq!(used_percent(1_000, 900, 100), 50.0);
        assert_eq!(used_percent(1_000, 900, 900), 10.0);
        assert_eq!(used_percent(0, 0, 0), 0.0);
    }

    #[test]
    fn the_share_of_a_core_is_what_was_spent_since() {
        let before = Usage { user_ticks: 100, system_ticks: 10, ..Usage::default() };
        let now = Usage { user_ticks: 120, system_ticks: 15, resident_bytes: 4096, ..Usage::default() };
        let apart = Duration::from_millis(250);
        let usage = share(&Pair { before, now, apart }, 2000.0);
        let cpu = usage.cpu_stats.unwrap();
        assert_eq!((cpu.user_mode, cpu.system_mode, cpu.percent), (80.0, 20.0, 100.0));
        assert_eq!(cpu.total_ticks, 2000.0);
        assert_eq!(usage.memory_stats.unwrap().rss, 4096);
    }

    #[test]
    fn what_a_control_group_says_is_measured_and_the_rest_is_not() {
        let of = |group| {
            let now = Usage { group, ..Usage::default() };
            share(&Pair { before: Usage::default(), now, apart: SAMPLE }, 2000.0)
        };
        let group = GroupUsage { cache_bytes: Some(7), throttled_ns: Some(9), ..GroupUsage::default() };
        let sum = [of(group), of(group), of(GroupUsage::default())].iter().fold(empty(), add);
        let (memory, cpu) = (sum.memory_stats.unwrap(), sum.cpu_stats.unwrap());
        assert_eq!((memory.cache, cpu.throttled_time), (14, 18));
        assert_eq!(*memory.measured, ["RSS", "Usage", "Cache"]);
        assert_eq!(*cpu.measured, ["System Mode", "User Mode", "Percent", "Throttled Time"]);
        let none = of(GroupUsage::default());
        assert_eq!(none.memory_stats.unwrap(), empty_memory());
    }

    #[test]
    fn the_kernel_tables_are_read() {
        let times = cpu_times("cpu  9 9 9 9 9 9 9 0\ncpu0 1 2 3 4 5 6 7 0\nintr 5\n");
        assert_eq!(times, BTreeMap::from([("cpu0".to_string(), [3, 16, 9])]));
        let memory = memory("MemTotal: 10 kB\nMemFree: 2 kB\nMemAvailable: 4 kB\n");
        assert_eq!((memory.total, memory.used, memory.free), (10240, 6144, 2048));
    }
}

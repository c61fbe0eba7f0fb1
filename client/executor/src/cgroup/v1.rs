//! Control groups of version 1: a task has one in the tree of each controller, all of the same name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{GroupUsage, put, value};
use crate::process;
use crate::spec::CgroupSpec;

/// How often a group is frozen and killed: what was starting a process at that moment is met in the next round.
const KILL_ROUNDS: usize = 20;

/// How long a group may take to stand still: a process that waits for a disk does not at once.
const FREEZE_ROUNDS: usize = 200;

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Of one controller; `None` where the host has none.
fn group<'a>(spec: &'a CgroupSpec, controller: &str) -> Option<&'a Path> {
    spec.controllers.get(controller).map(PathBuf::as_path)
}

pub fn write_limits(spec: &CgroupSpec) {
    if let Some(memory) = group(spec, "memory") {
        put(memory, "memory.limit_in_bytes", spec.memory_max_bytes);
        put(memory, "memory.soft_limit_in_bytes", spec.memory_low_bytes);
        // What is in memory is counted, what is swapped out is not.
        put(memory, "memory.swappiness", Some(0));
    }
    if let Some(cpu) = group(spec, "cpu") {
        put(cpu, "cpu.shares", spec.cpu_shares);
    }
}

pub fn usage(spec: &CgroupSpec) -> GroupUsage {
    let text = |controller: &str, file: &str| {
        let path = group(spec, controller).map(|group| group.join(file));
        path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let number = |file: &str| text("memory", file).trim().parse().ok();
    let (memory, cpu) = (text("memory", "memory.stat"), text("cpu", "cpu.stat"));
    GroupUsage {
        cache_bytes: value(&memory, "cache"),
        mapped_bytes: value(&memory, "mapped_file"),
        swap_bytes: value(&memory, "swap"),
        kernel_bytes: number("memory.kmem.usage_in_bytes"),
        memory_max_bytes: number("memory.max_usage_in_bytes"),
        throttled_periods: value(&cpu, "nr_throttled"),
        throttled_ns: value(&cpu, "throttled_time"),
    }
}

pub fn oom_kills(spec: &CgroupSpec) -> Option<u64> {
    let control = fs::read_to_string(group(spec, "memory")?.join("memory.oom_control")).ok()?;
    value(&control, "oom_kill")
}

/// Freezes the group, so that nothing in it can start a process any more, kills all of it, and thaws it to die.
pub fn kill(spec: &CgroupSpec) {
    let Some(freezer) = group(spec, "freezer") else { return };
    let state = freezer.join("freezer.state");
    for _ in 0..KILL_ROUNDS {
        if members(freezer).is_empty() {
            return;
        }
        fs::write(&state, "FROZEN").ok();
        for _ in 0..FREEZE_ROUNDS {
            if fs::read_to_string(&state).is_ok_and(|state| state.trim() == "FROZEN") {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        for pid in members(freezer) {
            process::signal(pid, Signal::SIGKILL).ok();
        }
        fs::write(&state, "THAWED").ok();
        std::thread::sleep(LOOK_EVERY);
    }
}

fn members(group: &Path) -> Vec<i32> {
    let pids = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    pids.lines().filter_map(|pid| pid.parse().ok()).collect()
}

/// The groups in which the calling process is, of the controllers of `spec`.
pub fn current(root: &Path, spec: &CgroupSpec, memberships: &str) -> BTreeMap<String, PathBuf> {
    let of = |controller: &str| {
        let path = memberships.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == controller).then_some(path)
        });
        root.join(controller).join(path.unwrap_or("/").trim_start_matches('/'))
    };
    spec.controllers.keys().map(|controller| (controller.clone(), of(controller))).collect()
}

/// The groups that are the task's own: the cores that tasks share are not.
pub fn own(spec: &CgroupSpec) -> impl Iterator<Item = &PathBuf> {
    let own = |(controller, _): &(&String, &PathBuf)| *controller != "cpuset" || spec.cores.is_some();
    spec.controllers.iter().filter(own).map(|(_, path)| path)
}

//! A control group around a task: its limits, and a way to kill all of it at once. Of version 2, or of version 1, where
//! it is one in the tree of each controller.
//!
//! Failing to write a limit is not an error, as in Nomad: which controllers exist depends on the host.
//! Failing to enter the group is an error, and so are cores that the task cannot have.

mod cores;
mod v1;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::spec::CgroupSpec;

pub use cores::inherit;

/// Where control groups are mounted: those of version 2, or one directory for each controller of version 1.
pub const ROOT: &str = "/sys/fs/cgroup";

/// How often a group is tried to be removed: what was in it may still be dying.
const REMOVE_ROUNDS: usize = 50;

const REMOVE_EVERY: Duration = Duration::from_millis(5);

/// Makes the group and writes its limits. What an earlier start has left in it is killed.
///
/// # Errors
/// When it cannot be made, or cannot have its cores.
pub fn prepare(spec: &CgroupSpec) -> io::Result<()> {
    if !spec.managed {
        return Ok(());
    }
    if own(spec).iter().any(|group| group.exists()) {
        kill(spec);
    }
    own(spec).into_iter().try_for_each(fs::create_dir_all)?;
    match spec.controllers.is_empty() {
        true => {
            put(&spec.path, "memory.max", spec.memory_max_bytes);
            put(&spec.path, "memory.low", spec.memory_low_bytes);
            put(&spec.path, "cpu.weight", spec.cpu_weight);
        }
        false => v1::write_limits(spec),
    }
    cores::take(spec)
}

/// Writes a limit, if there is one.
fn put(group: &Path, file: &str, value: Option<u64>) {
    if let Some(value) = value
        && let Err(error) = fs::write(group.join(file), value.to_string())
    {
        eprintln!("executor: {file} was not set: {error}");
    }
}

/// The directories of the group that are the task's own.
fn own(spec: &CgroupSpec) -> Vec<&Path> {
    match spec.controllers.is_empty() {
        true => vec![&spec.path],
        false => v1::own(spec).map(|path| path.as_path()).collect(),
    }
}

/// Moves the calling process into the group, or of version 1 the calling thread; what it starts begins there too.
pub fn enter(spec: &CgroupSpec) -> io::Result<()> {
    match spec.controllers.is_empty() {
        true => fs::write(spec.path.join("cgroup.procs"), "0"),
        // A thread that moves itself waits for nobody; for a process the kernel first waits, some 15 ms, until no process of the
        // whole system is just starting or ending.
        false => spec.controllers.values().try_for_each(|group| fs::write(group.join("tasks"), "0")),
    }
}

/// The group in which the calling process is, where `spec` would put it.
///
/// # Errors
/// When the system does not say.
pub fn current(root: &Path, spec: &CgroupSpec) -> io::Result<CgroupSpec> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let controllers = v1::current(root, spec, &text);
    Ok(CgroupSpec { path: root.join(path), controllers, ..CgroupSpec::default() })
}

/// What a group has used. A file that is not there, for want of a controller, leaves out what it would say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupUsage {
    /// Bytes of files that are in memory for the group, those it maps included.
    pub cache_bytes: Option<u64>,
    pub mapped_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    /// Bytes in the kernel for the group.
    pub kernel_bytes: Option<u64>,
    /// The most bytes of any kind that there ever were.
    pub memory_max_bytes: Option<u64>,
    /// Periods in which the group was not allowed to run any more, and for how long, in all.
    pub throttled_periods: Option<u64>,
    pub throttled_ns: Option<u64>,
}

impl GroupUsage {
    pub fn read(spec: &CgroupSpec) -> GroupUsage {
        if !spec.controllers.is_empty() {
            return v1::usage(spec);
        }
        let group = &spec.path;
        let text = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
        let number = |file: &str| text(file).trim().parse().ok();
        let (memory, cpu) = (text("memory.stat"), text("cpu.stat"));
        GroupUsage {
            cache_bytes: value(&memory, "file"),
            mapped_bytes: value(&memory, "file_mapped"),
            swap_bytes: number("memory.swap.current"),
            kernel_bytes: value(&memory, "kernel"),
            memory_max_bytes: number("memory.peak"),
            throttled_periods: value(&cpu, "nr_throttled"),
            throttled_ns: value(&cpu, "throttled_usec").map(|micros| micros.saturating_mul(1_000)),
        }
    }
}

/// How many processes of a group the kernel has killed because its memory was used up. None of a group that is shared with
/// others: it does not say whose they were.
pub fn oom_kills(spec: &CgroupSpec) -> u64 {
    if !spec.managed {
        return 0;
    }
    let counted = match spec.controllers.is_empty() {
        true => {
            let events = fs::read_to_string(spec.path.join("memory.events")).unwrap_or_default();
            value(&events, "oom_kill")
        }
        false => v1::oom_kills(spec),
    };
    counted.unwrap_or(0)
}

/// The number behind a name in a file of such lines.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Kills all that is in the group.
pub fn kill(spec: &CgroupSpec) {
    match spec.controllers.is_empty() {
        true => drop(fs::write(spec.path.join("cgroup.kill"), "1")),
        false => v1::kill(spec),
    }
}

/// Kills all that is in the group and removes it.
pub fn destroy(spec: &CgroupSpec) {
    kill(spec);
    if !spec.managed {
        return;
    }
    for group in own(spec) {
        for _ in 0..REMOVE_ROUNDS {
            match fs::remove_dir(group) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(REMOVE_EVERY),
                _ => break,
            }
        }
    }
    cores::give_back(spec);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group as the kernel shows it.
    fn group(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|(file, text)| fs::write(dir.path().join(file), text).unwrap());
        dir
    }

    fn at(path: &Path) -> CgroupSpec {
        CgroupSpec { path: path.to_path_buf(), managed: true, ..CgroupSpec::default() }
    }

    #[test]
    fn the_files_of_a_group_say_what_it_has_used() {
        let memory = "anon 1000\nfile 8192\nkernel 300\nfile_mapped 4096\nfile_dirty 7\n";
        let cpu = "usage_usec 9\nnr_periods 50\nnr_throttled 12\nthrottled_usec 34\nnr_bursts 0\n";
        let dir = group(&[
            ("memory.stat", memory),
            ("cpu.stat", cpu),
            ("memory.swap.current", "77\n"),
            ("memory.peak", "12000\n"),
        ]);
        let expected = GroupUsage {
            cache_bytes: Some(8192),
            mapped_bytes: Some(4096),
            swap_bytes: Some(77),
            kernel_bytes: Some(300),
            memory_max_bytes: Some(12_000),
            throttled_periods: Some(12),
            throttled_ns: Some(34_000),
        };
        assert_eq!(GroupUsage::read(&at(dir.path())), expected);
    }

    #[test]
    fn what_the_kernel_does_not_show_is_left_out() {
        // Without the controller of memory, on a kernel without swap, and when the group is gone.
        let dir = group(&[("cpu.stat", "usage_usec 9\nuser_usec 5\n")]);
        assert_eq!(GroupUsage::read(&at(dir.path())), GroupUsage::default());
        assert_eq!(GroupUsage::read(&at(&dir.path().join("gone"))), GroupUsage::default());
    }

    #[test]
    fn what_ran_out_of_memory_is_counted_in_a_group_of_its_own() {
        let dir = group(&[("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 0\n")]);
        let spec = |managed, path: &Path| CgroupSpec { managed, ..at(path) };
        assert_eq!(oom_kills(&spec(true, dir.path())), 3);
        assert_eq!(oom_kills(&spec(false, dir.path())), 0);
        assert_eq!(oom_kills(&spec(true, &dir.path().join("gone"))), 0);
    }

    /// A group of version 1 below `root`, as the kernel shows it once its limits can be written.
    fn version_1(root: &Path) -> CgroupSpec {
        let controllers = ["cpu", "freezer", "memory"]
            .map(|name| (name.to_string(), root.join(name).join("nomad/a.t")))
            .into();
        CgroupSpec { controllers, managed: true, ..CgroupSpec::default() }
    }

    #[test]
    fn limits_of_version_1_are_written_to_the_group_of_their_controller() {
        let root = tempfile::tempdir().unwrap();
        let spec = CgroupSpec {
            memory_max_bytes: Some(64),
            memory_low_bytes: Some(32),
            cpu_weight: Some(7),
            cpu_shares: Some(500),
            ..version_1(root.path())
        };
        prepare(&spec).unwrap();
        let read = |file: &str| fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!(read("memory/nomad/a.t/memory.limit_in_bytes"), "64");
        assert_eq!(read("memory/nomad/a.t/memory.soft_limit_in_bytes"), "32");
        assert_eq!(read("memory/nomad/a.t/memory.swappiness"), "0");
        assert_eq!(read("cpu/nomad/a.t/cpu.shares"), "500");
        enter(&spec).unwrap();
        for controller in ["cpu", "freezer", "memory"] {
            assert_eq!(read(&format!("{controller}/nomad/a.t/tasks")), "0");
        }
    }

    #[test]
    fn groups_of_version_1_say_what_they_have_used_and_what_ran_out_of_memory() {
        let root = tempfile::tempdir().unwrap();
        let spec = version_1(root.path());
        prepare(&spec).unwrap();
        let put = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
        put("memory/nomad/a.t/memory.stat", "cache 8192\nrss 1\nmapped_file 4096\nswap 77\n");
        put("memory/nomad/a.t/memory.max_usage_in_bytes", "12000\n");
        put("memory/nomad/a.t/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        put("cpu/nomad/a.t/cpu.stat", "nr_periods 5\nnr_throttled 3\nthrottled_time 34000\n");
        let expected = GroupUsage {
            cache_bytes: Some(8192),
            mapped_bytes: Some(4096),
            swap_bytes: Some(77),
            kernel_bytes: None,
            memory_max_bytes: Some(12_000),
            throttled_periods: Some(3),
            throttled_ns: Some(34_000),
        };
        assert_eq!(GroupUsage::read(&spec), expected);
        assert_eq!(oom_kills(&spec), 2);
        assert_eq!(oom_kills(&CgroupSpec { managed: false, ..spec }), 0);
    }

    #[test]
    fn a_process_finds_its_way_back_in_each_tree() {
        let memberships = "9:name=systemd:/\n4:memory:/user/x\n3:cpu,cpuacct:/\n0::/\n";
        let spec = version_1(Path::new("/cg"));
        let found = v1::current(Path::new("/cg"), &spec, memberships);
        assert_eq!(found["memory"], Path::new("/cg/memory/user/x"));
        assert_eq!(found["cpu"], Path::new("/cg/cpu/"));
        assert_eq!(found["freezer"], Path::new("/cg/freezer/"), "one that is not listed");
    }
}

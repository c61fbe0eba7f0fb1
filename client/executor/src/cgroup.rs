//! A control group (version 2) around a task: its limits, and a way to kill all of it at once.
//!
//! Failing to write a limit is not an error, as in Nomad: which controllers exist depends on the host.
//! Failing to enter the group is an error.

use std::fs;
use std::io;
use std::path::Path;

use crate::spec::CgroupSpec;

/// Where control groups of version 2 are mounted.
pub const ROOT: &str = "/sys/fs/cgroup";

/// Makes the group and writes its limits.
pub fn prepare(spec: &CgroupSpec) -> io::Result<()> {
    if !spec.managed {
        return Ok(());
    }
    fs::create_dir_all(&spec.path)?;
    let limits = [
        ("memory.max", spec.memory_max_bytes),
        ("memory.low", spec.memory_low_bytes),
        ("cpu.weight", spec.cpu_weight),
    ];
    for (file, value) in limits {
        if let Some(value) = value
            && let Err(error) = fs::write(spec.path.join(file), value.to_string())
        {
            eprintln!("executor: {file} was not set: {error}");
        }
    }
    Ok(())
}

/// Moves the calling process into the group; its children start there too.
pub fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), std::process::id().to_string())
}

/// The group the calling process is in.
pub fn current(root: &Path) -> io::Result<std::path::PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(root.join(path))
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
    pub fn read(group: &Path) -> GroupUsage {
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
    let events = fs::read_to_string(spec.path.join("memory.events")).unwrap_or_default();
    value(&events, "oom_kill").filter(|_| spec.managed).unwrap_or(0)
}

/// The number behind a name in a file of such lines.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Kills all that is in the group.
pub fn kill(group: &Path) {
    fs::write(group.join("cgroup.kill"), "1").ok();
}

/// Kills all that is in the group and removes it.
pub fn destroy(spec: &CgroupSpec) {
    kill(&spec.path);
    if spec.managed {
        fs::remove_dir(&spec.path).ok();
    }
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
        assert_eq!(GroupUsage::read(dir.path()), expected);
    }

    #[test]
    fn what_the_kernel_does_not_show_is_left_out() {
        // Without the controller of memory, on a kernel without swap, and when the group is gone.
        let dir = group(&[("cpu.stat", "usage_usec 9\nuser_usec 5\n")]);
        assert_eq!(GroupUsage::read(dir.path()), GroupUsage::default());
        assert_eq!(GroupUsage::read(&dir.path().join("gone")), GroupUsage::default());
    }

    #[test]
    fn what_ran_out_of_memory_is_counted_in_a_group_of_its_own() {
        let dir = group(&[("memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 0\n")]);
        let spec =
            |managed, path: &Path| CgroupSpec { path: path.to_path_buf(), managed, ..CgroupSpec::default() };
        assert_eq!(oom_kills(&spec(true, dir.path())), 3);
        assert_eq!(oom_kills(&spec(false, dir.path())), 0);
        assert_eq!(oom_kills(&spec(true, &dir.path().join("gone"))), 0);
    }
}

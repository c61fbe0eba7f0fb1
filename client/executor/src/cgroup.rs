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

/// Kills all that is in the group and removes it.
pub fn destroy(spec: &CgroupSpec) {
    fs::write(spec.path.join("cgroup.kill"), "1").ok();
    if spec.managed {
        fs::remove_dir(&spec.path).ok();
    }
}

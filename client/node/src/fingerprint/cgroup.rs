//! Whether this host lets us have control groups of version 2.

use std::path::{Path, PathBuf};

use executor::cgroup;

use super::Attributes;

/// The parent of all groups of tasks.
pub const PARENT: &str = "nomad.slice";

/// Makes the parent of the tasks' groups, with the controllers that limits need. `None` where the host has
/// other groups, or none for us: then tasks have no limits, and the executor ends them by their process numbers.
pub fn prepare() -> Option<PathBuf> {
    let root = Path::new(cgroup::ROOT);
    let available = std::fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    let has = |name: &str| available.split_ascii_whitespace().any(|controller| controller == name);
    if !(has("memory") && has("cpu") && rustix::process::geteuid().is_root()) {
        return None;
    }
    let share = root.join(PARENT).join("share.slice");
    std::fs::create_dir_all(&share).ok()?;
    for group in [root, &root.join(PARENT), &share] {
        std::fs::write(group.join("cgroup.subtree_control"), "+cpu +memory").ok()?;
    }
    Some(share)
}

pub fn describe(parent: Option<&Path>, attributes: &mut Attributes) {
    if parent.is_some() {
        attributes.insert("os.cgroups.version".to_string(), "2".to_string());
    }
}

//! Whether this host lets us have control groups, and of which version.

use std::fs;
use std::path::Path;

use executor::cgroup;

use super::Attributes;
use crate::driver::process::{CgroupParent, inherit_cores};

/// The parent of all groups of tasks, unless the operator names another.
const PARENTS: (&str, &str) = ("nomad", "nomad.slice");

/// Makes the parent of the tasks' groups, with the controllers that limits need. `None` where the host has none for us:
/// then tasks have no limits, and the executor ends them by their process numbers. `name` is the operator's, or empty.
pub fn prepare(name: &str) -> Option<CgroupParent> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let root = Path::new(cgroup::ROOT);
    match root.join("cgroup.controllers").exists() {
        true => version_2(root, if name.is_empty() { PARENTS.1 } else { name }),
        false => version_1(root, if name.is_empty() { PARENTS.0 } else { name }),
    }
}

fn version_2(root: &Path, name: &str) -> Option<CgroupParent> {
    let available = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
    let has = |name: &str| available.split_ascii_whitespace().any(|controller| controller == name);
    if !(has("memory") && has("cpu")) {
        return None;
    }
    let parent = CgroupParent::V2 { slice: root.join(name) };
    let partitions = parent.partitions();
    partitions.iter().try_for_each(fs::create_dir_all).ok()?;
    for group in [root, &root.join(name), &partitions[0], &partitions[1]] {
        fs::write(group.join("cgroup.subtree_control"), "+cpu +memory").ok()?;
        // Without it only cores cannot be reserved, which fails the task that has some.
        fs::write(group.join("cgroup.subtree_control"), "+cpuset").ok();
    }
    Some(parent)
}

fn version_1(root: &Path, name: &str) -> Option<CgroupParent> {
    let has = |controller: &&str| root.join(controller).join("cgroup.procs").exists();
    if !CgroupParent::CONTROLLERS.iter().all(has) {
        return None;
    }
    let name = name.trim_start_matches('/').to_string();
    let parents = CgroupParent::CONTROLLERS.map(|controller| root.join(controller).join(&name));
    parents.iter().try_for_each(fs::create_dir_all).ok()?;
    let cores = root.join("cpuset").join(&name);
    let parent = CgroupParent::V1 { root: root.to_path_buf(), name };
    let partitions = parent.partitions();
    partitions.iter().try_for_each(fs::create_dir_all).ok()?;
    for group in [&cores, &partitions[0], &partitions[1]] {
        inherit_cores(group);
    }
    Some(parent)
}

/// As `NOMAD_PARENT_CGROUP` and the node have it.
pub fn name(parent: Option<&CgroupParent>) -> String {
    match parent {
        Some(CgroupParent::V1 { name, .. }) => format!("/{name}"),
        Some(CgroupParent::V2 { slice }) => {
            slice.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        }
        None => PARENTS.1.to_string(),
    }
}

pub fn describe(parent: Option<&CgroupParent>, attributes: &mut Attributes) {
    let version = match parent {
        None => return,
        Some(CgroupParent::V1 { .. }) => "1",
        Some(CgroupParent::V2 { .. }) => "2",
    };
    attributes.insert("os.cgroups.version".to_string(), version.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_version_1_gets_a_parent_in_each_tree() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(version_1(root.path(), "nomad"), None, "no controllers");
        for controller in CgroupParent::CONTROLLERS {
            fs::create_dir(root.path().join(controller)).unwrap();
            fs::write(root.path().join(controller).join("cgroup.procs"), "").unwrap();
        }
        let parent = version_1(root.path(), "/nomad").unwrap();
        assert!(root.path().join("memory/nomad").is_dir() && root.path().join("freezer/nomad").is_dir());
        assert!(parent.partitions().iter().all(|partition| partition.is_dir()));
        assert_eq!(name(Some(&parent)), "/nomad");
    }

    #[test]
    fn a_host_of_version_2_needs_the_controllers_of_the_limits() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu io pids").unwrap();
        assert_eq!(version_2(root.path(), "nomad.slice"), None);
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io memory").unwrap();
        let parent = version_2(root.path(), "nomad.slice").unwrap();
        assert!(root.path().join("nomad.slice/reserve.slice").is_dir());
        assert_eq!(name(Some(&parent)), "nomad.slice");
    }
}

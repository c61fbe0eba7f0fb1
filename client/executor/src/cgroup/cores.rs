//! Cores that are one task's alone: its group has them, and the group of all other tasks does not.
//!
//! What the others have is computed from what is there, whenever a task with cores comes or goes: all that the parent
//! has, less what any group beside the task's has. So it is right again after whatever was missed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::spec::CgroupSpec;

const CPUS: &str = "cpuset.cpus";

/// Gives the task its cores.
pub fn take(spec: &CgroupSpec) -> io::Result<()> {
    let Some((cores, group)) = spec.cores.as_ref().zip(group(spec)) else { return Ok(()) };
    // Of version 1, which has no memory to run in until that is said.
    inherit(&group, "cpuset.mems");
    fs::write(group.join(CPUS), &cores.cpus)
        .map_err(|error| io::Error::new(error.kind(), format!("the cores {}: {error}", cores.cpus)))?;
    balance(&group, &cores.share);
    Ok(())
}

/// Gives them back, once the group is gone.
pub fn give_back(spec: &CgroupSpec) {
    if let Some((cores, group)) = spec.cores.as_ref().zip(group(spec)) {
        balance(&group, &cores.share);
    }
}

/// The group with the task's cores.
fn group(spec: &CgroupSpec) -> Option<PathBuf> {
    match spec.controllers.is_empty() {
        true => Some(spec.path.clone()),
        false => spec.controllers.get("cpuset").cloned(),
    }
}

/// Sets a value that is empty to what the parent has.
pub fn inherit(group: &Path, file: &str) {
    let read = |group: &Path| fs::read_to_string(group.join(file)).unwrap_or_default();
    if group.join(file).exists() && read(group).trim().is_empty() {
        let parent = group.parent().map(read).unwrap_or_default();
        fs::write(group.join(file), parent.trim()).ok();
    }
}

fn balance(group: &Path, share: &Path) {
    let Some((reserve, parent)) = group.parent().zip(share.parent()) else { return };
    let Ok(lock) = fs::File::open(reserve) else { return };
    // Executors of other tasks do the same.
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).ok();
    let taken: BTreeSet<u16> = fs::read_dir(reserve)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .flat_map(|entry| cpus(&entry.path(), &[CPUS]))
        .collect();
    let all = cpus(parent, &[CPUS, "cpuset.cpus.effective"]);
    let left: Vec<String> = all.difference(&taken).map(u16::to_string).collect();
    if left.is_empty() {
        eprintln!(
            "executor: tasks without cores of their own keep those that were reserved last: no other is left"
        );
    } else if let Err(error) = fs::write(share.join(CPUS), left.join(",")) {
        eprintln!("executor: {CPUS} of the shared cores was not set: {error}");
    }
}

/// The first of these files that says something.
fn cpus(group: &Path, files: &[&str]) -> BTreeSet<u16> {
    let texts = files.iter().map(|file| fs::read_to_string(group.join(file)).unwrap_or_default());
    texts.map(|text| parse(text.trim())).find(|cpus| !cpus.is_empty()).unwrap_or_default()
}

/// The numbers of a list like `0-3,8`.
fn parse(list: &str) -> BTreeSet<u16> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::CoresSpec;

    #[test]
    fn cores_are_taken_from_those_that_tasks_share_and_given_back() {
        let root = tempfile::tempdir().unwrap();
        let (share, reserve) = (root.path().join("share.slice"), root.path().join("reserve.slice"));
        for group in [&share, &reserve, &reserve.join("a"), &reserve.join("b")] {
            fs::create_dir(group).unwrap();
        }
        fs::write(root.path().join(CPUS), "\n").unwrap();
        fs::write(root.path().join("cpuset.cpus.effective"), "0-7\n").unwrap();
        fs::write(reserve.join("b").join(CPUS), "6\n").unwrap();
        let cores = Some(CoresSpec { cpus: "1-2,4".into(), share: share.clone() });
        let spec = CgroupSpec { path: reserve.join("a"), managed: true, cores, ..CgroupSpec::default() };
        take(&spec).unwrap();
        assert_eq!(fs::read_to_string(reserve.join("a").join(CPUS)).unwrap(), "1-2,4");
        assert_eq!(fs::read_to_string(share.join(CPUS)).unwrap(), "0,3,5,7");
        fs::remove_dir_all(reserve.join("a")).unwrap();
        give_back(&spec);
        assert_eq!(fs::read_to_string(share.join(CPUS)).unwrap(), "0,1,2,3,4,5,7");
    }
}

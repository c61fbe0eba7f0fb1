//! Where the control groups of tasks are, and what their limits are.

use std::path::{Path, PathBuf};

use executor::spec::{CgroupSpec, CoresSpec};

use crate::driver::{Limits, TaskConfig};
use crate::task::environment::ranges;

/// The parent of the groups of all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupParent {
    /// Where the trees of the controllers are mounted, and the name of the parent in each.
    V1 {
        root: PathBuf,
        name: String,
    },
    V2 {
        slice: PathBuf,
    },
}

impl CgroupParent {
    /// The controllers of version 1 that limits need.
    pub const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "freezer", "memory"];

    /// The group of tasks that have no cores of their own, and the parent of those of tasks that have some.
    pub fn partitions(&self) -> [PathBuf; 2] {
        match self {
            CgroupParent::V1 { root, name } => {
                ["share", "reserve"].map(|part| root.join("cpuset").join(name).join(part))
            }
            CgroupParent::V2 { slice } => ["share.slice", "reserve.slice"].map(|part| slice.join(part)),
        }
    }

    /// A group with the limits of the task.
    pub fn group(&self, config: &TaskConfig) -> CgroupSpec {
        let [share, reserve] = self.partitions();
        let cpus = ranges(&config.cores);
        let cores = (!cpus.is_empty()).then(|| CoresSpec { cpus, share: share.clone() });
        let task = format!("{}.{}", config.alloc_id, config.task);
        let place = match self {
            CgroupParent::V2 { .. } => {
                let partition = if cores.is_some() { reserve } else { share };
                CgroupSpec { path: partition.join(format!("{task}.scope")), ..CgroupSpec::default() }
            }
            CgroupParent::V1 { root, name } => {
                let of = |controller: &str| match controller {
                    "cpuset" if cores.is_some() => reserve.join(&task),
                    "cpuset" => share.clone(),
                    _ => root.join(controller).join(name).join(&task),
                };
                let controllers =
                    Self::CONTROLLERS.map(|controller| (controller.to_string(), of(controller)));
                CgroupSpec { controllers: controllers.into(), ..CgroupSpec::default() }
            }
        };
        CgroupSpec { managed: true, cores, ..with_limits(place, &config.limits) }
    }
}

fn with_limits(place: CgroupSpec, limits: &Limits) -> CgroupSpec {
    let bytes = |mb: i64| (mb > 0).then(|| mb as u64 * 1024 * 1024);
    let (memory_max_bytes, memory_low_bytes) = match limits.memory_max_mb {
        0 => (bytes(limits.memory_mb), None),
        max => (bytes(max), bytes(limits.memory_mb)),
    };
    let shares = limits.cpu_shares() as u64;
    let cpu_weight = Some(1 + (shares - 2) * 9999 / 262_142);
    CgroupSpec { memory_max_bytes, memory_low_bytes, cpu_weight, cpu_shares: Some(shares), ..place }
}

/// The files that a parent of version 1 needs before a group below it can be used.
pub fn inherit_cores(group: &Path) {
    for file in ["cpuset.mems", "cpuset.cpus"] {
        executor::cgroup::inherit(group, file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::task_config;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn a_task_has_its_limits_in_a_group_of_its_name() {
        let mut config = task_config();
        config.limits = Limits { cpu_mhz: 500, memory_mb: 64, memory_max_mb: 128, ..Limits::default() };
        let task = format!("{}.{}", config.alloc_id, config.task);
        let second = CgroupParent::V2 { slice: "/cg/nomad.slice".into() }.group(&config);
        assert_eq!(second.path, Path::new("/cg/nomad.slice/share.slice").join(format!("{task}.scope")));
        assert_eq!(
            (second.memory_max_bytes, second.memory_low_bytes, second.cpu_weight),
            (Some(128 * MIB), Some(64 * MIB), Some(19))
        );
        let first = CgroupParent::V1 { root: "/cg".into(), name: "nomad".into() }.group(&config);
        assert_eq!(first.controllers["memory"], Path::new("/cg/memory/nomad").join(&task));
        assert_eq!(first.controllers["cpuset"], Path::new("/cg/cpuset/nomad/share"));
        assert_eq!(first.cpu_shares, Some(500));
        config.limits.memory_max_mb = -1;
        let unlimited = CgroupParent::V2 { slice: "/cg".into() }.group(&config);
        assert_eq!((unlimited.memory_max_bytes, unlimited.memory_low_bytes), (None, Some(64 * MIB)));
    }

    #[test]
    fn a_task_with_cores_has_its_group_apart() {
        let mut config = task_config();
        config.cores = vec![3, 1, 2];
        let second = CgroupParent::V2 { slice: "/cg".into() }.group(&config);
        assert!(second.path.starts_with("/cg/reserve.slice"));
        let share = PathBuf::from("/cg/share.slice");
        assert_eq!(second.cores, Some(CoresSpec { cpus: "1-3".into(), share }));
        let first = CgroupParent::V1 { root: "/cg".into(), name: "nomad".into() }.group(&config);
        assert!(first.controllers["cpuset"].starts_with("/cg/cpuset/nomad/reserve"));
        assert!(first.controllers["cpu"].starts_with("/cg/cpu/nomad"));
    }
}

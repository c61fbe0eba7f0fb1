//! What an allocation was given, in the shape from before `AllocatedResources`: tools still read it.

use model::document::{
    AllocatedResources, AllocatedSharedResources, AllocatedTaskResources, List, Map, NetworkResource,
    Resources,
};

/// Of the tasks and of what they share.
pub fn of_all(given: &AllocatedResources) -> Resources {
    let mut all = of_shared(&given.shared);
    for task in given.tasks.values() {
        let most =
            if task.memory.memory_max_mb > 0 { task.memory.memory_max_mb } else { task.memory.memory_mb };
        let add = |to: &mut Option<i64>, amount: i64| *to = Some(to.unwrap_or(0) + amount);
        add(&mut all.cpu, task.cpu.cpu_shares);
        add(&mut all.cores, task.cpu.reserved_cores.len() as i64);
        add(&mut all.memory_mb, task.memory.memory_mb);
        add(&mut all.memory_max_mb, most);
        all.networks.extend(task.networks.iter().cloned());
    }
    all
}

pub fn of_shared(shared: &AllocatedSharedResources) -> Resources {
    Resources { disk_mb: Some(shared.disk_mb), ..nothing(shared.networks.clone()) }
}

pub fn of_tasks(given: &AllocatedResources) -> Map<String, Resources> {
    given.tasks.iter().map(|(name, task)| (name.clone(), of_task(task))).collect()
}

fn of_task(task: &AllocatedTaskResources) -> Resources {
    Resources {
        cpu: Some(task.cpu.cpu_shares),
        cores: Some(task.cpu.reserved_cores.len() as i64),
        memory_mb: Some(task.memory.memory_mb),
        memory_max_mb: Some(task.memory.memory_max_mb),
        ..nothing(task.networks.clone())
    }
}

/// Every amount is set, also those that are zero.
fn nothing(networks: List<NetworkResource>) -> Resources {
    let none = Some(0);
    Resources {
        cpu: none,
        cores: none,
        memory_mb: none,
        memory_max_mb: none,
        disk_mb: none,
        secrets_mb: none,
        iops: none,
        networks,
        ..Resources::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tasks_are_added_up_and_share_a_disk() {
        let given: AllocatedResources = serde_json::from_value(json!({
            "Tasks": {
                "a": {"Cpu": {"CpuShares": 2000, "ReservedCores": [3, 4]}, "Memory": {"MemoryMB": 300}},
                "b": {"Cpu": {"CpuShares": 100}, "Memory": {"MemoryMB": 64, "MemoryMaxMB": 512}},
            },
            "Shared": {"DiskMB": 150, "Networks": [{"IP": "10.0.0.1"}]},
        }))
        .unwrap();
        let amounts = |of: &Resources| (of.cpu, of.cores, of.memory_mb, of.memory_max_mb, of.disk_mb);
        let is =
            |cpu, cores, memory, most, disk| (Some(cpu), Some(cores), Some(memory), Some(most), Some(disk));
        let (all, shared, tasks) = (of_all(&given), of_shared(&given.shared), of_tasks(&given));
        // What a task may use at most is what it asked for, unless it asked for more at times.
        assert_eq!(amounts(&all), is(2100, 2, 364, 812, 150));
        assert_eq!(amounts(&shared), is(0, 0, 0, 0, 150));
        assert_eq!(amounts(&tasks["a"]), is(2000, 2, 300, 0, 0));
        assert_eq!(amounts(&tasks["b"]), is(100, 0, 64, 512, 0));
        assert_eq!((&all.networks, &shared.networks), (&given.shared.networks, &given.shared.networks));
    }
}

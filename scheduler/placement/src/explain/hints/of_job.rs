//! Changes of the job: requests, constraints, ports, devices, drivers, where it may run.

use std::collections::BTreeSet;

use model::document::{Constraint, Job, Resources, Task};

use super::{Search, group_of};

/// Drivers whose tasks are described alike. An image does not run under `raw_exec`, so that is no hint.
const ALIKE: [&[&str]; 2] = [&["exec", "raw_exec"], &["docker", "podman"]];

type Get = fn(&Resources) -> Option<i64>;
type Set = fn(&mut Resources, i64);

const DIMENSIONS: [(&str, &str, Get, Set); 3] = [
    ("CPU", "MHz", |of| of.cpu, |of, to| of.cpu = Some(to)),
    ("memory", "MiB", |of| of.memory_mb, |of, to| of.memory_mb = Some(to)),
    ("CPU", "cores", |of| of.cores, |of, to| of.cores = Some(to)),
];

impl Search<'_> {
    pub(super) fn job_changes(&mut self) {
        self.requests();
        self.cores();
        self.devices();
        self.constraints();
        self.ports();
        self.drivers();
        self.reach();
    }

    /// Less cpu, memory or disk, or fewer cores: the largest request that can be placed.
    fn requests(&mut self) {
        let Some(group) = self.own_group() else { return };
        for (what, unit, of, set) in DIMENSIONS {
            let of_task = |task: &Task| task.resources.as_ref().and_then(of).unwrap_or(0);
            let Some(largest) = group.tasks.iter().max_by_key(|task| of_task(task)) else { continue };
            let (name, asked) = (largest.name.clone(), of_task(largest));
            let lowered = |job: &mut Job, group: &str, to: i64| {
                change_resources(job, group, &name, |resources| set(resources, to));
            };
            if let Some(most) = self.most(asked, lowered) {
                self.give(format!("task {name:?} asked for {most} {unit} of {what} instead of {asked}"));
            }
        }
        let disk = group.ephemeral_disk.as_ref().and_then(|disk| disk.size_mb).unwrap_or(0);
        let lowered = |job: &mut Job, group: &str, to: i64| {
            if let Some(disk) = group_of(job, group).and_then(|group| group.ephemeral_disk.as_mut()) {
                disk.size_mb = Some(to);
            }
        };
        if let Some(most) = self.most(disk, lowered) {
            self.give(format!("the group asked for {most} MiB of disk instead of {disk}"));
        }
    }

    /// The largest request below `asked` with which everything can be placed, if there is one.
    fn most(&mut self, asked: i64, lower: impl Fn(&mut Job, &str, i64)) -> Option<i64> {
        let group = self.asked.group;
        let (mut fits, mut fails) = (1, asked);
        if asked <= fits || !self.tried(|job| lower(job, group, fits)) {
            return None;
        }
        while fails - fits > 1 {
            let middle = fits + (fails - fits) / 2;
            if self.tried(|job| lower(job, group, middle)) {
                fits = middle;
            } else {
                fails = middle;
            }
        }
        Some(fits)
    }

    /// A share of the CPU instead of whole cores.
    fn cores(&mut self) {
        let group = self.asked.group;
        let Some(own) = self.own_group() else { return };
        for task in &own.tasks {
            let Some(resources) = &task.resources else { continue };
            let (Some(cores), Some(cpu)) = (resources.cores.filter(|n| *n > 0), resources.cpu) else {
                continue;
            };
            let change = format!("task {:?} asked for {cpu} MHz of CPU instead of {cores} cores", task.name);
            self.try_change(change, |job| {
                change_resources(job, group, &task.name, |resources| resources.cores = None);
            });
        }
    }

    fn devices(&mut self) {
        let group = self.asked.group;
        let Some(own) = self.own_group() else { return };
        for task in &own.tasks {
            let devices = task.resources.iter().flat_map(|resources| resources.devices.iter());
            for (at, device) in devices.enumerate() {
                let (of, name) = (&task.name, &device.name);
                let asked = i64::try_from(device.count.unwrap_or(1)).unwrap_or(i64::MAX);
                let lowered = |job: &mut Job, group: &str, to: i64| {
                    change_resources(job, group, of, |resources| {
                        resources.devices[at].count = u64::try_from(to).ok();
                    });
                };
                if let Some(most) = self.most(asked, lowered) {
                    self.give(format!("task {of:?} asked for {most} devices {name:?} instead of {asked}"));
                }
                for (nth, dropped) in device.constraints.iter().enumerate() {
                    let change =
                        format!("the constraint {} of device {name:?} were dropped", text_of(dropped));
                    self.try_change(change, |job| {
                        change_resources(job, group, of, |resources| {
                            resources.devices[at].constraints.remove(nth);
                        });
                    });
                }
                self.try_change(format!("task {of:?} asked for no device {name:?}"), |job| {
                    change_resources(job, group, of, |resources| {
                        resources.devices.remove(at);
                    });
                });
            }
        }
    }

    fn constraints(&mut self) {
        let (job, group) = (self.job, self.asked.group);
        for (at, dropped) in job.constraints.iter().enumerate() {
            let text = text_of(dropped);
            self.try_change(format!("the job's constraint {text} were dropped"), |job| {
                job.constraints.remove(at);
            });
        }
        let Some(own) = self.own_group() else { return };
        for (at, dropped) in own.constraints.iter().enumerate() {
            self.try_change(format!("the constraint {} were dropped", text_of(dropped)), |job| {
                if let Some(group) = group_of(job, group) {
                    group.constraints.remove(at);
                }
            });
        }
        for (nth, task) in own.tasks.iter().enumerate() {
            for (at, dropped) in task.constraints.iter().enumerate() {
                let change =
                    format!("the constraint {} of task {:?} were dropped", text_of(dropped), task.name);
                self.try_change(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        group.tasks[nth].constraints.remove(at);
                    }
                });
            }
        }
    }

    fn ports(&mut self) {
        let group = self.asked.group;
        let Some(own) = self.own_group() else { return };
        for (nth, network) in own.networks.iter().enumerate() {
            for (at, port) in network.reserved_ports.iter().enumerate() {
                let change = format!("port {:?} were any port instead of {}", port.label, port.value);
                self.try_change(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        let network = &mut group.networks[nth];
                        let mut freed = network.reserved_ports.remove(at);
                        freed.value = 0;
                        network.dynamic_ports.push(freed);
                    }
                });
            }
            let ports = network.reserved_ports.iter().chain(network.dynamic_ports.iter());
            for (at, port) in ports.enumerate().filter(|(_, port)| !port.host_network.is_empty()) {
                let change = format!(
                    "port {:?} were on the default host network instead of {:?}",
                    port.label, port.host_network
                );
                self.try_change(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        let network = &mut group.networks[nth];
                        let all = network.reserved_ports.iter_mut().chain(network.dynamic_ports.iter_mut());
                        all.skip(at).take(1).for_each(|port| port.host_network.clear());
                    }
                });
            }
        }
    }

    /// Another driver that some node has and that takes the same description of a task.
    fn drivers(&mut self) {
        let group = self.asked.group;
        let Some(own) = self.own_group() else { return };
        let nodes = &self.asked.state.nodes;
        let healthy = |row| {
            let drivers = &nodes.cold(row).document.drivers;
            drivers
                .iter()
                .filter(|(_, driver)| driver.detected && driver.healthy)
                .map(|(name, _)| name.clone())
        };
        let known: BTreeSet<String> = nodes.rows().flat_map(healthy).collect();
        for (nth, task) in own.tasks.iter().enumerate() {
            let wanted = task.driver.as_str();
            let alike = ALIKE.iter().filter(|alike| alike.contains(&wanted)).copied().flatten();
            for other in alike.filter(|other| **other != wanted && known.contains(**other)) {
                let change = format!("task {:?} ran with the driver {other} instead of {wanted}", task.name);
                self.try_change(change, |job| {
                    if let Some(group) = group_of(job, group) {
                        group.tasks[nth].driver = other.to_string();
                    }
                });
            }
        }
    }

    fn reach(&mut self) {
        let everywhere = self.job.datacenters.iter().any(|pattern| pattern == "*");
        if !everywhere && !self.job.datacenters.is_empty() {
            let change =
                format!("every datacenter were allowed instead of {}", self.job.datacenters.join(", "));
            self.try_change(change, |job| job.datacenters = vec!["*".to_string()].into());
        }
        let pool = self.job.node_pool.as_deref().filter(|pool| !pool.is_empty()).unwrap_or("default");
        if pool != "all" {
            let change = format!("every node pool were allowed instead of {pool:?}");
            self.try_change(change, |job| job.node_pool = Some("all".to_string()));
        }
    }
}

fn change_resources(job: &mut Job, group: &str, task: &str, change: impl FnOnce(&mut Resources)) {
    let task = group_of(job, group).and_then(|group| group.tasks.iter_mut().find(|one| one.name == task));
    if let Some(resources) = task.and_then(|task| task.resources.as_mut()) {
        change(resources);
    }
}

fn text_of(constraint: &Constraint) -> String {
    let text = format!("{} {} {}", constraint.l_target, constraint.operand, constraint.r_target);
    text.trim().to_string()
}

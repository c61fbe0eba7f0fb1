//! The resources that one allocation of a group requests.

use model::Template;
use model::document::{
    AllocatedCpuResources, AllocatedMemoryResources, AllocatedResources, AllocatedSharedResources,
    AllocatedTaskResources, NetworkResource, Port, PortMapping, Resources, Task, TaskGroup,
};
use state::node::Amount;

use crate::feasibility::cores::wanted;
use crate::feasibility::dedicated::DedicatedRequest;
use crate::feasibility::memory_max::maximum;

/// What a task gets by default, in MHz and MiB. Job canonicalisation fills in the same numbers.
const CPU_DEFAULT: i64 = 100;
const MEMORY_DEFAULT: i64 = 300;
const DISK_DEFAULT: i64 = 300;

#[derive(Debug)]
pub struct ResourceRequest {
    pub amount: Amount,
    /// What all allocations of the group have in common.
    pub template: Template,
    pub dedicated: DedicatedRequest,
    /// Why the group cannot be placed at all: it uses something that is not implemented. No node is feasible.
    pub unsupported: Option<&'static str>,
}

impl ResourceRequest {
    /// `oversubscribed`: the `memory_max` of tasks counts.
    pub fn of(group: &TaskGroup, oversubscribed: bool) -> ResourceRequest {
        let amount = amount(group);
        let ports = group.networks.first().map(sorted_ports).unwrap_or_default();
        ResourceRequest {
            amount,
            template: template(group, amount, &ports, oversubscribed),
            dedicated: DedicatedRequest::of(group),
            unsupported: unsupported(group),
        }
    }
}

/// What is not implemented. It is rejected with a reason, because ignoring it would start the group without it.
fn unsupported(group: &TaskGroup) -> Option<&'static str> {
    let network = group.networks.first();
    let has_ports =
        |network: &NetworkResource| !network.reserved_ports.is_empty() || !network.dynamic_ports.is_empty();
    let of_tasks = || group.tasks.iter().filter_map(|task| task.resources.as_ref());
    if network.is_some_and(|network| network.mode == "none" && has_ports(network)) {
        Some("there are no ports in the network mode none")
    } else if of_tasks().any(|resources| resources.networks.iter().any(has_ports)) {
        Some("networks of tasks are not placed by this release, those of groups are")
    } else {
        None
    }
}

/// The mode of a network; the default is host.
pub fn mode(network: &NetworkResource) -> &str {
    if network.mode.is_empty() { "host" } else { &network.mode }
}

/// Ports by label.
///
/// By label, because an in-place update keeps an allocation's numbers: reordering ports in the job must not
/// exchange them.
fn sorted_ports(network: &NetworkResource) -> Vec<&Port> {
    let mut ports: Vec<&Port> = network.reserved_ports.iter().chain(&network.dynamic_ports).collect();
    ports.sort_by(|one, other| one.label.cmp(&other.label));
    ports
}

fn template(group: &TaskGroup, amount: Amount, ports: &[&Port], oversubscribed: bool) -> Template {
    let tasks = group.tasks.iter();
    let lifecycles = tasks.clone().filter_map(|task| Some((task.name.clone(), task.lifecycle.clone()?)));
    let mapping =
        |port: &&Port| PortMapping { label: port.label.clone(), to: port.to, ..PortMapping::default() };
    Template {
        resources: AllocatedResources {
            tasks: tasks.map(|task| (task.name.clone(), task_resources(task, oversubscribed))).collect(),
            shared: AllocatedSharedResources {
                disk_mb: i64::from(amount.disk_mib),
                networks: group.networks.iter().take(1).cloned().collect(),
                ..AllocatedSharedResources::default()
            },
            task_lifecycles: lifecycles.collect(),
        },
        ports: ports.iter().map(mapping).collect(),
        cpu_mhz: amount.cpu_mhz,
        memory_mib: amount.memory_mib,
        disk_mib: amount.disk_mib,
    }
}

fn task_resources(task: &Task, oversubscribed: bool) -> AllocatedTaskResources {
    let (cpu, memory) = of_task(task);
    let most = task.resources.as_ref().map_or(0, |asked| maximum(asked, oversubscribed));
    AllocatedTaskResources {
        cpu: AllocatedCpuResources { cpu_shares: cpu, ..AllocatedCpuResources::default() },
        memory: AllocatedMemoryResources { memory_mb: memory, memory_max_mb: most },
        ..AllocatedTaskResources::default()
    }
}

/// MHz and MiB of one task. The MHz of its reserved cores are added later, because they depend on the node.
fn of_task(task: &Task) -> (i64, i64) {
    let default = Resources::default();
    let resources = task.resources.as_ref().unwrap_or(&default);
    let memory = resources.memory_mb.unwrap_or(MEMORY_DEFAULT) + resources.secrets_mb.unwrap_or(0);
    let cpu = if wanted(task) > 0 { 0 } else { resources.cpu.unwrap_or(CPU_DEFAULT) };
    (cpu, memory)
}

/// The largest sum of the tasks that run at the same time: before the main tasks, with them, or after them.
fn amount(group: &TaskGroup) -> Amount {
    let [mut before, mut during, mut after] = [(0, 0); 3];
    let add = |sum: &mut (i64, i64), (cpu, memory): (i64, i64)| {
        sum.0 += cpu;
        sum.1 += memory;
    };
    for task in &group.tasks {
        let (hook, sidecar) = task.lifecycle.as_ref().map_or(("", false), |l| (l.hook.as_str(), l.sidecar));
        if hook == "prestart" {
            add(&mut before, of_task(task));
        }
        if hook == "poststop" {
            add(&mut after, of_task(task));
        }
        if matches!(hook, "" | "poststart") || (hook == "prestart" && sidecar) {
            add(&mut during, of_task(task));
        }
    }
    let disk = group.ephemeral_disk.as_ref().and_then(|disk| disk.size_mb).unwrap_or(DISK_DEFAULT);
    Amount {
        cpu_mhz: clamped(before.0.max(during.0).max(after.0)),
        memory_mib: clamped(before.1.max(during.1).max(after.1)),
        disk_mib: clamped(disk),
    }
}

fn clamped(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use model::document::TaskLifecycle;

    use super::*;

    fn task(name: &str, cpu: i64, hook: &str, sidecar: bool) -> Task {
        let resources = Resources { cpu: Some(cpu), memory_mb: Some(256), ..Resources::default() };
        let lifecycle = (!hook.is_empty()).then(|| TaskLifecycle { hook: hook.into(), sidecar });
        Task { name: name.into(), resources: Some(resources), lifecycle, ..Task::default() }
    }

    fn cpu(tasks: Vec<Task>) -> u32 {
        amount(&TaskGroup { tasks: tasks.into(), ..TaskGroup::default() }).cpu_mhz
    }

    /// J01-J04.
    #[test]
    fn a_group_takes_the_most_that_runs_at_once() {
        let around = |mhz| {
            vec![
                task("main", mhz, "", false),
                task("init", mhz, "prestart", false),
                task("side", mhz, "prestart", true),
            ]
        };
        assert_eq!(cpu(around(500)), 1000);
        assert_eq!(cpu(around(700)), 1400);
        assert_eq!(cpu(vec![task("main", 100, "", false), task("after", 1500, "poststop", false)]), 1500);
        assert_eq!(cpu(vec![task("main", 100, "", false), task("with", 200, "poststart", false)]), 300);
    }

    /// J09.
    #[test]
    fn secrets_take_memory() {
        let mut task = task("main", 1, "", false);
        task.resources.get_or_insert_default().secrets_mb = Some(10);
        let group = TaskGroup { tasks: vec![task].into(), ..TaskGroup::default() };
        assert_eq!(amount(&group).memory_mib, 266);
    }

    #[test]
    fn ports_stand_in_the_order_of_their_labels() {
        let port = |label: &str, value| Port { label: label.into(), value, ..Port::default() };
        let network = NetworkResource {
            reserved_ports: vec![port("web", 80)].into(),
            dynamic_ports: vec![port("zeta", 0), port("admin", 0)].into(),
            ..NetworkResource::default()
        };
        let group = TaskGroup { networks: vec![network].into(), ..TaskGroup::default() };
        let resource_request = ResourceRequest::of(&group, false);
        let labels: Vec<&str> =
            resource_request.template.ports.iter().map(|port| port.label.as_str()).collect();
        assert_eq!(labels, ["admin", "web", "zeta"]);
    }

    #[test]
    fn what_is_not_placed_yet_is_refused_by_name() {
        let mut group = TaskGroup { tasks: vec![task("main", 1, "", false)].into(), ..TaskGroup::default() };
        assert_eq!(ResourceRequest::of(&group, false).unsupported, None);
        let port = Port { label: "http".into(), ..Port::default() };
        let network = NetworkResource { dynamic_ports: vec![port].into(), ..NetworkResource::default() };
        group.tasks[0].resources.get_or_insert_default().networks = vec![network].into();
        let unsupported = ResourceRequest::of(&group, false).unsupported;
        assert_eq!(
            unsupported,
            Some("networks of tasks are not placed by this release, those of groups are")
        );
    }
}

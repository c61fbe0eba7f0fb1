use std::collections::BTreeMap;

use model::document::{
    AllocDeploymentStatus, AllocState, AllocatedResources, Allocation, AllocationListStub, DesiredTransition,
    Job, Node, PortMapping,
};
use model::{AllocId, Given};

use super::reschedule::{follow_up, tracker};
use super::state::{Alloc, Health};
use super::totals;
use crate::State;
use crate::job;

/// The allocations that a node's agent asks for, as far as they are known, and the index of the answer.
///
/// Source: `Alloc.GetAllocs`.
pub fn requested<'a>(state: &'a State, ids: &[AllocId]) -> (u64, Vec<&'a Alloc>) {
    let found: Vec<&Alloc> = ids.iter().filter_map(|id| state.allocs.lookup(*id)).collect();
    let newest = found.iter().map(|alloc| alloc.modified).max();
    (newest.unwrap_or(state.tables.allocs).0, found)
}

/// The allocation as Nomad's API shows it.
pub fn document(state: &State, alloc: &Alloc) -> Allocation {
    Allocation { job: Some(job_document(state, alloc)), ..without_job(state, alloc) }
}

/// The same without its job, which is larger than all the rest.
pub fn without_job(state: &State, alloc: &Alloc) -> Allocation {
    let owner = state.jobs.get(alloc.job);
    let report = alloc.report.peek();
    let text = |id: Option<AllocId>| id.map(|id| id.to_string()).unwrap_or_default();
    let given = allocated_resources(state, alloc);
    Allocation {
        id: alloc.id.to_string(),
        namespace: owner.key.namespace.clone(),
        eval_id: alloc.eval.to_string(),
        name: alloc.name(),
        node_id: alloc.node_id.to_string(),
        node_name: state.nodes.cold(alloc.node).document.name.clone(),
        job_id: owner.key.id.clone(),
        task_group: alloc.group.to_string(),
        resources: Some(totals::of_all(&given)),
        shared_resources: Some(totals::of_shared(&given.shared)),
        task_resources: totals::of_tasks(&given),
        allocated_resources: Some(given),
        metrics: Some((*alloc.metrics).clone()),
        desired_status: alloc.desired.to_string(),
        desired_description: alloc.desired_description.to_string(),
        desired_transition: transition(alloc),
        client_status: alloc.client.to_string(),
        client_description: alloc.client_description.to_string(),
        task_states: report.task_states.clone(),
        deployment_id: alloc.deployment.map(|id| id.to_string()).unwrap_or_default(),
        deployment_status: health(alloc),
        network_status: report.network_status.clone(),
        reschedule_tracker: tracker(state, alloc),
        followup_eval_id: follow_up(state, alloc).map(|id| id.to_string()).unwrap_or_default(),
        previous_allocation: text(alloc.previous),
        next_allocation: text(alloc.next),
        preempted_allocations: alloc.preempted.iter().map(ToString::to_string).collect(),
        preempted_by_allocation: text(alloc.preempted_by),
        create_index: alloc.created.0,
        modify_index: alloc.modified.0,
        alloc_modify_index: alloc.alloc_modified.0,
        create_time: alloc.create_time.0,
        modify_time: alloc.modify_time.0,
        alloc_states: alloc_states(alloc),
        ..Allocation::default()
    }
}

/// The job version the allocation runs, as a node or a reader is shown it.
pub fn job_document(state: &State, alloc: &Alloc) -> Job {
    job::document(state.jobs.get(alloc.job), &alloc.version)
}

/// The allocation as lists show it.
pub fn stub(state: &State, alloc: &Alloc) -> AllocationListStub {
    let owner = state.jobs.get(alloc.job);
    let text = |id: Option<AllocId>| id.map(|id| id.to_string()).unwrap_or_default();
    AllocationListStub {
        id: alloc.id.to_string(),
        eval_id: alloc.eval.to_string(),
        name: alloc.name(),
        namespace: owner.key.namespace.clone(),
        node_id: alloc.node_id.to_string(),
        node_name: state.nodes.cold(alloc.node).document.name.clone(),
        job_id: owner.key.id.clone(),
        job_type: alloc.version.kind.to_string(),
        job_version: alloc.version.version,
        task_group: alloc.group.to_string(),
        desired_status: alloc.desired.to_string(),
        desired_description: alloc.desired_description.to_string(),
        desired_transition: transition(alloc),
        client_status: alloc.client.to_string(),
        client_description: alloc.client_description.to_string(),
        task_states: alloc.report.peek().into_owned().task_states,
        deployment_status: health(alloc),
        reschedule_tracker: tracker(state, alloc),
        followup_eval_id: follow_up(state, alloc).map(|id| id.to_string()).unwrap_or_default(),
        next_allocation: text(alloc.next),
        create_index: alloc.created.0,
        modify_index: alloc.modified.0,
        create_time: alloc.create_time.0,
        modify_time: alloc.modify_time.0,
        ..AllocationListStub::default()
    }
}

/// What it was given, with the numbers of its ports and the address they are on.
pub fn allocated_resources(state: &State, alloc: &Alloc) -> AllocatedResources {
    let mut resources = alloc.template.resources.clone();
    equip(&mut resources, &alloc.given);
    let address = first_address(&state.nodes.cold(alloc.node).document).to_string();
    let numbered = |(at, (port, number)): (usize, (&PortMapping, &u16))| {
        let number = i64::from(*number);
        let to = if port.to == -1 { number } else { port.to };
        let host_ip = alloc.given.addresses.get(at).unwrap_or(&address).clone();
        PortMapping { value: number, to, host_ip, ..port.clone() }
    };
    let ports = alloc.template.ports.iter().zip(alloc.ports.iter()).enumerate();
    resources.shared.ports = ports.map(numbered).collect();
    let by_label: BTreeMap<&str, i64> =
        resources.shared.ports.iter().map(|port| (port.label.as_str(), port.value)).collect();
    for network in &mut resources.shared.networks {
        network.ip = address.clone();
        for port in network.reserved_ports.iter_mut().chain(network.dynamic_ports.iter_mut()) {
            port.value = by_label.get(port.label.as_str()).copied().unwrap_or(port.value);
        }
    }
    resources
}

/// The cores and devices of its tasks.
fn equip(resources: &mut AllocatedResources, given: &Given) {
    for (name, given) in &given.tasks {
        let task = resources.tasks.entry(name.clone()).or_default();
        if !given.cores.is_empty() {
            task.cpu.reserved_cores = given.cores.clone();
            task.cpu.cpu_shares = given.cpu_mhz.into();
        }
        task.devices = given.devices.clone();
    }
}

/// The first address of the node's host network.
pub fn first_address(node: &Node) -> &str {
    let networks = node.node_resources.iter().flat_map(|resources| &resources.networks);
    networks.map(|network| network.ip.as_str()).find(|ip| !ip.is_empty()).unwrap_or_default()
}

/// `None` while nothing is known.
fn health(alloc: &Alloc) -> Option<AllocDeploymentStatus> {
    let health = alloc.health;
    (health != Health::default()).then(|| AllocDeploymentStatus {
        healthy: health.healthy,
        timestamp: health.time.into(),
        canary: health.canary,
        modify_index: health.modified.0,
    })
}

fn transition(alloc: &Alloc) -> DesiredTransition {
    let asked = |flag: bool| flag.then_some(true);
    DesiredTransition {
        migrate: asked(alloc.transition.migrate),
        reschedule: asked(alloc.transition.reschedule),
        no_shutdown_delay: asked(alloc.transition.no_shutdown_delay),
        force_reschedule: asked(alloc.transition.force_reschedule),
        migrate_disable_placement: asked(alloc.transition.disable_placement),
    }
}

fn alloc_states(alloc: &Alloc) -> model::document::List<AllocState> {
    let state = |known: &super::KnownState| AllocState {
        value: known.status.to_string(),
        time: known.time.into(),
        ..AllocState::default()
    };
    alloc.states.iter().map(state).collect()
}

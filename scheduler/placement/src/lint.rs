//! Checks a plan against the state it was made on, in a simple way. For tests: it shares the constraint checks with the
//! scheduler and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use model::command::Plan;
use model::{AllocId, ClientStatus, Given, NodeId, Template};
use state::State;
use state::alloc::Alloc;
use state::job::{JobRow, JobVersion};
use state::node::{Amount, NodeRow};

use crate::feasibility::constraint::ConstraintCheck;
use crate::feasibility::static_checks::{is_in_datacenters, is_in_pool};

/// What is wrong with a plan, in words. Empty when nothing is.
pub fn check(state: &State, plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let preempted = plan.preempted.iter().flat_map(|event| event.allocs.clone());
    let stopped: Vec<AllocId> =
        plan.stopped.iter().flat_map(|event| event.allocs.clone()).chain(preempted).collect();
    let placed = placements(state, plan, &mut found);
    for node in state.nodes.rows() {
        let here: Vec<&Placement> = placed.iter().filter(|placement| placement.row == node).collect();
        if !here.is_empty() {
            node_holds(state, plan, node, &stopped, &here, &mut found);
        }
    }
    preempted_jobs_have_lower_priority(state, plan, &placed, &mut found);
    placed.iter().for_each(|placement| placement.keeps_constraints(state, &mut found));
    names_are_unique(state, &stopped, &placed, &mut found);
    let mut seen = std::collections::BTreeSet::new();
    let ids = placed.iter().map(|placement| placement.id).chain(stopped.iter().copied());
    ids.filter(|id| !seen.insert(*id)).for_each(|id| found.push(format!("allocation {id} appears twice")));
    found
}

/// One planned allocation, out of its columns.
struct Placement<'s> {
    id: AllocId,
    job: JobRow,
    row: NodeRow,
    node: NodeId,
    version: &'s JobVersion,
    group: String,
    name: u32,
    canary: bool,
    amount: Amount,
    /// Each with whether other allocations may use it too.
    ports: Vec<(u16, bool)>,
    given: Given,
}

fn placements<'s>(state: &'s State, plan: &Plan, found: &mut Vec<String>) -> Vec<Placement<'s>> {
    let mut placements = Vec::new();
    for event in &plan.placed {
        let template: Template = event.template.read();
        let job = state.jobs.find(&event.key);
        let known = job.and_then(|job| Some((job, state.jobs.get(job).version(event.version)?)));
        let Some((job, version)) = known else {
            found.push(format!("version {} of {} is not known", event.version, event.key));
            continue;
        };
        let width = template.ports.len();
        let shared = |label: &str| {
            let networks = version.group(&event.group).into_iter().flat_map(|group| &group.networks);
            let mut ports = networks.flat_map(|network| &network.reserved_ports);
            ports.any(|port| port.label == label && port.ignore_collision)
        };
        for (at, id) in event.ids.iter().enumerate() {
            let Some(row) = state.nodes.find(event.nodes[at]) else {
                found.push(format!("node {} is not known", event.nodes[at]));
                continue;
            };
            let given = event.given.get(at).filter(|given| !given.is_empty());
            let given: Given = given.map(|given| given.read()).unwrap_or_default();
            let numbers = event.ports[at * width..(at + 1) * width].iter().zip(&template.ports);
            placements.push(Placement {
                id: *id,
                job,
                row,
                node: event.nodes[at],
                version,
                group: event.group.clone(),
                name: event.names[at],
                canary: event.canary,
                amount: Amount::of(&template, &given),
                ports: numbers.map(|(number, port)| (*number, shared(&port.label))).collect(),
                given,
            });
        }
    }
    placements
}

/// Preempted allocations are on the same node, of another job, and of a priority that is lower by at least ten.
fn preempted_jobs_have_lower_priority(
    state: &State,
    plan: &Plan,
    placed: &[Placement],
    found: &mut Vec<String>,
) {
    for event in &plan.preempted {
        let Some(by) = placed.iter().find(|placement| placement.id == event.by) else {
            found.push(format!("room is made for {}, which is not placed", event.by));
            continue;
        };
        let priority = |version: &JobVersion| version.job.priority.unwrap_or_default();
        for alloc in event.allocs.iter().filter_map(|id| state.allocs.lookup(*id)) {
            let lesser = priority(&alloc.version) + 10 <= priority(by.version);
            let of_another = alloc.job != by.job;
            if alloc.node != by.row || !lesser || !of_another || alloc.client.is_terminal() {
                found.push(format!("allocation {} makes room for {}", alloc.id, by.id));
            }
        }
    }
}

fn node_holds(
    state: &State,
    plan: &Plan,
    row: NodeRow,
    stopped: &[AllocId],
    here: &[&Placement],
    found: &mut Vec<String>,
) {
    let hot = state.nodes.hot(row);
    let id = state.nodes.cold(row).id;
    if !hot.takes_work() {
        found.push(format!("node {id} takes no work"));
    }
    let load = state.nodes.load(row);
    let stay: Vec<&Alloc> = load.allocs.iter().map(|row| state.allocs.get(*row)).collect();
    let stay: Vec<&Alloc> =
        stay.into_iter().filter(|alloc| alloc.takes_room() && !stopped.contains(&alloc.id)).collect();
    let updated = |alloc: &Alloc| {
        let event = plan.updated.iter().find(|event| event.allocs.contains(&alloc.id))?;
        let template: Template = event.template.read();
        Some(Amount::of(&template, &alloc.given))
    };
    let amounts = stay.iter().map(|alloc| updated(alloc).unwrap_or(alloc.amount()));
    let used =
        amounts.chain(here.iter().map(|placement| placement.amount)).fold(Amount::default(), Amount::plus);
    if let Some(dimension) = hot.capacity.exceeded_by(used) {
        found.push(format!("node {id} is overcommitted in {dimension}"));
    }
    if hot.allocs_max > 0 && stay.len() + here.len() > hot.allocs_max as usize {
        found.push(format!("node {id} has more allocations than it may"));
    }
    ports_are_held_once(state, row, &stay, here, found);
    equipment_is_held_once(state, row, &stay, here, found);
}

/// Only for nodes with one address: with several, the same number may be in use on each of them.
fn ports_are_held_once(
    state: &State,
    row: NodeRow,
    stay: &[&Alloc],
    here: &[&Placement],
    found: &mut Vec<String>,
) {
    let node = state.nodes.cold(row);
    let networks = node.document.node_resources.iter().flat_map(|resources| &resources.node_networks);
    if networks.map(|network| network.addresses.len()).sum::<usize>() > 1 {
        return;
    }
    let mut holders: BTreeMap<u16, u32> = BTreeMap::new();
    stay.iter().flat_map(|alloc| alloc.ports.iter()).for_each(|port| *holders.entry(*port).or_default() += 1);
    for (port, shared) in here.iter().flat_map(|placement| &placement.ports) {
        let before = holders.entry(*port).or_default();
        if !shared && *before > 0 {
            found.push(format!("node {} gives port {port} twice", node.id));
        }
        *before += 1;
    }
}

fn equipment_is_held_once(
    state: &State,
    row: NodeRow,
    stay: &[&Alloc],
    here: &[&Placement],
    found: &mut Vec<String>,
) {
    let id = state.nodes.cold(row).id;
    let given = stay.iter().map(|alloc| &*alloc.given).chain(here.iter().map(|placement| &placement.given));
    let (mut cores, mut devices) = (BTreeSet::new(), BTreeSet::new());
    for given in given {
        for core in given.cores().filter(|core| !cores.insert(*core)) {
            found.push(format!("node {id} gives core {core} twice"));
        }
        for device in given.devices() {
            for instance in &device.device_ids {
                let name = (&device.vendor, &device.kind, &device.name, instance);
                if !devices.insert(format!("{name:?}")) {
                    found.push(format!("node {id} gives device {instance} twice"));
                }
            }
        }
    }
}

impl Placement<'_> {
    fn keeps_constraints(&self, state: &State, found: &mut Vec<String>) {
        let node = state.nodes.cold(self.row);
        let job = &self.version.job;
        if !is_in_pool(job.node_pool.as_deref(), &node.document)
            || !is_in_datacenters(&job.datacenters, &node.document)
        {
            found.push(format!("node {} is not one the job asks for", self.node));
        }
        let Some(group) = self.version.group(&self.group) else {
            found.push(format!("group {} is not in the job", self.group));
            return;
        };
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let broken = job.constraints.iter().chain(&group.constraints).chain(of_tasks);
        for check in broken.map(ConstraintCheck::of).filter(|check| !check.holds(node)) {
            found.push(format!("node {} breaks {}", self.node, check.text));
        }
    }
}

/// No other live allocation has the name of a placement. Stopped, terminal and unknown ones do not count, and a canary
/// may have the name of the allocation that it will replace.
fn names_are_unique(state: &State, stopped: &[AllocId], placed: &[Placement], found: &mut Vec<String>) {
    let mut holders: BTreeMap<_, Vec<AllocId>> = BTreeMap::new();
    for placement in placed {
        let node = placement.version.kind.is_per_node().then_some(placement.node);
        let name = (placement.job, placement.group.clone(), placement.name, node, placement.canary);
        holders.entry(name).or_default().push(placement.id);
    }
    for (_, alloc) in state.allocs.iter() {
        let counts = !alloc.is_terminal() && alloc.client != ClientStatus::Unknown;
        let node = alloc.version.kind.is_per_node().then_some(alloc.node_id);
        let canary = alloc.health.canary;
        let name = (alloc.job, alloc.group.to_string(), alloc.name_index, node, canary);
        // What becomes unknown in this pass may get its replacement at once.
        let silent = state.nodes.hot(alloc.node).status.is_silent();
        if counts
            && !silent
            && !stopped.contains(&alloc.id)
            && let Some(held) = holders.get_mut(&name)
        {
            held.push(alloc.id);
        }
    }
    for ((_, group, index, ..), held) in holders.into_iter().filter(|(_, held)| held.len() > 1) {
        let held: Vec<String> = held.iter().map(ToString::to_string).collect();
        found.push(format!("the name {group}[{index}] is held by {}", held.join(" and ")));
    }
}

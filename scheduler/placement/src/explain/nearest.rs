//! The nodes that lack least for one more allocation, each with everything that stands in the way. The scheduler's own
//! checks stop at the first failure. They are used here only for what is not compared in detail, such as devices.

use model::document::{Job, Lack, NearMiss, TaskGroup};
use model::{Eligibility, NodeStatus, VolumeKind};
use state::State;
use state::alloc::Alloc;
use state::job::{JobRow, JobVersion};
use state::node::{Amount, NodeRow};
use state::volume::sources;

use crate::explanation::Unplaced;
use crate::feasibility::constraint::ConstraintCheck;
use crate::feasibility::distinct_property::DistinctProperty;
use crate::feasibility::node_check::{Distinct, NodeCheck};
use crate::feasibility::property_values::PropertyValues;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::static_checks::{has_driver, is_in_datacenters, is_in_pool};
use crate::feasibility::volumes::MISSING;
use crate::settings::settings;

/// Most nodes that are shown.
pub const NEAREST_SHOWN: usize = 3;

/// The allocation that could not be placed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'e> {
    pub job: JobRow,
    pub group: &'e str,
    pub which: Unplaced,
}

/// The nodes that lack least for it: fewest failed checks, then the smallest missing share of a resource.
pub fn nearest(state: &State, wanted: Wanted) -> Vec<NearMiss> {
    let known = state.jobs.get(wanted.job);
    let version = known.version(wanted.which.version).unwrap_or_else(|| known.current());
    let Some(group) = version.group(wanted.group) else { return Vec::new() };
    let mut look = Look::at(state, wanted, version, group);
    let mut misses: Vec<(usize, u64, NodeRow, Vec<Lack>)> = Vec::new();
    for row in state.nodes.rows() {
        let (checks, room) = look.lacks(row);
        if checks.is_empty() && room.is_empty() {
            continue;
        }
        let part = room.iter().map(|lack| lack.short * 1_000_000 / lack.asked.max(1)).max().unwrap_or(0);
        misses.push((checks.len(), part, row, checks.into_iter().chain(room).collect()));
    }
    // Nodes are in the order of their ids, and the sort keeps it.
    misses.sort_by_key(|(checks, part, ..)| (*checks, *part));
    misses.truncate(NEAREST_SHOWN);
    misses.into_iter().map(|(_, _, row, lacks)| miss(state, row, lacks)).collect()
}

/// What stands in the way of one more allocation of each group of a job on this node, by the names of groups: nothing where
/// it could go there.
pub fn against(state: &State, job: JobRow, row: NodeRow) -> Vec<(String, Vec<Lack>)> {
    let version = state.jobs.get(job).current();
    let of_group = |group: &TaskGroup| {
        let name = group.name.as_deref().unwrap_or_default();
        let which = Unplaced { name_index: 0, version: version.version };
        let (checks, room) = Look::at(state, Wanted { job, group: name, which }, version, group).lacks(row);
        (name.to_string(), checks.into_iter().chain(room).collect())
    };
    version.job.task_groups.iter().map(of_group).collect()
}

/// Looks at nodes for one more allocation of a group.
struct Look<'e> {
    state: &'e State,
    asked: Asked<'e>,
    node_check: NodeCheck<'e>,
    proposed: Proposed<'e>,
    name_index: u32,
}

impl<'e> Look<'e> {
    fn at(state: &'e State, wanted: Wanted<'e>, version: &'e JobVersion, group: &'e TaskGroup) -> Look<'e> {
        let settings = settings(state, version.job.node_pool.as_deref().unwrap_or_default());
        let node_check = NodeCheck::new(state, state.jobs.get(wanted.job), version, group, &settings);
        let asked = Asked::of(state, wanted, version, group, &node_check);
        let name_index = wanted.which.name_index;
        Look { state, asked, node_check, proposed: Proposed::new(state), name_index }
    }

    /// Checks that do not hold on a node, and resources that it has too little of.
    fn lacks(&mut self, row: NodeRow) -> (Vec<Lack>, Vec<Lack>) {
        let (mut checks, room) =
            (self.asked.checks_against(self.state, row), self.asked.room_on(self.state, row));
        if checks.is_empty() && room.is_empty() {
            let hot = self.state.nodes.hot(row);
            let reason = self.node_check.infeasible_reason(row, hot, self.name_index, &self.proposed);
            if let Some(reason) = reason {
                let text = self.node_check.reasons().get(reason).text.clone();
                let what = if text == MISSING { self.asked.unusable_volumes(&text) } else { text };
                checks.push(Lack { what, ..Lack::default() });
            }
        }
        (checks, room)
    }
}

fn miss(state: &State, row: NodeRow, lacks: Vec<Lack>) -> NearMiss {
    let node = state.nodes.cold(row);
    NearMiss { node_id: node.id.to_string(), node_name: node.document.name.clone(), lacks: lacks.into() }
}

/// What one more allocation needs.
struct Asked<'e> {
    job: &'e Job,
    group: &'e TaskGroup,
    checks: Vec<ConstraintCheck>,
    /// Nodes that `distinct_hosts` excludes.
    taken: Vec<NodeRow>,
    /// What `distinct_property` limits, with the allocations that count.
    properties: Vec<(DistinctProperty, PropertyValues)>,
    /// Host volumes by name.
    volumes: Vec<String>,
    amount: Amount,
}

impl<'e> Asked<'e> {
    fn of(
        state: &State,
        wanted: Wanted,
        version: &'e JobVersion,
        group: &'e TaskGroup,
        node_check: &NodeCheck,
    ) -> Asked<'e> {
        let job: &Job = &version.job;
        let of_tasks = group.tasks.iter().flat_map(|task| task.constraints.iter());
        let all: Vec<_> = job.constraints.iter().chain(group.constraints.iter()).chain(of_tasks).collect();
        let siblings = || state.jobs.get(wanted.job).allocs.iter().map(|alloc| state.allocs.get(*alloc));
        let excludes = |alloc: &&Alloc| match node_check.distinct_hosts {
            Some(Distinct::Job) => alloc.takes_room(),
            Some(Distinct::Group) => alloc.takes_room() && &*alloc.group == wanted.group,
            None => false,
        };
        let tests = all.iter().filter(|one| !one.operand.starts_with("distinct_"));
        let properties = DistinctProperty::of(job, group).into_iter();
        Asked {
            job,
            group,
            checks: tests.map(|one| ConstraintCheck::of(one)).collect(),
            taken: siblings().filter(excludes).map(|alloc| alloc.node).collect(),
            properties: properties.map(|one| counted(state, one, wanted.group, siblings())).collect(),
            volumes: sources(group, wanted.which.name_index, VolumeKind::Host)
                .map(|(_, name)| name)
                .collect(),
            amount: node_check.resource_request.amount,
        }
    }

    fn checks_against(&self, state: &State, row: NodeRow) -> Vec<Lack> {
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        let node = &cold.document;
        let mut lacks = Vec::new();
        let mut require = |holds: bool, otherwise: &dyn Fn() -> String| {
            if !holds {
                lacks.push(Lack { what: otherwise(), ..Lack::default() });
            }
        };
        require(hot.status == NodeStatus::Ready, &|| format!("it is {}, not ready", hot.status));
        if cold.draining().is_some() {
            require(false, &|| "it is being drained".to_string());
        } else {
            let eligible = hot.eligibility == Eligibility::Eligible;
            require(eligible, &|| "it is not eligible for scheduling".to_string());
        }
        let pool = is_in_pool(self.job.node_pool.as_deref(), node);
        require(pool, &|| format!("it is in node pool {:?}", node.node_pool));
        let datacenter = is_in_datacenters(&self.job.datacenters, node);
        require(datacenter, &|| format!("it is in datacenter {:?}", node.datacenter));
        for check in &self.checks {
            require(check.holds(cold), &|| format!("constraint {} does not hold", check.text));
        }
        require(!self.taken.contains(&row), &|| "distinct_hosts: one of the job is there".to_string());
        for (property, values) in &self.properties {
            let violation = property.violation(cold, values);
            require(violation.is_none(), &|| violation.clone().unwrap_or_default());
        }
        let mut drivers: Vec<&str> = self.group.tasks.iter().map(|task| task.driver.as_str()).collect();
        drivers.dedup();
        for driver in drivers {
            require(has_driver(node, driver), &|| format!("it has no healthy driver {driver}"));
        }
        for volume in &self.volumes {
            require(node.host_volumes.contains_key(volume), &|| format!("it has no host volume {volume:?}"));
        }
        for port in self.group.networks.iter().flat_map(|network| network.reserved_ports.iter()) {
            let number = u16::try_from(port.value).unwrap_or(0);
            let free = port.ignore_collision || !state.nodes.load(row).ports.contains(number);
            require(free, &|| format!("port {:?}: {number} is taken", port.label));
        }
        lacks
    }

    /// The node has them all, and one cannot be used as it is asked for.
    fn unusable_volumes(&self, reason: &str) -> String {
        let names: Vec<String> = self.volumes.iter().map(|name| format!("{name:?}")).collect();
        format!("{reason}: {}", names.join(", "))
    }

    fn room_on(&self, state: &State, row: NodeRow) -> Vec<Lack> {
        let hot = state.nodes.hot(row);
        let free = hot.capacity.minus(hot.used);
        let (ending, ending_allocs) = stopping(state, row);
        let mut lacks = Vec::new();
        for (what, unit, asked, free, stopping) in [
            ("cpu", "MHz", self.amount.cpu_mhz, free.cpu_mhz, ending.cpu_mhz),
            ("memory", "MiB", self.amount.memory_mib, free.memory_mib, ending.memory_mib),
            ("disk", "MiB", self.amount.disk_mib, free.disk_mib, ending.disk_mib),
        ] {
            if asked > free {
                let (asked, free) = (u64::from(asked), u64::from(free));
                let (what, unit, stopping) = (what.to_string(), unit.to_string(), u64::from(stopping));
                lacks.push(Lack { what, unit, asked, free, short: asked - free, stopping });
            }
        }
        if hot.allocs_max > 0 && hot.allocs >= hot.allocs_max {
            lacks.push(Lack {
                what: "room for one more allocation".to_string(),
                asked: u64::from(hot.allocs) + 1,
                free: u64::from(hot.allocs_max),
                short: u64::from(hot.allocs) + 1 - u64::from(hot.allocs_max),
                stopping: ending_allocs,
                ..Lack::default()
            });
        }
        lacks
    }
}

/// The property with the allocations that it limits: those of the job, or of the group, that are wanted.
fn counted<'s>(
    state: &State,
    mut property: DistinctProperty,
    group: &str,
    siblings: impl Iterator<Item = &'s Alloc>,
) -> (DistinctProperty, PropertyValues) {
    let mut values = PropertyValues::new();
    for alloc in siblings.filter(|alloc| !alloc.is_terminal()) {
        if property.job_wide || &*alloc.group == group {
            let value = property.value_number(state.nodes.cold(alloc.node), &mut values);
            property.count(value, 1);
        }
    }
    (property, values)
}

/// What allocations that are being stopped still take on the node, and how many they are.
fn stopping(state: &State, row: NodeRow) -> (Amount, u64) {
    let here = state.nodes.load(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
    let ending = here.filter(|alloc| alloc.takes_room() && alloc.is_stopping());
    ending.fold((Amount::default(), 0), |(sum, count), alloc| (sum.plus(alloc.amount()), count + 1))
}

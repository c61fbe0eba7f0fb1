//! The nodes that lack least for one more allocation, each with everything it lacks. The scheduler's own checks stop at
//! the first failure. They are used here only for what is not compared in detail, such as devices and volumes.

use model::document::{Job, Lack, NearMiss, TaskGroup};
use state::State;
use state::job::JobRow;
use state::node::{Amount, NodeRow};

use crate::feasibility::constraint::ConstraintCheck;
use crate::feasibility::node_check::NodeCheck;
use crate::feasibility::proposed::Proposed;
use crate::feasibility::static_checks::{is_in_datacenters, is_in_pool};
use crate::settings::settings;

/// Most nodes that are shown.
pub const NEAREST_SHOWN: usize = 3;

/// What tasks and groups get by default, in MHz and MiB.
const CPU_DEFAULT: i64 = 100;
const MEMORY_DEFAULT: i64 = 300;
const DISK_DEFAULT: i64 = 300;

/// The nodes that lack least for one more allocation of the group: fewest failed checks, then the smallest missing
/// share of a resource.
pub fn nearest(state: &State, job: JobRow, group: &str) -> Vec<NearMiss> {
    let known = state.jobs.get(job);
    let wanted = known.current();
    let Some(group) = wanted.group(group) else { return Vec::new() };
    let asked = Asked::of(state, job, &wanted.job, group);
    let settings = settings(state, wanted.job.node_pool.as_deref().unwrap_or_default());
    let mut node_check = NodeCheck::new(state, known, wanted, group, &settings);
    let proposed = Proposed::new(state);
    let mut misses: Vec<(usize, u64, NodeRow, Vec<Lack>)> = Vec::new();
    for row in state.nodes.rows() {
        let (mut checks, room) = (asked.checks_against(state, row), asked.room_on(state, row));
        if checks.is_empty() && room.is_empty() {
            let Some(reason) = node_check.infeasible_reason(row, state.nodes.hot(row), 0, &proposed) else {
                continue;
            };
            checks.push(Lack { what: node_check.reasons().get(reason).text.clone(), ..Lack::default() });
        }
        let part = room.iter().map(|lack| lack.short * 1_000_000 / lack.asked.max(1)).max().unwrap_or(0);
        misses.push((checks.len(), part, row, checks.into_iter().chain(room).collect()));
    }
    // Nodes are in the order of their ids, and the sort keeps it.
    misses.sort_by_key(|(checks, part, ..)| (*checks, *part));
    misses.truncate(NEAREST_SHOWN);
    misses.into_iter().map(|(_, _, row, lacks)| miss(state, row, lacks)).collect()
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
    amount: Amount,
}

impl<'e> Asked<'e> {
    fn of(state: &State, row: JobRow, job: &'e Job, group: &'e TaskGroup) -> Asked<'e> {
        let of_tasks = group.tasks.iter().flat_map(|task| task.constraints.iter());
        let all: Vec<_> = job.constraints.iter().chain(group.constraints.iter()).chain(of_tasks).collect();
        let alone = |operand: &str| all.iter().any(|one| one.operand == operand && one.r_target != "false");
        let siblings = state.jobs.get(row).allocs.iter().map(|alloc| state.allocs.get(*alloc));
        let siblings = siblings.filter(|alloc| alloc.takes_room()).map(|alloc| alloc.node);
        let tests = all.iter().filter(|one| !one.operand.starts_with("distinct_"));
        Asked {
            job,
            group,
            checks: tests.map(|one| ConstraintCheck::of(one)).collect(),
            taken: if alone("distinct_hosts") { siblings.collect() } else { Vec::new() },
            amount: amount(group),
        }
    }

    fn checks_against(&self, state: &State, row: NodeRow) -> Vec<Lack> {
        let (hot, cold) = (state.nodes.hot(row), state.nodes.cold(row));
        let node = &cold.document;
        let mut lacks = Vec::new();
        let mut lack = |holds: bool, what: String| {
            if !holds {
                lacks.push(Lack { what, ..Lack::default() });
            }
        };
        let ready = hot.status == model::NodeStatus::Ready;
        lack(ready, format!("ready: the node is {}", hot.status));
        lack(hot.eligibility == model::Eligibility::Eligible, "eligible for scheduling".to_string());
        lack(
            is_in_pool(self.job.node_pool.as_deref(), node),
            format!("node pool: the node is in {:?}", node.node_pool),
        );
        let datacenter = || format!("datacenter: the node is in {:?}", node.datacenter);
        lack(is_in_datacenters(&self.job.datacenters, node), datacenter());
        for check in &self.checks {
            lack(check.holds(cold), format!("constraint {}", check.text));
        }
        lack(!self.taken.contains(&row), "distinct_hosts: one of the job is there".to_string());
        let mut drivers: Vec<&str> = self.group.tasks.iter().map(|task| task.driver.as_str()).collect();
        drivers.dedup();
        for driver in drivers {
            let has = node.drivers.get(driver).is_none_or(|known| known.detected && known.healthy)
                && (node.drivers.contains_key(driver)
                    || node.attributes.get(&format!("driver.{driver}")).is_some_and(|on| on == "1"));
            lack(has, format!("driver {driver}"));
        }
        for port in self.group.networks.iter().flat_map(|network| network.reserved_ports.iter()) {
            let number = u16::try_from(port.value).unwrap_or(0);
            let free = port.ignore_collision || !state.nodes.load(row).ports.contains(number);
            lack(free, format!("port {:?}: {number} is taken", port.label));
        }
        lacks
    }

    fn room_on(&self, state: &State, row: NodeRow) -> Vec<Lack> {
        let hot = state.nodes.hot(row);
        let free = hot.capacity.minus(hot.used);
        let mut lacks = Vec::new();
        for (what, unit, asked, free) in [
            ("cpu", "MHz", self.amount.cpu_mhz, free.cpu_mhz),
            ("memory", "MiB", self.amount.memory_mib, free.memory_mib),
            ("disk", "MiB", self.amount.disk_mib, free.disk_mib),
        ] {
            if asked > free {
                let (asked, free) = (u64::from(asked), u64::from(free));
                let (what, unit) = (what.to_string(), unit.to_string());
                lacks.push(Lack { what, unit, asked, free, short: asked - free });
            }
        }
        if hot.allocs_max > 0 && hot.allocs >= hot.allocs_max {
            lacks.push(Lack {
                what: "room for one more allocation".to_string(),
                asked: u64::from(hot.allocs) + 1,
                free: u64::from(hot.allocs_max),
                short: u64::from(hot.allocs) + 1 - u64::from(hot.allocs_max),
                ..Lack::default()
            });
        }
        lacks
    }
}

fn amount(group: &TaskGroup) -> Amount {
    let sum = |of: &dyn Fn(&model::document::Resources) -> Option<i64>, default: i64| {
        let tasks = group.tasks.iter().map(|task| task.resources.as_ref().and_then(of).unwrap_or(default));
        u32::try_from(tasks.sum::<i64>().max(0)).unwrap_or(u32::MAX)
    };
    let disk = group.ephemeral_disk.as_ref().and_then(|disk| disk.size_mb).unwrap_or(DISK_DEFAULT);
    Amount {
        cpu_mhz: sum(&|resources| resources.cpu, CPU_DEFAULT),
        memory_mib: sum(&|resources| resources.memory_mb, MEMORY_DEFAULT),
        disk_mib: u32::try_from(disk.max(0)).unwrap_or(u32::MAX),
    }
}

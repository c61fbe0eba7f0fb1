use std::collections::BTreeSet;

use super::{NodeAlloc, by_priority};

/// What one allocation uses of one network interface, or requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUse {
    /// The name of the interface; empty in a requirement, which may use any.
    pub device: String,
    pub mbits: u32,
    /// Host ports in use; in a requirement the static ones.
    pub ports: Vec<u16>,
}

/// One network interface of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    pub device: String,
    pub mbits: u32,
}

/// The allocations to preempt so that one interface has the ports and the bandwidth; all of them use that interface.
///
/// Interfaces are tried in their order; the first that works is taken.
pub(super) fn victims(
    priority: u32,
    wanted: &NetworkUse,
    interfaces: &[NetworkInterface],
    allocs: &[NodeAlloc],
) -> Option<Vec<usize>> {
    interfaces.iter().find_map(|interface| on(interface, priority, wanted, allocs))
}

fn on(
    interface: &NetworkInterface,
    priority: u32,
    wanted: &NetworkUse,
    allocs: &[NodeAlloc],
) -> Option<Vec<usize>> {
    let used = |index: usize| allocs[index].network.as_ref().filter(|used| used.device == interface.device);
    let here: Vec<usize> = (0..allocs.len()).filter(|index| used(*index).is_some()).collect();
    let mbits = |index: usize| used(index).map_or(0, |used| u64::from(used.mbits));
    if interface.mbits < wanted.mbits {
        return None;
    }
    let holds_port =
        |index: &usize| used(*index).is_some_and(|used| used.ports.iter().any(|p| wanted.ports.contains(p)));
    let holders: Vec<usize> = here.iter().copied().filter(holds_port).collect();
    if !holders.iter().all(|index| allocs[*index].makes_room_for(priority)) {
        return None;
    }
    let taken: u64 = here.iter().filter(|index| !holders.contains(index)).map(|index| mbits(*index)).sum();
    let free = u64::from(interface.mbits).saturating_sub(taken);
    let elsewhere = (0..allocs.len()).filter(|index| used(*index).is_none() || holders.contains(index));
    let groups = by_priority(allocs, priority, &elsewhere.collect::<BTreeSet<usize>>());
    let need = u64::from(wanted.mbits);
    let chosen = for_bandwidth(need, free, allocs, groups, mbits)?;
    Some(holders.into_iter().chain(chosen).collect())
}

/// The allocations to preempt for bandwidth: the closest to what is required, the lowest priority first, and none that
/// is not needed.
fn for_bandwidth(
    need: u64,
    free: u64,
    allocs: &[NodeAlloc],
    groups: Vec<Vec<usize>>,
    mbits: impl Fn(usize) -> u64,
) -> Option<Vec<usize>> {
    let distance = |index: usize| (need as f64 - mbits(index) as f64).abs() / need as f64;
    let (mut available, mut chosen) = (free, Vec::new());
    for mut group in groups {
        let with_penalty = |index: usize| distance(index) + allocs[index].penalty();
        group.sort_by(|a, b| with_penalty(*a).total_cmp(&with_penalty(*b)));
        for index in group {
            if available < need {
                available += mbits(index);
                chosen.push(index);
            }
        }
    }
    if available < need {
        return None;
    }
    chosen.sort_by(|a, b| distance(*b).total_cmp(&distance(*a)));
    let mut available = free;
    chosen.retain(|index| {
        let short = available < need;
        available += if short { mbits(*index) } else { 0 };
        short
    });
    Some(chosen)
}

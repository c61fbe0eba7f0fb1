use std::collections::BTreeSet;

use state::node::Amount;

use super::{NodeAlloc, NodeRoom, PreemptionRequest, by_priority};

/// MHz, MiB of memory, MiB of disk, cores. Negative: what is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantities([i64; 4]);

impl Quantities {
    fn of(amount: Amount, cores: usize) -> Quantities {
        let Amount { cpu_mhz, memory_mib, disk_mib } = amount;
        Quantities([
            cpu_mhz.into(),
            memory_mib.into(),
            disk_mib.into(),
            i64::try_from(cores).unwrap_or(i64::MAX),
        ])
    }

    fn plus(self, other: Quantities) -> Quantities {
        Quantities(std::array::from_fn(|at| self.0[at].saturating_add(other.0[at])))
    }

    fn minus(self, other: Quantities) -> Quantities {
        Quantities(std::array::from_fn(|at| self.0[at].saturating_sub(other.0[at])))
    }

    fn covers(self, wanted: Quantities) -> bool {
        self.0.iter().zip(wanted.0).all(|(room, wanted)| *room >= wanted)
    }

    /// The distance between what would be freed and what is missing, over the amounts that are missing at all.
    fn distance(self, freed: Quantities) -> f64 {
        let wanted = self.0.iter().zip(freed.0).take(3).filter(|(wanted, _)| **wanted > 0);
        let squares = wanted.map(|(wanted, freed)| {
            let part = (*wanted - freed) as f64 / *wanted as f64;
            part * part
        });
        squares.sum::<f64>().sqrt()
    }
}

/// The allocations to preempt for cpu, memory, disk and cores, besides those that are gone already.
pub(super) fn victims(
    wanted: &PreemptionRequest<'_>,
    node_room: &NodeRoom<'_>,
    allocs: &[NodeAlloc],
    gone: &BTreeSet<usize>,
) -> Option<Vec<usize>> {
    let required = Quantities::of(wanted.amount, wanted.cores);
    // The job's own allocations too: they are not preempted but use resources.
    let staying = (0..allocs.len()).filter(|index| !gone.contains(index));
    let free = staying.fold(Quantities::of(node_room.capacity, node_room.cores), |room, index| {
        room.minus(of(&allocs[index]))
    });
    let chosen = choose(required, free, allocs, by_priority(allocs, wanted.priority, gone))?;
    Some(reduce(required, free, allocs, chosen))
}

fn of(alloc: &NodeAlloc) -> Quantities {
    Quantities::of(alloc.amount, alloc.cores)
}

/// The allocations closest to what is still missing, one after the other, the lowest priority first.
fn choose(
    required: Quantities,
    free: Quantities,
    allocs: &[NodeAlloc],
    groups: Vec<Vec<usize>>,
) -> Option<Vec<usize>> {
    let (mut available, mut missing) = (free, required);
    let mut chosen = Vec::new();
    for mut group in groups {
        while !available.covers(required) && !group.is_empty() {
            let distance = |index: usize| missing.distance(of(&allocs[index])) + allocs[index].penalty();
            let closest = (0..group.len())
                .min_by(|a, b| distance(group[*a]).total_cmp(&distance(group[*b])))
                .expect("the group is not empty");
            let index = group.remove(closest);
            available = available.plus(of(&allocs[index]));
            missing = missing.minus(of(&allocs[index]));
            chosen.push(index);
        }
    }
    available.covers(required).then_some(chosen)
}

/// Drops those that the more distant ones made superfluous.
fn reduce(
    required: Quantities,
    free: Quantities,
    allocs: &[NodeAlloc],
    mut chosen: Vec<usize>,
) -> Vec<usize> {
    let distance = |index: &usize| required.distance(of(&allocs[*index]));
    chosen.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let mut available = free;
    let needed = chosen.iter().take_while(|index| {
        let short = !available.covers(required);
        available = available.plus(of(&allocs[**index]));
        short
    });
    needed.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I55.
    #[test]
    fn distances_are_those_of_nomad() {
        let room =
            |cpu_mhz, memory_mib, disk_mib| Quantities::of(Amount { cpu_mhz, memory_mib, disk_mib }, 0);
        let required = room(2048, 512, 4096);
        for (freed, expected) in [
            (room(2048, 512, 4096), 0.000),
            (room(1024, 400, 1024), 0.928),
            (room(8192, 200, 1024), 3.152),
            (room(2048, 500, 4096), 0.023),
        ] {
            assert!((required.distance(freed) - expected).abs() < 0.0005, "{freed:?}");
        }
    }

    #[test]
    fn only_what_is_wanted_counts() {
        let required = Quantities([0, 100, -5, 1]);
        assert_eq!(required.distance(Quantities([9000, 50, 9000, 9])), 0.5);
    }
}

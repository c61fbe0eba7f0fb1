use std::collections::BTreeSet;

use state::node::Amount;

use super::{Site, Tenant, Wanted, by_priority};

/// MHz, MiB of memory, MiB of disk, cores. Negative: what is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Room([i64; 4]);

impl Room {
    fn of(amount: Amount, cores: usize) -> Room {
        let Amount { cpu_mhz, memory_mib, disk_mib } = amount;
        Room([cpu_mhz.into(), memory_mib.into(), disk_mib.into(), i64::try_from(cores).unwrap_or(i64::MAX)])
    }

    fn plus(self, other: Room) -> Room {
        Room(std::array::from_fn(|at| self.0[at].saturating_add(other.0[at])))
    }

    fn minus(self, other: Room) -> Room {
        Room(std::array::from_fn(|at| self.0[at].saturating_sub(other.0[at])))
    }

    fn covers(self, wanted: Room) -> bool {
        self.0.iter().zip(wanted.0).all(|(room, wanted)| *room >= wanted)
    }

    /// How far what would be freed is from what is wanted, over the amounts that are wanted at all.
    fn distance(self, freed: Room) -> f64 {
        let wanted = self.0.iter().zip(freed.0).take(3).filter(|(wanted, _)| **wanted > 0);
        let squares = wanted.map(|(wanted, freed)| {
            let part = (*wanted - freed) as f64 / *wanted as f64;
            part * part
        });
        squares.sum::<f64>().sqrt()
    }
}

/// Who has to go for cpu, memory, disk and cores, besides those that are gone already.
pub(super) fn victims(
    wanted: &Wanted<'_>,
    site: &Site<'_>,
    tenants: &[Tenant],
    gone: &BTreeSet<usize>,
) -> Option<Vec<usize>> {
    let ask = Room::of(wanted.amount, wanted.cores);
    // All that is there, the job's own too: they do not go, but they take their room.
    let staying = (0..tenants.len()).filter(|place| !gone.contains(place));
    let free =
        staying.fold(Room::of(site.capacity, site.cores), |room, place| room.minus(of(&tenants[place])));
    let chosen = choose(ask, free, tenants, by_priority(tenants, wanted.priority, gone))?;
    Some(reduce(ask, free, tenants, chosen))
}

fn of(tenant: &Tenant) -> Room {
    Room::of(tenant.amount, tenant.cores)
}

/// The closest to what is still missing, one after the other, the lowest priority first.
fn choose(ask: Room, free: Room, tenants: &[Tenant], groups: Vec<Vec<usize>>) -> Option<Vec<usize>> {
    let (mut available, mut missing) = (free, ask);
    let mut chosen = Vec::new();
    for mut group in groups {
        while !available.covers(ask) && !group.is_empty() {
            let distance = |place: usize| missing.distance(of(&tenants[place])) + tenants[place].penalty();
            let closest = (0..group.len())
                .min_by(|a, b| distance(group[*a]).total_cmp(&distance(group[*b])))
                .expect("the group is not empty");
            let place = group.remove(closest);
            available = available.plus(of(&tenants[place]));
            missing = missing.minus(of(&tenants[place]));
            chosen.push(place);
        }
    }
    available.covers(ask).then_some(chosen)
}

/// The most distant ones may do without the others.
fn reduce(ask: Room, free: Room, tenants: &[Tenant], mut chosen: Vec<usize>) -> Vec<usize> {
    let distance = |place: &usize| ask.distance(of(&tenants[*place]));
    chosen.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let mut available = free;
    let needed = chosen.iter().take_while(|place| {
        let short = !available.covers(ask);
        available = available.plus(of(&tenants[**place]));
        short
    });
    needed.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I55.
    #[test]
    fn distances_are_those_of_the_reference() {
        let room = |cpu_mhz, memory_mib, disk_mib| Room::of(Amount { cpu_mhz, memory_mib, disk_mib }, 0);
        let ask = room(2048, 512, 4096);
        for (freed, expected) in [
            (room(2048, 512, 4096), 0.000),
            (room(1024, 400, 1024), 0.928),
            (room(8192, 200, 1024), 3.152),
            (room(2048, 500, 4096), 0.023),
        ] {
            assert!((ask.distance(freed) - expected).abs() < 0.0005, "{freed:?}");
        }
    }

    #[test]
    fn only_what_is_wanted_counts() {
        let ask = Room([0, 100, -5, 1]);
        assert_eq!(ask.distance(Room([9000, 50, 9000, 9])), 0.5);
    }
}

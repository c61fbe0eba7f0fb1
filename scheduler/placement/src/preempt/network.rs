use std::collections::BTreeSet;

use super::{Tenant, by_priority};

/// What one allocation takes of one link, or wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUse {
    /// The link's name; nobody wants a certain one.
    pub device: String,
    pub mbits: u32,
    /// Host ports it holds; of one that wants in, those with a number.
    pub ports: Vec<u16>,
}

/// One link of a node, such as an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub device: String,
    pub mbits: u32,
}

/// Who has to go so that one link has the ports and the bandwidth; all victims are on that link.
///
/// Links are tried in their order; the first that will do is taken.
pub(super) fn victims(
    priority: u32,
    wanted: &NetworkUse,
    links: &[Link],
    tenants: &[Tenant],
) -> Option<Vec<usize>> {
    links.iter().find_map(|link| on(link, priority, wanted, tenants))
}

fn on(link: &Link, priority: u32, wanted: &NetworkUse, tenants: &[Tenant]) -> Option<Vec<usize>> {
    let used = |place: usize| tenants[place].network.as_ref().filter(|used| used.device == link.device);
    let here: Vec<usize> = (0..tenants.len()).filter(|place| used(*place).is_some()).collect();
    let mbits = |place: usize| used(place).map_or(0, |used| u64::from(used.mbits));
    if link.mbits < wanted.mbits {
        return None;
    }
    let holds_port =
        |place: &usize| used(*place).is_some_and(|used| used.ports.iter().any(|p| wanted.ports.contains(p)));
    let holders: Vec<usize> = here.iter().copied().filter(holds_port).collect();
    if !holders.iter().all(|place| tenants[*place].makes_room_for(priority)) {
        return None;
    }
    let taken: u64 = here.iter().filter(|place| !holders.contains(place)).map(|place| mbits(*place)).sum();
    let free = u64::from(link.mbits).saturating_sub(taken);
    let elsewhere = (0..tenants.len()).filter(|place| used(*place).is_none() || holders.contains(place));
    let groups = by_priority(tenants, priority, &elsewhere.collect::<BTreeSet<usize>>());
    let need = u64::from(wanted.mbits);
    let chosen = for_bandwidth(need, free, tenants, groups, mbits)?;
    Some(holders.into_iter().chain(chosen).collect())
}

/// Who goes for bandwidth: the closest to what is wanted, the lowest priority first, and none that is not needed.
fn for_bandwidth(
    need: u64,
    free: u64,
    tenants: &[Tenant],
    groups: Vec<Vec<usize>>,
    mbits: impl Fn(usize) -> u64,
) -> Option<Vec<usize>> {
    let distance = |place: usize| (need as f64 - mbits(place) as f64).abs() / need as f64;
    let (mut available, mut chosen) = (free, Vec::new());
    for mut group in groups {
        let with_penalty = |place: usize| distance(place) + tenants[place].penalty();
        group.sort_by(|a, b| with_penalty(*a).total_cmp(&with_penalty(*b)));
        for place in group {
            if available < need {
                available += mbits(place);
                chosen.push(place);
            }
        }
    }
    if available < need {
        return None;
    }
    chosen.sort_by(|a, b| distance(*b).total_cmp(&distance(*a)));
    let mut available = free;
    chosen.retain(|place| {
        let short = available < need;
        available += if short { mbits(*place) } else { 0 };
        short
    });
    Some(chosen)
}

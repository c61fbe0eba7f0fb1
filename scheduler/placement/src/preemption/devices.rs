use std::collections::BTreeSet;

use model::document::{Node, NodeDeviceResource};

use super::{NodeAlloc, PreemptionRequest, by_priority};
use crate::feasibility::devices::{DeviceId, DeviceRequest};

/// The allocations to preempt so that every request finds its instances, besides those that are gone already.
pub(super) fn victims(
    wanted: &PreemptionRequest<'_>,
    node: &Node,
    allocs: &[NodeAlloc],
    gone: &BTreeSet<usize>,
) -> Option<BTreeSet<usize>> {
    let devices = crate::feasibility::devices::sorted(node);
    let mut gone = gone.clone();
    let mut given: BTreeSet<DeviceId> = BTreeSet::new();
    for request in wanted.devices.requests() {
        let taken = taken(allocs, &gone, &given);
        let chosen = match request.choose(&devices, &taken) {
            Ok(chosen) => chosen,
            Err(_) => {
                gone.extend(for_request(wanted.priority, request, &devices, allocs, &gone, &given)?);
                let taken = self::taken(allocs, &gone, &given);
                request.choose(&devices, &taken).ok()?
            }
        };
        let (device, instances) = chosen;
        given.extend(instances.iter().map(|instance| DeviceId::on(device, instance)));
    }
    Some(gone)
}

fn taken(allocs: &[NodeAlloc], gone: &BTreeSet<usize>, given: &BTreeSet<DeviceId>) -> BTreeSet<DeviceId> {
    let staying = (0..allocs.len()).filter(|index| !gone.contains(index));
    staying.flat_map(|index| &allocs[index].devices).chain(given).cloned().collect()
}

/// The cheapest way to free instances of one kind: the lowest sum of priorities, each priority counted once.
fn for_request(
    priority: u32,
    request: &DeviceRequest,
    devices: &[&NodeDeviceResource],
    allocs: &[NodeAlloc],
    gone: &BTreeSet<usize>,
    given: &BTreeSet<DeviceId>,
) -> Option<Vec<usize>> {
    let taken = taken(allocs, gone, given);
    let mut best: Option<(u32, Vec<usize>)> = None;
    for device in devices.iter().filter(|device| request.accepts(device)) {
        let all: BTreeSet<DeviceId> =
            request.instances(device).into_iter().map(|instance| DeviceId::on(device, instance)).collect();
        let free = all.difference(&taken).count();
        let held = |index: usize| allocs[index].devices.intersection(&all).count();
        let Some(chosen) = on_device(request.count(), free, by_priority(allocs, priority, gone), held) else {
            continue;
        };
        let priorities: BTreeSet<u32> = chosen.iter().map(|index| allocs[*index].priority).collect();
        let sum = priorities.iter().sum();
        if best.as_ref().is_none_or(|(least, _)| sum < *least) {
            best = Some((sum, chosen));
        }
    }
    best.map(|(_, chosen)| chosen)
}

/// By ascending priority until there are enough instances; of those then as few as possible, largest first.
fn on_device(
    count: usize,
    free: usize,
    groups: Vec<Vec<usize>>,
    held: impl Fn(usize) -> usize,
) -> Option<Vec<usize>> {
    let (mut available, mut chosen) = (free, Vec::new());
    for index in groups.into_iter().flatten().filter(|index| held(*index) > 0) {
        if available < count {
            available += held(index);
            chosen.push(index);
        }
    }
    if available < count {
        return None;
    }
    chosen.sort_by_key(|index| std::cmp::Reverse(held(*index)));
    let mut available = free;
    chosen.retain(|index| {
        let short = available < count;
        available += if short { held(*index) } else { 0 };
        short
    });
    Some(chosen)
}

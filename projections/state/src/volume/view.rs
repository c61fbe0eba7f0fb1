use std::collections::BTreeMap;

use base::Index;
use model::document::{CSIVolume, HostVolume, TaskGroup, VolumeRequest};
use model::{AllocId, NodeStatus, VolumeKey, VolumeKind};

use crate::State;
use crate::alloc::Alloc;
use crate::node::{NodeHot, NodeRow};

/// The access mode of a CSI volume to which any number of jobs may write.
pub const MANY_WRITERS: &str = "multi-node-multi-writer";

/// The volumes of one type that an allocation mounts: the request, and the name or id it asks for.
pub fn mounts(alloc: &Alloc, kind: VolumeKind) -> impl Iterator<Item = (&VolumeRequest, String)> {
    let group = alloc.version.group(&alloc.group).into_iter();
    group.flat_map(move |group| sources(group, alloc.name_index, kind))
}

/// [`mounts`] of the allocation of a group with this number in its name.
pub fn sources(
    group: &TaskGroup,
    name_index: u32,
    kind: VolumeKind,
) -> impl Iterator<Item = (&VolumeRequest, String)> {
    group.volumes.values().filter(move |request| request.kind == kind.word()).map(move |request| {
        let own = if request.per_alloc { format!("[{name_index}]") } else { String::new() };
        (request, format!("{}{own}", request.source))
    })
}

/// The CSI volumes that allocations of a namespace have: those that take room, each with its request and the volume's
/// id. In no order that means anything.
///
/// Scans the allocations of the namespace: that is rare enough to need no index.
pub fn csi_claims<'s>(
    state: &'s State,
    namespace: &str,
) -> impl Iterator<Item = (&'s Alloc, &'s VolumeRequest, String)> {
    let jobs = state.jobs.iter().map(|(_, job)| job).filter(move |job| job.key.namespace == namespace);
    let allocs = jobs.flat_map(|job| job.allocs.iter()).map(|row| state.allocs.get(*row));
    allocs
        .filter(|alloc| alloc.takes_room())
        .flat_map(|alloc| mounts(alloc, VolumeKind::Csi).map(move |(request, id)| (alloc, request, id)))
}

/// The allocations that take room and mount the CSI volume, by id, each with whether it may write.
pub fn csi_users<'s>(state: &'s State, namespace: &str, id: &str) -> Vec<(&'s Alloc, bool)> {
    let own = csi_claims(state, namespace).filter(|(.., source)| source == id);
    let mut users: BTreeMap<AllocId, (&Alloc, bool)> = BTreeMap::new();
    for (alloc, request, _) in own {
        users.entry(alloc.id).or_insert((alloc, false)).1 |= !request.read_only;
    }
    users.into_values().collect()
}

/// Whether jobs may write to the CSI volume beside each other. `writing`: the access modes of those that write now.
///
/// Nomad notes with the first claim how a volume is used. Here that follows from who uses it.
pub fn is_shared_by_jobs<'a>(volume: &CSIVolume, mut writing: impl Iterator<Item = &'a str>) -> bool {
    let allows = |mode: &str| mode == MANY_WRITERS;
    let mut capabilities = volume.requested_capabilities.iter();
    allows(&volume.access_mode) || capabilities.any(|own| allows(&own.access_mode)) && writing.all(allows)
}

/// The volume's plugin runs healthily on some node, and its controller too where it needs one.
pub fn is_csi_schedulable(state: &State, volume: &CSIVolume) -> bool {
    let up = |hot: &NodeHot| !hot.gone && hot.status != NodeStatus::Down;
    let nodes = || state.nodes.rows().filter(|row| up(state.nodes.hot(*row)));
    let plugins =
        nodes().filter_map(|row| state.nodes.cold(row).document.csi_node_plugins.get(&volume.plugin_id));
    let mut healthy = plugins.filter(|plugin| plugin.healthy).peekable();
    let Some(plugin) = healthy.peek() else { return false };
    let controllers = || {
        nodes().filter_map(|row| state.nodes.cold(row).document.csi_controller_plugins.get(&volume.plugin_id))
    };
    !plugin.requires_controller_plugin || controllers().any(|controller| controller.healthy)
}

/// The volume with what its node says of it: `ready` while the node has it and is not down, `pending` while the node has
/// said nothing since the volume was made, `unavailable` otherwise. Tools that make volumes wait as long as it is pending.
pub fn host_document(state: &State, volume: &HostVolume) -> HostVolume {
    let node = volume.node_id.parse().ok().and_then(|id| state.nodes.find(id));
    let up = node.filter(|row| state.nodes.hot(*row).status != NodeStatus::Down);
    let shown = match up {
        Some(row) if has_host_volume(state, row, &volume.id) => "ready",
        Some(row) if state.nodes.hot(row).modified <= made(state, volume) => "pending",
        _ => "unavailable",
    };
    HostVolume { state: shown.to_string(), ..volume.clone() }
}

fn has_host_volume(state: &State, node: NodeRow, id: &str) -> bool {
    state.nodes.cold(node).document.host_volumes.values().any(|info| info.id == id)
}

fn made(state: &State, volume: &HostVolume) -> Index {
    let key = VolumeKey::new(VolumeKind::Host, &volume.namespace, &volume.id);
    state.volumes.get(&key).map_or(Index::ZERO, |registered| registered.created)
}

/// Whether an allocation that takes room mounts it.
pub fn is_used(state: &State, key: &VolumeKey) -> bool {
    match key.kind {
        // A claim outlives its allocation until the volume is detached.
        VolumeKind::Csi => {
            state.claims.of_volume(key).next().is_some()
                || !csi_users(state, &key.namespace, &key.id).is_empty()
        }
        VolumeKind::Host => {
            let volume = state.volumes.host(&key.namespace, &key.id);
            volume.is_some_and(|volume| !host_users(state, volume).is_empty())
        }
    }
}

/// The allocations that take room on the volume's node and mount it, by id.
pub fn host_users<'s>(state: &'s State, volume: &HostVolume) -> Vec<&'s Alloc> {
    let node = volume.node_id.parse().ok().and_then(|id| state.nodes.find(id));
    let allocs = node.into_iter().flat_map(|row| &state.nodes.load(row).allocs);
    let allocs = allocs.map(|row| state.allocs.get(*row)).filter(|alloc| alloc.takes_room());
    let same = |alloc: &Alloc| state.jobs.get(alloc.job).key.namespace == volume.namespace;
    let mut users: Vec<&Alloc> = allocs
        .filter(|alloc| {
            same(alloc) && mounts(alloc, VolumeKind::Host).any(|(_, source)| source == volume.name)
        })
        .collect();
    users.sort_by_key(|alloc| alloc.id);
    users
}

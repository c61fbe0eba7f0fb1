use std::collections::{BTreeMap, BTreeSet};

use model::command::Plan;
use model::event::AllocsPlaced;
use model::{AllocId, JobKey, NodeId, VolumeKey, VolumeKind};
use state::State;
use state::volume::{csi_claims, is_shared_by_jobs, sources};

/// A volume that a new allocation mounts.
struct Mount<'p> {
    node: NodeId,
    job: &'p JobKey,
    key: VolumeKey,
    writes: bool,
}

/// The nodes where a plan mounts what it cannot have by now, each with the reason: the volume was forgotten since, or
/// another job writes to it.
///
/// CSI volumes are the same on all nodes, so a plan whose own nodes have not changed is looked at too.
pub(super) fn unavailable(state: &State, plan: &Plan, placed: &[AllocsPlaced]) -> Vec<(NodeId, String)> {
    let mounts: Vec<Mount> = placed.iter().flat_map(|placed| mounts(state, placed)).collect();
    let written = mounts.iter().filter(|mount| mount.writes && mount.key.kind == VolumeKind::Csi);
    let writers = writers(state, &written.map(|mount| &mount.key).collect());
    mounts.iter().filter_map(|mount| Some((mount.node, refusal(state, plan, mount, &writers)?))).collect()
}

fn mounts<'p>(state: &'p State, placed: &'p AllocsPlaced) -> Vec<Mount<'p>> {
    let AllocsPlaced { key: job, nodes, names, .. } = placed;
    let version = state.jobs.lookup(job).and_then(|job| job.version(placed.version));
    let group = version.and_then(|version| version.group(&placed.group));
    let Some(group) = group.filter(|group| !group.volumes.is_empty()) else { return Vec::new() };
    let key = |kind, id: &str| VolumeKey::new(kind, &job.namespace, id);
    let mut mounts = Vec::new();
    for (node, name_index) in nodes.iter().zip(names) {
        let csi = sources(group, *name_index, VolumeKind::Csi);
        mounts.extend(csi.map(|(request, id)| {
            let key = key(VolumeKind::Csi, &id);
            Mount { node: *node, job, key, writes: !request.read_only }
        }));
        let Some(row) = state.nodes.find(*node) else { continue };
        let own = &state.nodes.cold(row).document.host_volumes;
        let host = sources(group, *name_index, VolumeKind::Host);
        // One of the node's configuration has no id and is registered nowhere.
        let made = host.filter_map(|(request, name)| Some((request, own.get(&name)?)));
        mounts.extend(made.filter(|(_, info)| !info.id.is_empty()).map(|(request, info)| {
            let key = key(VolumeKind::Host, &info.id);
            Mount { node: *node, job, key, writes: !request.read_only }
        }));
    }
    mounts
}

/// An allocation that may write to a CSI volume.
struct Writer<'s> {
    id: AllocId,
    job: &'s JobKey,
    node: NodeId,
    access_mode: &'s str,
}

fn writers<'s>(state: &'s State, asked: &BTreeSet<&VolumeKey>) -> BTreeMap<VolumeKey, Vec<Writer<'s>>> {
    let mut writers: BTreeMap<VolumeKey, Vec<Writer>> = BTreeMap::new();
    let namespaces: BTreeSet<&str> = asked.iter().map(|key| key.namespace.as_str()).collect();
    for namespace in namespaces {
        for (alloc, request, id) in csi_claims(state, namespace).filter(|(_, request, _)| !request.read_only)
        {
            let key = VolumeKey::new(VolumeKind::Csi, namespace, &id);
            if asked.contains(&key) {
                let (id, job) = (alloc.id, &state.jobs.get(alloc.job).key);
                let writer = Writer { id, job, node: alloc.node_id, access_mode: &request.access_mode };
                writers.entry(key).or_default().push(writer);
            }
        }
    }
    writers
}

fn refusal(
    state: &State,
    plan: &Plan,
    mount: &Mount,
    writers: &BTreeMap<VolumeKey, Vec<Writer>>,
) -> Option<String> {
    let Mount { node, job, key, writes } = mount;
    if state.volumes.get(key).is_none() {
        return Some(format!("volume {} is not registered", key.id));
    }
    // Host volumes: `Site::written`.
    let volume = state.volumes.csi(&key.namespace, &key.id).filter(|_| *writes)?;
    // Preempted for this placement, so it goes if the placement comes.
    let leaves = |writer: &Writer| {
        let mut preempted = plan.preempted.iter().flat_map(|preempted| &preempted.allocs);
        writer.node == *node && preempted.any(|id| *id == writer.id)
    };
    let writers = writers.get(key).map_or(&[][..], Vec::as_slice);
    let mut others = writers.iter().filter(|writer| !leaves(writer));
    let is_shared = is_shared_by_jobs(volume, others.clone().map(|writer| writer.access_mode));
    let exhausted = || format!("CSI volume {} has exhausted its available writer claims", key.id);
    (!is_shared && others.any(|writer| writer.job != *job)).then(exhausted)
}

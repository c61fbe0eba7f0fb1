//! Claims of CSI volumes: who may have one beside whom, and when one is over.

use model::document::{CSIVolume, VolumeRequest};
use model::event::{CsiClaimDetached, CsiClaimReleased, CsiVolumeClaimed, Event};
use model::{AllocId, CsiClaim, NodeId, Rejection, VolumeKey, VolumeKind};
use state::State;
use state::alloc::Alloc;
use state::node::NodeRow;
use state::volume::{Claimed, MANY_WRITERS, mounts};

use crate::decision::Decision;
use crate::node;

/// A node claims a volume for one of its allocations, in the way that the allocation's job asks for. What is claimed so
/// already is not written again.
///
/// # Errors
/// [`Rejection::VolumeClaimed`] as long as others have it in a way that leaves no room, or it is just being detached from the
/// node; what else is wrong with the claim.
pub(crate) fn claim(
    state: &State,
    node: NodeId,
    key: &VolumeKey,
    id: AllocId,
) -> Result<Decision, Rejection> {
    let row = node::decide::known(state, node)?;
    let volume = state.volumes.csi(&key.namespace, &key.id);
    let volume = volume.ok_or_else(|| Rejection::VolumeUnknown(key.clone()))?;
    let alloc = state.allocs.lookup(id).ok_or(Rejection::AllocUnknown(id))?;
    if alloc.node_id != node {
        return Err(Rejection::NodeForeignAlloc { node, alloc: id.to_string() });
    }
    if !alloc.takes_room() {
        return invalid("AllocationID", "an allocation that has not ended");
    }
    let claim = wanted(state, row, node, volume, (key, alloc))?;
    let before = state.claims.get(key, id);
    if before.is_some_and(|before| !before.detached && before.claim == claim) {
        return Ok(Decision::nothing());
    }
    let conflict = state.claims.of_volume(key).find(|(other, claimed)| {
        let is_leaving = claimed.detached && claimed.claim.node == node;
        is_leaving || (*other != id && excludes(&claimed.claim, &claim))
    });
    if let Some((other, claimed)) = conflict {
        return Err(refused(key, other, claimed));
    }
    Ok(CsiVolumeClaimed { volume: key.clone(), alloc: id, claim }.into())
}

/// The node has unmounted the volume, as far as this allocation is concerned; or it is down, and nobody can ask it to.
///
/// # Errors
/// [`Rejection::NodeForeignAlloc`] if another node says so.
pub(crate) fn detach(
    state: &State,
    key: &VolumeKey,
    alloc: AllocId,
    node: Option<NodeId>,
) -> Result<Decision, Rejection> {
    let Some(claimed) = state.claims.get(key, alloc) else { return Ok(Decision::nothing()) };
    if let Some(node) = node.filter(|node| *node != claimed.claim.node) {
        return Err(Rejection::NodeForeignAlloc { node, alloc: alloc.to_string() });
    }
    if claimed.detached {
        return Ok(Decision::nothing());
    }
    Ok(CsiClaimDetached { volume: key.clone(), alloc }.into())
}

/// A controller has detached the volume from the node, or need not. One that the node still has is not released: a new claim
/// may have come meanwhile.
pub(crate) fn release(state: &State, key: &VolumeKey, alloc: AllocId) -> Decision {
    match state.claims.get(key, alloc) {
        Some(Claimed { detached: true, .. }) => CsiClaimReleased { volume: key.clone(), alloc }.into(),
        Some(_) | None => Decision::nothing(),
    }
}

/// Nobody detaches a volume that is forgotten.
pub(crate) fn forgotten(state: &State, key: &VolumeKey) -> Vec<Event> {
    let released = |(alloc, _)| CsiClaimReleased { volume: key.clone(), alloc }.into();
    state.claims.of_volume(key).map(released).collect()
}

fn wanted(
    state: &State,
    row: NodeRow,
    node: NodeId,
    volume: &CSIVolume,
    (key, alloc): (&VolumeKey, &Alloc),
) -> Result<CsiClaim, Rejection> {
    let is_same_namespace = state.jobs.get(alloc.job).key.namespace == key.namespace;
    let own = mounts(alloc, VolumeKind::Csi).filter(|(_, id)| is_same_namespace && *id == key.id);
    // Of several requests for one volume the one that writes counts.
    let request = own.map(|(request, _)| request).min_by_key(|request| request.read_only);
    let Some(request) = request else {
        return invalid("VolumeID", "a volume that the allocation's group asks for");
    };
    check_capability(volume, request)?;
    let Some(plugin) = state.nodes.cold(row).document.csi_node_plugins.get(&volume.plugin_id) else {
        return invalid("PluginID", "a plugin that the node has reported");
    };
    let external_node = plugin.node_info.as_ref().map_or_else(String::new, |info| info.id.clone());
    Ok(CsiClaim {
        node,
        read_only: request.read_only,
        access_mode: request.access_mode.clone(),
        attachment_mode: request.attachment_mode.clone(),
        plugin: volume.plugin_id.clone(),
        external_volume: external_id(volume).to_string(),
        external_node,
        attached: plugin.requires_controller_plugin,
    })
}

/// What the plugin calls the volume: its own name, where it was registered without one.
pub fn external_id(volume: &CSIVolume) -> &str {
    if volume.external_id.is_empty() { &volume.id } else { &volume.external_id }
}

fn check_capability(volume: &CSIVolume, request: &VolumeRequest) -> Result<(), Rejection> {
    let mut known = volume.requested_capabilities.iter();
    let fits = known
        .any(|own| own.access_mode == request.access_mode && own.attachment_mode == request.attachment_mode);
    if !fits {
        return invalid("AccessMode and AttachmentMode", "one of the capabilities that the volume has");
    }
    if !request.read_only && request.access_mode.ends_with("reader-only") {
        return invalid("AccessMode", "one that allows writing, or read_only");
    }
    Ok(())
}

/// Two allocations cannot have the volume in these ways at the same time. On one node that holds as well: a volume for a
/// single node is one allocation's, as in Nomad.
fn excludes(one: &CsiClaim, other: &CsiClaim) -> bool {
    let is_single = |claim: &CsiClaim| claim.access_mode.starts_with("single-node");
    let is_shared = |claim: &CsiClaim| claim.access_mode == MANY_WRITERS;
    let both_write = !one.read_only && !other.read_only;
    is_single(one) || is_single(other) || (both_write && !(is_shared(one) && is_shared(other)))
}

fn refused(key: &VolumeKey, other: AllocId, claimed: &Claimed) -> Rejection {
    let node = claimed.claim.node;
    let why = match claimed.detached {
        true => format!("it is being detached from node {node}"),
        false => format!("allocation {other} has it on node {node}"),
    };
    Rejection::VolumeClaimed { volume: key.clone(), why }
}

fn invalid<T>(field: &'static str, expected: &'static str) -> Result<T, Rejection> {
    Err(Rejection::VolumeInvalid { field: field.into(), expected: expected.into() })
}

//! CSI volumes that have grown: which of them a node still has to expand.

use model::event::{CsiExpansionAwaited, CsiExpansionEnded, Event};
use model::{NodeId, Rejection, VolumeKey};
use state::State;

use crate::decision::Decision;

/// A controller has made the volume larger, and a node has to see to what is on it. Until all servers know of that, what nobody
/// has mounted stays as small as it is.
///
/// # Errors
/// There is no such volume.
pub(crate) fn awaited(
    state: &State,
    key: &VolumeKey,
    required_bytes: i64,
    limit_bytes: i64,
) -> Result<Decision, Rejection> {
    if state.volumes.csi(&key.namespace, &key.id).is_none() {
        return Err(Rejection::VolumeUnknown(key.clone()));
    }
    let known = state.expansions.get(key).map(|known| (known.required_bytes, known.limit_bytes));
    let awaited = Event::from(CsiExpansionAwaited { volume: key.clone(), required_bytes, limit_bytes });
    if known == Some((required_bytes, limit_bytes)) || state.epoch() < awaited.since() {
        return Ok(Decision::nothing());
    }
    Ok(awaited.into())
}

/// A node that has the volume has expanded what is on it, to `required_bytes` at least. If the volume has grown again meanwhile,
/// there is more to do.
///
/// # Errors
/// The node does not have the volume.
pub(crate) fn ended(
    state: &State,
    key: &VolumeKey,
    node: NodeId,
    required_bytes: i64,
) -> Result<Decision, Rejection> {
    let has = state.claims.of_volume(key).any(|(_, claimed)| claimed.claim.node == node);
    if !has {
        let (field, expected) = ("NodeID".into(), "a node that has the volume".into());
        return Err(Rejection::VolumeInvalid { field, expected });
    }
    match state.expansions.get(key) {
        Some(known) if known.required_bytes <= required_bytes => {
            Ok(CsiExpansionEnded { volume: key.clone(), node: Some(node) }.into())
        }
        Some(_) | None => Ok(Decision::nothing()),
    }
}

/// Nobody expands a volume that is forgotten, or is another one from now on.
pub(crate) fn forgotten(state: &State, key: &VolumeKey) -> Option<Event> {
    state.expansions.get(key)?;
    Some(CsiExpansionEnded { volume: key.clone(), node: None }.into())
}

//! What happens to claims of volumes.

use base::Rng;
use model::event::*;
use model::{AllocId, CsiClaim, EPOCH, NodeId, VolumeKey, VolumeKind};
use state::State;

use super::draw::one;

pub fn events(state: &State, rng: &mut Rng) -> Option<Vec<Event>> {
    let known: Vec<(&VolumeKey, AllocId)> =
        state.claims.iter().map(|(volume, alloc, _)| (volume, alloc)).collect();
    let picked = one(&known, rng).map(|(volume, alloc)| (volume.clone(), alloc));
    // What needs something to be there comes with it, so that a short history has all of it.
    let new = claimed(state, rng)?;
    let (volume, alloc) = picked.unwrap_or_else(|| (new.volume.clone(), new.alloc));
    let mut events = vec![new.into()];
    if rng.below(2) == 0 {
        events.push(CsiClaimDetached { volume: volume.clone(), alloc }.into());
    }
    if rng.below(2) == 0 {
        events.push(CsiClaimReleased { volume, alloc }.into());
    }
    if state.epoch() == EPOCH {
        events.extend(of_expansions(state, rng));
    }
    Some(events)
}

fn of_expansions(state: &State, rng: &mut Rng) -> Vec<Event> {
    let awaited: Vec<&VolumeKey> = state.expansions.iter().map(|(volume, _)| volume).collect();
    match one(&awaited, rng) {
        Some(volume) if rng.below(2) == 0 => {
            let node = (rng.below(2) == 0).then(NodeId::default);
            vec![CsiExpansionEnded { volume: volume.clone(), node }.into()]
        }
        _ => {
            let volume = VolumeKey::new(VolumeKind::Csi, "default", &format!("vol-{}", rng.below(3)));
            let required_bytes = rng.below(9) as i64;
            vec![CsiExpansionAwaited { volume, required_bytes, limit_bytes: 0 }.into()]
        }
    }
}

fn claimed(state: &State, rng: &mut Rng) -> Option<CsiVolumeClaimed> {
    let jobs: Vec<_> = state.jobs.iter().map(|(_, job)| job.allocs.clone()).collect();
    let allocs = jobs.get(rng.below(jobs.len().max(1) as u64) as usize)?;
    let alloc = state.allocs.get(one(allocs, rng)?);
    let claim = CsiClaim {
        node: alloc.node_id,
        read_only: rng.below(2) == 0,
        access_mode: "single-node-writer".into(),
        attachment_mode: "file-system".into(),
        plugin: format!("plugin-{}", rng.below(2)),
        external_volume: format!("external-{}", rng.below(9)),
        external_node: String::new(),
        attached: rng.below(2) == 0,
    };
    let volume = VolumeKey::new(VolumeKind::Csi, "default", &format!("vol-{}", rng.below(3)));
    Some(CsiVolumeClaimed { volume, alloc: alloc.id, claim })
}

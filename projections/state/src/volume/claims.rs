use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash};
use model::event::{CsiClaimDetached, CsiClaimReleased, CsiVolumeClaimed};
use model::{AllocId, CsiClaim, NodeId, VolumeKey};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::moment::Moment;

/// A claim as far as it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    pub claim: CsiClaim,
    /// The node has given the volume back; a controller may still have to.
    pub detached: bool,
    pub created: Index,
    pub modified: Index,
}

type OfVolume = BTreeMap<AllocId, Claimed>;

/// The claims of all CSI volumes; a clone is a pointer copy. As many as there are allocations with such volumes: a change
/// copies the map if a snapshot holds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims(Arc<Content>);

#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    by_volume: BTreeMap<VolumeKey, Arc<OfVolume>>,
    changed: Index,
    /// The sum of the hashes of all claims.
    sum: u64,
}

impl Claims {
    pub(crate) fn of(rows: Vec<(VolumeKey, AllocId, Claimed)>, changed: Index) -> Claims {
        let mut claims = Claims::default();
        let content = Arc::make_mut(&mut claims.0);
        for (volume, alloc, claimed) in rows {
            content.set(&volume, alloc, Some(claimed));
        }
        content.changed = changed;
        claims
    }

    /// The last batch that changed one.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    pub fn get(&self, volume: &VolumeKey, alloc: AllocId) -> Option<&Claimed> {
        self.0.by_volume.get(volume)?.get(&alloc)
    }

    /// Those of a volume, by allocation.
    pub fn of_volume(&self, volume: &VolumeKey) -> impl Iterator<Item = (AllocId, &Claimed)> {
        let own = self.0.by_volume.get(volume).into_iter();
        own.flat_map(|own| own.iter().map(|(alloc, claimed)| (*alloc, claimed)))
    }

    /// In the order of volumes and allocations.
    pub fn iter(&self) -> impl Iterator<Item = (&VolumeKey, AllocId, &Claimed)> {
        let all = self.0.by_volume.iter();
        all.flat_map(|(volume, own)| own.iter().map(move |(alloc, claimed)| (volume, *alloc, claimed)))
    }

    /// Whether the volume has to stay attached to the node for another allocation.
    pub fn is_taken_on(&self, volume: &VolumeKey, node: NodeId, but: AllocId) -> bool {
        let mut own = self.of_volume(volume);
        own.any(|(alloc, claimed)| alloc != but && claimed.claim.node == node && !claimed.detached)
    }

    pub(crate) fn is_same(&self, other: &Claims) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn rows(&self) -> Vec<(VolumeKey, AllocId, Claimed)> {
        self.iter().map(|(volume, alloc, claimed)| (volume.clone(), alloc, claimed.clone())).collect()
    }

    pub(crate) fn claimed(&mut self, at: Moment, event: &CsiVolumeClaimed) {
        let before = self.get(&event.volume, event.alloc).map(|before| before.created);
        let claimed = Claimed {
            claim: event.claim.clone(),
            detached: false,
            created: before.unwrap_or(at.index),
            modified: at.index,
        };
        self.change(at.index).set(&event.volume, event.alloc, Some(claimed));
    }

    /// # Panics
    /// If the log names a claim that is not there: the log is damaged, and going on would spread the damage.
    pub(crate) fn detached(&mut self, at: Moment, event: &CsiClaimDetached) {
        let before = self.get(&event.volume, event.alloc).expect("a claim that is detached was made").clone();
        let claimed = Claimed { detached: true, modified: at.index, ..before };
        self.change(at.index).set(&event.volume, event.alloc, Some(claimed));
    }

    /// # Panics
    /// As above.
    pub(crate) fn released(&mut self, at: Moment, event: &CsiClaimReleased) {
        assert!(self.get(&event.volume, event.alloc).is_some(), "a claim that is released was made");
        self.change(at.index).set(&event.volume, event.alloc, None);
    }

    /// Everything is as in the state that was restored. A cluster without claims keeps its digest.
    pub(crate) fn restored(&mut self, now: Index, before: &Claims) {
        if self.changed().max(before.changed()) > Index::ZERO {
            self.change(now);
        }
    }

    /// Nothing was made or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        if self.changed() == Index::ZERO {
            return;
        }
        let mut rows = self.rows();
        for (_, _, claimed) in &mut rows {
            (claimed.created, claimed.modified) = (claimed.created.min(limit), claimed.modified.min(limit));
        }
        *self = Claims::of(rows, self.changed().min(limit));
    }

    fn change(&mut self, now: Index) -> &mut Content {
        let content = Arc::make_mut(&mut self.0);
        content.changed = now;
        content
    }

    /// Zero for a cluster that never had a claim: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.hash_with(self.0.sum)
    }

    /// What [`Claims::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        let sum = self
            .iter()
            .fold(0, |sum: u64, (volume, alloc, claimed)| sum.wrapping_add(hash(volume, alloc, claimed)));
        self.hash_with(sum)
    }

    fn hash_with(&self, sum: u64) -> u64 {
        if self.changed() == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::CsiClaims as u64);
        hash.pair(self.changed().0, sum);
        hash.finish()
    }
}

impl Content {
    fn set(&mut self, volume: &VolumeKey, alloc: AllocId, claimed: Option<Claimed>) {
        let own = Arc::make_mut(self.by_volume.entry(volume.clone()).or_default());
        if let Some(before) = own.remove(&alloc) {
            self.sum = self.sum.wrapping_sub(hash(volume, alloc, &before));
        }
        if let Some(claimed) = claimed {
            self.sum = self.sum.wrapping_add(hash(volume, alloc, &claimed));
            own.insert(alloc, claimed);
        }
        if own.is_empty() {
            self.by_volume.remove(volume);
        }
    }
}

fn hash(volume: &VolumeKey, alloc: AllocId, claimed: &Claimed) -> u64 {
    let Claimed { claim, detached, created, modified } = claimed;
    let mut hash = StableHash::new(Domain::CsiClaims as u64);
    hash.word(volume.kind as u64);
    hash.text(&volume.namespace);
    hash.text(&volume.id);
    hash.id(alloc.0);
    hash.id(claim.node.0);
    let flags = [claim.read_only, claim.attached, *detached];
    hash.word(flags.iter().fold(0, |all, flag| all << 1 | u64::from(*flag)));
    for text in [
        &claim.access_mode,
        &claim.attachment_mode,
        &claim.plugin,
        &claim.external_volume,
        &claim.external_node,
    ] {
        hash.text(text);
    }
    hash.pair(created.0, modified.0);
    hash.finish()
}

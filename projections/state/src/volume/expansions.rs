use std::collections::BTreeMap;
use std::sync::Arc;

use base::StableHash;
use model::VolumeKey;
use model::event::{CsiExpansionAwaited, CsiExpansionEnded};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// How large what is on a volume is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    pub required_bytes: i64,
    /// 0 says nothing.
    pub limit_bytes: i64,
}

/// The CSI volumes that have grown, and that the next node to mount them has to expand. At most as many as there are volumes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expansions(Arc<BTreeMap<VolumeKey, Expansion>>);

impl Expansions {
    pub(crate) fn of(rows: Vec<(VolumeKey, Expansion)>) -> Expansions {
        Expansions(Arc::new(rows.into_iter().collect()))
    }

    pub fn get(&self, volume: &VolumeKey) -> Option<Expansion> {
        self.0.get(volume).copied()
    }

    /// In the order of volumes.
    pub fn iter(&self) -> impl Iterator<Item = (&VolumeKey, Expansion)> {
        self.0.iter().map(|(volume, expansion)| (volume, *expansion))
    }

    pub(crate) fn is_same(&self, other: &Expansions) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn rows(&self) -> Vec<(VolumeKey, Expansion)> {
        self.iter().map(|(volume, expansion)| (volume.clone(), expansion)).collect()
    }

    /// A later one takes the place of an earlier one: a volume only grows.
    pub(crate) fn awaited(&mut self, event: &CsiExpansionAwaited) {
        let CsiExpansionAwaited { volume, required_bytes, limit_bytes } = event;
        let expansion = Expansion { required_bytes: *required_bytes, limit_bytes: *limit_bytes };
        Arc::make_mut(&mut self.0).insert(volume.clone(), expansion);
    }

    /// # Panics
    /// If the log never said that the volume awaits it: the log is damaged, and going on would spread the damage.
    pub(crate) fn ended(&mut self, event: &CsiExpansionEnded) {
        let was = Arc::make_mut(&mut self.0).remove(&event.volume);
        assert!(was.is_some(), "an expansion that ends was awaited");
    }

    /// Zero while no volume awaits any: digests of clusters that never had one stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let mut hash = StableHash::new(Domain::CsiExpansions as u64);
        for (volume, Expansion { required_bytes, limit_bytes }) in self.iter() {
            hash.word(volume.kind as u64);
            hash.text(&volume.namespace);
            hash.text(&volume.id);
            hash.pair(required_bytes as u64, limit_bytes as u64);
        }
        hash.finish()
    }
}

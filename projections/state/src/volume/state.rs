use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, Time};
use model::document::{CSIVolume, HostVolume};
use model::{NodeId, VolumeKey, VolumeKind};

use crate::LazyDoc;
use crate::domain::Domain;

/// A volume as it was registered last.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    pub document: Document,
    pub created: Index,
    pub modified: Index,
    pub create_time: Time,
    pub modify_time: Time,
}

impl Registered {
    /// It was made on this node.
    pub fn is_on(&self, node: NodeId) -> bool {
        match &self.document {
            Document::Host(volume) => volume.node_id.parse() == Ok(node),
            Document::Csi(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Csi(LazyDoc<CSIVolume>),
    Host(LazyDoc<HostVolume>),
}

impl Document {
    pub(crate) fn new(kind: VolumeKind, bytes: Vec<u8>) -> Document {
        match kind {
            VolumeKind::Csi => Document::Csi(LazyDoc::new(bytes)),
            VolumeKind::Host => Document::Host(LazyDoc::new(bytes)),
        }
    }

    /// As it was logged.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Document::Csi(document) => document.bytes(),
            Document::Host(document) => document.bytes(),
        }
    }

    fn hash(&self) -> u64 {
        match self {
            Document::Csi(document) => document.hash(),
            Document::Host(document) => document.hash(),
        }
    }
}

/// All volumes by type, namespace and id. They are few: a change copies the map if a snapshot holds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Volumes {
    pub(crate) by_key: Arc<BTreeMap<VolumeKey, Arc<Registered>>>,
    /// The batch that last registered or deregistered one.
    pub changed: Index,
    /// The sum of the hashes of all volumes.
    pub(crate) sum: u64,
}

impl Volumes {
    pub(crate) fn of(volumes: impl Iterator<Item = (VolumeKey, Registered)>) -> Volumes {
        let by_key: BTreeMap<VolumeKey, Arc<Registered>> =
            volumes.map(|(key, volume)| (key, Arc::new(volume))).collect();
        let changed = by_key.values().map(|volume| volume.modified).max().unwrap_or(Index::ZERO);
        let mut volumes = Volumes { by_key: Arc::new(by_key), changed, sum: 0 };
        volumes.sum = volumes.recomputed();
        volumes
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn get(&self, key: &VolumeKey) -> Option<&Registered> {
        self.by_key.get(key).map(|volume| &**volume)
    }

    /// In the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&VolumeKey, &Registered)> + Clone {
        self.by_key.iter().map(|(key, volume)| (key, &**volume))
    }

    pub fn csi(&self, namespace: &str, id: &str) -> Option<&CSIVolume> {
        match &self.get(&VolumeKey::new(VolumeKind::Csi, namespace, id))?.document {
            Document::Csi(volume) => Some(volume),
            Document::Host(_) => None,
        }
    }

    /// One that was made on a node.
    pub fn host(&self, namespace: &str, id: &str) -> Option<&HostVolume> {
        match &self.get(&VolumeKey::new(VolumeKind::Host, namespace, id))?.document {
            Document::Host(volume) => Some(volume),
            Document::Csi(_) => None,
        }
    }

    /// What `resource` names was registered, or registered anew, after that index.
    pub(crate) fn came(&self, resource: &str, since: Index) -> bool {
        VolumeKey::of_resource(resource)
            .and_then(|key| self.get(&key))
            .is_some_and(|volume| volume.modified > since)
    }

    pub(crate) fn set(&mut self, key: &VolumeKey, volume: Option<Registered>) {
        let by_key = Arc::make_mut(&mut self.by_key);
        if let Some(before) = by_key.remove(key) {
            self.sum = self.sum.wrapping_sub(hash(key, &before));
        }
        if let Some(volume) = volume {
            self.sum = self.sum.wrapping_add(hash(key, &volume));
            by_key.insert(key.clone(), Arc::new(volume));
        }
    }

    /// What `sum` has to be.
    pub(crate) fn recomputed(&self) -> u64 {
        self.iter().fold(0, |sum: u64, (key, volume)| sum.wrapping_add(hash(key, volume)))
    }
}

fn hash(key: &VolumeKey, volume: &Registered) -> u64 {
    let mut hash = Domain::Volume.row(key.kind as u32);
    hash.text(&key.namespace);
    hash.text(&key.id);
    hash.word(volume.document.hash());
    hash.pair(volume.created.0, volume.modified.0);
    hash.pair(volume.create_time.0 as u64, volume.modify_time.0 as u64);
    hash.finish()
}

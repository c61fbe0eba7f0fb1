use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Index, StableHash};
use model::{AllocId, JobKey, NodeId, Service, ServiceKey};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// Parts that instances are spread over by their allocations: a change copies one of them if a snapshot holds it, and has one
/// chunk of an image written again. Frozen, as chunks are.
pub const SHARDS: usize = 64;

/// The instances of each allocation of a part.
pub(crate) type Shard = BTreeMap<AllocId, Arc<Vec<Registered>>>;

/// Namespace and name.
type Name = (Arc<str>, Arc<str>);

/// One instance of a service as it was registered last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    pub service: Service,
    pub alloc: AllocId,
    pub key: JobKey,
    pub node: NodeId,
    pub datacenter: String,
    pub created: Index,
    pub modified: Index,
}

/// All instances; a clone is a pointer copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Services(Arc<Content>);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    /// Empty, or [`SHARDS`] of them.
    shards: Vec<Arc<Shard>>,
    /// Which allocations have instances of a name, spread by the names.
    names: Vec<Arc<BTreeMap<Name, Arc<BTreeSet<AllocId>>>>>,
    len: usize,
    pub changed: Index,
    /// The sum of the hashes of all instances.
    sum: u64,
}

impl Services {
    pub(crate) fn of(shards: Vec<Shard>, changed: Index) -> Services {
        let mut services = Services::default();
        let content = services.change();
        for (alloc, rows) in shards.into_iter().flatten() {
            content.set(alloc, Arc::unwrap_or_clone(rows));
        }
        content.changed = changed;
        services
    }

    /// Instances.
    pub fn len(&self) -> usize {
        self.0.len
    }

    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The last batch that changed one.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    pub fn of_alloc(&self, alloc: AllocId) -> &[Registered] {
        self.0.of_alloc(alloc)
    }

    pub fn get(&self, key: &ServiceKey) -> Option<&Registered> {
        let own = self.of_alloc(Service::alloc_of(&key.id)?);
        own.iter().find(|row| row.service.id == key.id && row.key.namespace == key.namespace)
    }

    /// The instances of a service, by allocation.
    pub fn named<'a>(&'a self, namespace: &str, name: &'a str) -> impl Iterator<Item = &'a Registered> {
        let key: Name = (namespace.into(), name.into());
        let shard = self.0.names.get(shard_of_name(&key));
        let allocs = shard.and_then(|shard| shard.get(&key)).into_iter().flat_map(|allocs| allocs.iter());
        allocs.flat_map(move |alloc| self.of_alloc(*alloc).iter().filter(move |row| row.service.name == name))
    }

    /// In no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.0.shards.iter().flat_map(|shard| shard.values().flat_map(|rows| rows.iter()))
    }

    pub(crate) fn shard(&self, number: usize) -> &Shard {
        &self.0.shards[number]
    }

    /// The same part, not only an equal one.
    pub(crate) fn shares_shard(&self, other: &Services, number: usize) -> bool {
        let (own, other) = (self.0.shards.get(number), other.0.shards.get(number));
        own.zip(other).is_some_and(|(own, other)| Arc::ptr_eq(own, other))
    }

    pub(crate) fn change(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.0)
    }

    /// Zero for a cluster that never had a service: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.0.hash_with(self.0.sum)
    }

    /// What [`Services::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        self.0.hash_with(self.iter().fold(0, |sum: u64, row| sum.wrapping_add(hash(row))))
    }
}

impl Content {
    pub fn of_alloc(&self, alloc: AllocId) -> &[Registered] {
        let shard = self.shards.get(shard_of(alloc));
        shard.and_then(|shard| shard.get(&alloc)).map_or(&[], |rows| rows.as_slice())
    }

    /// All instances of an allocation from here on; none: it has no more.
    pub fn set(&mut self, alloc: AllocId, rows: Vec<Registered>) {
        if self.shards.is_empty() {
            self.shards = vec![Arc::default(); SHARDS];
            self.names = vec![Arc::default(); SHARDS];
        }
        let shard = Arc::make_mut(&mut self.shards[shard_of(alloc)]);
        let before = shard.remove(&alloc).unwrap_or_default();
        for row in before.iter() {
            self.sum = self.sum.wrapping_sub(hash(row));
            self.len -= 1;
        }
        for row in &rows {
            self.sum = self.sum.wrapping_add(hash(row));
            self.len += 1;
        }
        let (gone, come) = (names(&before), names(&rows));
        if !rows.is_empty() {
            shard.insert(alloc, Arc::new(rows));
        }
        gone.difference(&come).for_each(|name| self.forget_name(name, alloc));
        come.difference(&gone).for_each(|name| self.add_name(name, alloc));
        // As before the first one: there is one way to have none.
        if self.len == 0 {
            (self.shards, self.names) = (Vec::new(), Vec::new());
        }
    }

    fn add_name(&mut self, name: &Name, alloc: AllocId) {
        let names = Arc::make_mut(&mut self.names[shard_of_name(name)]);
        Arc::make_mut(names.entry(name.clone()).or_default()).insert(alloc);
    }

    fn forget_name(&mut self, name: &Name, alloc: AllocId) {
        let names = Arc::make_mut(&mut self.names[shard_of_name(name)]);
        let allocs = Arc::make_mut(names.get_mut(name).expect("each instance stands under its name"));
        allocs.remove(&alloc);
        if allocs.is_empty() {
            names.remove(name);
        }
    }

    fn hash_with(&self, sum: u64) -> u64 {
        if self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::Services as u64);
        hash.pair(self.changed.0, self.len as u64);
        hash.word(sum);
        hash.finish()
    }
}

pub(crate) fn shard_of(alloc: AllocId) -> usize {
    usize::from(alloc.0.0[0]) % SHARDS
}

fn shard_of_name((namespace, name): &Name) -> usize {
    let mut hash = StableHash::new(Domain::Services as u64);
    hash.text(namespace);
    hash.text(name);
    (hash.finish() % SHARDS as u64) as usize
}

fn names(rows: &[Registered]) -> BTreeSet<Name> {
    rows.iter().map(|row| (row.key.namespace.as_str().into(), row.service.name.as_str().into())).collect()
}

fn hash(row: &Registered) -> u64 {
    let mut hash = StableHash::new(Domain::Services as u64);
    hash.text(&row.service.id);
    hash.text(&row.service.name);
    hash.word(row.service.tags.len() as u64);
    row.service.tags.iter().for_each(|tag| hash.text(tag));
    hash.text(&row.service.address);
    hash.word(u64::from(row.service.port));
    hash.id(row.alloc.0);
    hash.text(&row.key.namespace);
    hash.text(&row.key.id);
    hash.id(row.node.0);
    hash.text(&row.datacenter);
    hash.pair(row.created.0, row.modified.0);
    hash.finish()
}

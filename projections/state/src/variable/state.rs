use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash, Time, Uuid};
use model::{SealedItems, VariableKey, VariableLock};
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// Versions of one variable that are kept, the one that holds included. Folds drop older ones: the number is frozen
/// within an epoch.
pub const VERSIONS_MAX: usize = 20;

/// A name with what stands under it. A clone copies pointers.
pub(crate) type VariableRow = (VariableKey, Arc<Variable>);

/// All variables; a clone is a pointer copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables(Arc<Content>);

/// A change copies the map, not the variables, if a snapshot holds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    rows: BTreeMap<VariableKey, Arc<Variable>>,
    pub changed: Index,
    /// What all versions take, sealed.
    bytes: u64,
    /// The sum of the hashes of all rows.
    sum: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    pub created: Index,
    pub created_at: Time,
    /// Other items, or another lock.
    pub modified: Index,
    pub modified_at: Time,
    pub lock: Option<VariableLock>,
    /// What it held, the newest last; never empty.
    pub versions: Vec<Version>,
}

/// The items that a variable had from some index on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The first one of a variable is 0.
    pub number: u64,
    pub items: SealedItems,
    pub index: Index,
    pub at: Time,
    /// The public id of the token of who set them; empty without one.
    pub accessor: String,
    /// The name of that token; may be empty.
    pub author: String,
}

impl Variable {
    /// What it holds.
    pub fn current(&self) -> &Version {
        self.versions.last().expect("a variable has a version")
    }

    pub fn version(&self, number: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.number == number)
    }

    /// One of its versions is.
    pub fn is_sealed_with(&self, key: Uuid) -> bool {
        self.versions.iter().any(|version| version.items.sealed.key == key)
    }

    fn bytes(&self) -> u64 {
        self.versions.iter().map(|version| version.items.sealed.bytes.len() as u64).sum()
    }
}

impl Variables {
    pub(crate) fn of(rows: Vec<VariableRow>, changed: Index) -> Variables {
        let mut content = Content { changed, ..Content::default() };
        for (key, variable) in rows {
            content.sum = content.sum.wrapping_add(hash(&key, &variable));
            content.bytes += variable.bytes();
            content.rows.insert(key, variable);
        }
        Variables(Arc::new(content))
    }

    pub fn len(&self) -> usize {
        self.0.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.rows.is_empty()
    }

    pub fn get(&self, key: &VariableKey) -> Option<&Variable> {
        self.0.rows.get(key).map(|row| &**row)
    }

    /// In the order of their namespaces and paths.
    pub fn iter(&self) -> impl Iterator<Item = (&VariableKey, &Variable)> {
        self.0.rows.iter().map(|(key, row)| (key, &**row))
    }

    /// Those of a namespace whose paths begin so, in the order of their paths.
    pub fn below<'a>(
        &'a self,
        namespace: &'a str,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a VariableKey, &'a Variable)> {
        let rows = self.0.rows.range(VariableKey::new(namespace, prefix)..);
        rows.map(|(key, row)| (key, &**row))
            .take_while(move |(key, _)| key.namespace == namespace && key.path.starts_with(prefix))
    }

    /// The last batch that changed one.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    /// What all versions take, sealed.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    pub(crate) fn rows(&self) -> &BTreeMap<VariableKey, Arc<Variable>> {
        &self.0.rows
    }

    pub(crate) fn change(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.0)
    }

    pub(crate) fn is_same(&self, other: &Variables) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Zero for a cluster that never had a variable: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.0.hash_with(self.0.sum)
    }

    /// What [`Variables::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        let sum = self.0.rows.iter().fold(0, |sum: u64, (key, row)| sum.wrapping_add(hash(key, row)));
        self.0.hash_with(sum)
    }
}

impl Content {
    pub fn set(&mut self, key: &VariableKey, variable: Option<Variable>) {
        if let Some(before) = self.rows.remove(key) {
            self.sum = self.sum.wrapping_sub(hash(key, &before));
            self.bytes -= before.bytes();
        }
        if let Some(variable) = variable {
            self.sum = self.sum.wrapping_add(hash(key, &variable));
            self.bytes += variable.bytes();
            self.rows.insert(key.clone(), Arc::new(variable));
        }
    }

    /// A copy of what stands there, to be changed and set again.
    pub fn copy(&self, key: &VariableKey) -> Option<Variable> {
        self.rows.get(key).map(|row| Variable::clone(row))
    }

    fn hash_with(&self, sum: u64) -> u64 {
        if self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::Variables as u64);
        hash.pair(self.changed.0, self.rows.len() as u64);
        hash.word(sum);
        hash.finish()
    }
}

fn hash(key: &VariableKey, variable: &Variable) -> u64 {
    let mut hash = StableHash::new(Domain::Variables as u64);
    hash.text(&key.namespace);
    hash.text(&key.path);
    hash.pair(variable.created.0, variable.created_at.0 as u64);
    hash.pair(variable.modified.0, variable.modified_at.0 as u64);
    match &variable.lock {
        None => hash.word(0),
        Some(lock) => {
            hash.word(1);
            hash.id(lock.id);
            hash.pair(lock.ttl.0 as u64, lock.delay.0 as u64);
        }
    }
    for version in &variable.versions {
        hash.pair(version.number, version.index.0);
        hash.word(version.at.0 as u64);
        hash.id(version.items.sealed.key);
        hash.bytes(&version.items.sealed.bytes);
        hash.bytes(&version.items.digest);
        hash.text(&version.accessor);
        hash.text(&version.author);
    }
    hash.finish()
}

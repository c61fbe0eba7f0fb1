//! Small tables of documents that are found by their names: node pools and namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Index, StableHash};
use model::Doc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::Domain;
use crate::moment::Moment;

/// A document that such a table may hold.
pub trait NamedDocument: Clone + PartialEq + Serialize + DeserializeOwned {
    /// Names that came with the cluster, whether or not there is a document of theirs.
    const BUILT_IN: &[&str];
    #[doc(hidden)]
    const DOMAIN: DocumentDomain;
}

/// Which of the digest's domains the documents are in.
#[derive(Clone, Copy, Debug)]
pub struct DocumentDomain(pub(crate) Domain);

/// A document as it was set, without what the servers know besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Named<D> {
    pub document: D,
    pub created: Index,
    pub modified: Index,
}

/// The documents that were set, by name.
#[derive(Clone, Debug)]
pub struct NamedTable<D> {
    by_name: Arc<BTreeMap<String, Named<D>>>,
    /// The last batch that created, changed or deleted one.
    pub changed: Index,
    /// Of all of them; `None` when it has to be computed anew.
    hash: Option<u64>,
}

impl<D> Default for NamedTable<D> {
    fn default() -> Self {
        NamedTable { by_name: Arc::default(), changed: Index::ZERO, hash: None }
    }
}

impl<D: PartialEq> PartialEq for NamedTable<D> {
    fn eq(&self, other: &Self) -> bool {
        self.changed == other.changed && self.by_name == other.by_name
    }
}

impl<D: NamedDocument> NamedTable<D> {
    /// A document that was set; `None` also for a built-in one that was never changed.
    pub fn get(&self, name: &str) -> Option<&Named<D>> {
        self.by_name.get(name)
    }

    pub fn exists(&self, name: &str) -> bool {
        D::BUILT_IN.contains(&name) || self.by_name.contains_key(name)
    }

    /// Every name, in their order.
    pub fn names(&self) -> Vec<&str> {
        let set = self.by_name.keys().map(String::as_str);
        let names: BTreeSet<&str> = set.chain(D::BUILT_IN.iter().copied()).collect();
        names.into_iter().collect()
    }

    pub(crate) fn new(by_name: BTreeMap<String, Named<D>>, changed: Index) -> Self {
        let mut table = NamedTable { by_name: Arc::new(by_name), changed, hash: None };
        table.settle_digest();
        table
    }

    pub(crate) fn all(&self) -> &BTreeMap<String, Named<D>> {
        &self.by_name
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by_name, &other.by_name) && self.changed == other.changed
    }

    pub(crate) fn upserted(&mut self, at: Moment, name: &str, document: &Doc) {
        let document = document.read();
        let all = self.change(at.index);
        let created = all.get(name).map_or(at.index, |before| before.created);
        all.insert(name.to_string(), Named { document, created, modified: at.index });
    }

    pub(crate) fn deleted(&mut self, at: Moment, name: &str) {
        self.change(at.index).remove(name).expect("the event names a document that was set");
    }

    /// The table now is that of another state: blocking queries on it return.
    pub(crate) fn restored(&mut self, now: Index) {
        self.change(now);
    }

    /// Nothing was created or changed after `limit`.
    pub(crate) fn bring_back_to(&mut self, limit: Index) {
        let changed = self.changed.min(limit);
        for named in self.change(changed).values_mut() {
            (named.created, named.modified) = (named.created.min(limit), named.modified.min(limit));
        }
    }

    /// Zero while there never was a document.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.unwrap_or_else(|| self.recomputed_hash())
    }

    pub(crate) fn settle_digest(&mut self) {
        if self.hash.is_none() {
            self.hash = Some(self.recomputed_hash());
        }
    }

    fn change(&mut self, now: Index) -> &mut BTreeMap<String, Named<D>> {
        (self.changed, self.hash) = (now, None);
        Arc::make_mut(&mut self.by_name)
    }

    fn recomputed_hash(&self) -> u64 {
        if self.by_name.is_empty() && self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(D::DOMAIN.0 as u64);
        hash.word(self.changed.0);
        for (name, named) in self.by_name.iter() {
            hash.text(name);
            hash.pair(named.created.0, named.modified.0);
            hash.bytes(&Doc::of(&named.document).0);
        }
        hash.finish()
    }
}

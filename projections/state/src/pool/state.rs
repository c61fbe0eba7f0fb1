use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash};
use model::document::NodePool;
use model::{Algorithm, Doc};
use serde::{Deserialize, Serialize};

use crate::digest::Domain;

/// Where nodes and jobs are that name no pool.
pub const DEFAULT: &str = "default";
/// Every node there is. No node can name it.
pub const ALL: &str = "all";

/// A pool as it was set, without what the servers know besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    pub document: NodePool,
    pub created: Index,
    pub modified: Index,
}

impl Pool {
    /// What nodes in it are chosen by, if not by the cluster's own.
    pub fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::from_word(&self.document.scheduler_configuration.as_ref()?.scheduler_algorithm)
    }

    pub fn memory_oversubscription(&self) -> Option<bool> {
        self.document.scheduler_configuration.as_ref()?.memory_oversubscription_enabled
    }
}

/// All pools but the two that are always there.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    pub(super) by_name: Arc<BTreeMap<String, Pool>>,
    /// When one of them last came, changed or went.
    pub changed: Index,
    /// Of all of them; `None` when it has to be computed anew.
    pub(super) hash: Option<u64>,
}

impl PartialEq for Pools {
    fn eq(&self, other: &Pools) -> bool {
        self.changed == other.changed && self.by_name == other.by_name
    }
}

impl Pools {
    /// A pool that was made; never one of those that are always there.
    pub fn get(&self, name: &str) -> Option<&Pool> {
        self.by_name.get(name)
    }

    pub fn exists(&self, name: &str) -> bool {
        name == DEFAULT || name == ALL || self.by_name.contains_key(name)
    }

    /// Every pool's name, in their order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.by_name.keys().map(String::as_str).chain([ALL, DEFAULT]).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn new(by_name: BTreeMap<String, Pool>, changed: Index) -> Pools {
        let mut pools = Pools { by_name: Arc::new(by_name), changed, hash: None };
        pools.settle_digest();
        pools
    }

    pub(crate) fn all(&self) -> &BTreeMap<String, Pool> {
        &self.by_name
    }

    pub(crate) fn is_same(&self, other: &Pools) -> bool {
        Arc::ptr_eq(&self.by_name, &other.by_name) && self.changed == other.changed
    }

    /// Zero for none that ever was.
    pub(crate) fn hash(&self) -> u64 {
        self.hash.unwrap_or_else(|| self.recomputed_hash())
    }

    pub(crate) fn settle_digest(&mut self) {
        if self.hash.is_none() {
            self.hash = Some(self.recomputed_hash());
        }
    }

    fn recomputed_hash(&self) -> u64 {
        if self.by_name.is_empty() && self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::Pools as u64);
        hash.word(self.changed.0);
        for (name, pool) in self.by_name.iter() {
            hash.text(name);
            hash.pair(pool.created.0, pool.modified.0);
            hash.bytes(&Doc::of(&pool.document).0);
        }
        hash.finish()
    }
}

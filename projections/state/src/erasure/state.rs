use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Index, StableHash, Uuid};
use model::VariableKey;
use serde::{Deserialize, Serialize};

use crate::domain::Domain;

/// Frozen: ids of keys stand in the log.
const KEY_CONTEXT: &str = "sojourn 2026 id of the key of a variable";

/// All of it; a clone is a pointer copy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Erasure {
    content: Arc<Content>,
    /// That of the content: what is sealed for a server may have megabytes, and is not hashed for each batch.
    hash: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// What variables are encrypted with now.
    pub tree: Option<Uuid>,
    /// Variables may have been encrypted with root keys before this index; zero if there were none.
    pub since: Index,
    pub holders: BTreeMap<Uuid, Holder>,
    /// In the order in which it happened; a variable may be forgotten again and again.
    pub forgotten: Vec<Forgotten>,
    pub changed: Index,
}

/// A server that has the tree, or is to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// What the tree is sealed for, so that it can get it: X25519.
    pub public: [u8; 32],
    /// The tree, until the server has said that it has it.
    pub sealed: Option<Vec<u8>>,
    /// The tree that it has said to have.
    pub has: Option<Uuid>,
    /// Nothing on its disk opens what was forgotten up to there.
    pub erased: Index,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    pub key: VariableKey,
    pub at: Index,
}

impl Erasure {
    /// What variables are encrypted with now; `None` before there is a tree.
    pub fn tree(&self) -> Option<Uuid> {
        self.content.tree
    }

    /// Variables that were written before this index are encrypted with root keys, and forgetting does not erase those; zero
    /// where there were none.
    pub fn since(&self) -> Index {
        self.content.since
    }

    pub fn holders(&self) -> &BTreeMap<Uuid, Holder> {
        &self.content.holders
    }

    /// In the order in which it happened.
    pub fn forgotten(&self) -> &[Forgotten] {
        &self.content.forgotten
    }

    pub fn changed(&self) -> Index {
        self.content.changed
    }

    /// The key that a variable of this name is encrypted with: another one each time after it was forgotten.
    pub fn key_of(&self, variable: &VariableKey) -> Uuid {
        key_id(variable, self.times(variable).count() as u64)
    }

    /// When the key was given up that this variable was encrypted with; `None` for the one it has, and for root keys.
    pub fn forgotten_at(&self, variable: &VariableKey, key: Uuid) -> Option<Index> {
        (0..).zip(self.times(variable)).find(|(nth, _)| key_id(variable, *nth) == key).map(|(_, at)| at)
    }

    /// When a variable of this name was forgotten last.
    pub fn last_of(&self, variable: &VariableKey) -> Option<Index> {
        self.times(variable).last()
    }

    /// Keys that are to be erased everywhere, with the index at which each was given up.
    pub fn given_up(&self) -> Vec<(Uuid, Index)> {
        let mut times: BTreeMap<&VariableKey, u64> = BTreeMap::new();
        let ids = self.content.forgotten.iter().map(|forgotten| {
            let nth = times.entry(&forgotten.key).or_default();
            let id = key_id(&forgotten.key, *nth);
            *nth += 1;
            (id, forgotten.at)
        });
        ids.collect()
    }

    /// Servers that may still be able to open what was forgotten at this index.
    pub fn pending(&self, at: Index) -> impl Iterator<Item = Uuid> {
        self.content.holders.iter().filter(move |(_, holder)| holder.erased < at).map(|(server, _)| *server)
    }

    fn times<'a>(&'a self, variable: &'a VariableKey) -> impl Iterator<Item = Index> {
        self.content.forgotten.iter().filter(move |one| one.key == *variable).map(|one| one.at)
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    pub(crate) fn change(&mut self, now: Index, change: impl FnOnce(&mut Content)) {
        let content = Arc::make_mut(&mut self.content);
        change(content);
        content.changed = now;
        self.hash = content.hash();
    }

    pub(crate) fn is_same(&self, other: &Erasure) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }

    /// Zero for a cluster that never had a tree: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// What [`Erasure::hash`] has to be.
    pub(crate) fn recomputed_hash(&self) -> u64 {
        self.content.hash()
    }
}

impl From<Content> for Erasure {
    fn from(content: Content) -> Erasure {
        let hash = content.hash();
        Erasure { content: Arc::new(content), hash }
    }
}

impl Content {
    fn hash(&self) -> u64 {
        if self.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(Domain::Erasure as u64);
        hash.pair(self.changed.0, self.since.0);
        hash.id(self.tree.unwrap_or(Uuid::NIL));
        hash.pair(self.holders.len() as u64, self.forgotten.len() as u64);
        for (server, holder) in &self.holders {
            hash.id(*server);
            hash.bytes(&holder.public);
            hash.bytes(holder.sealed.as_deref().unwrap_or_default());
            hash.id(holder.has.unwrap_or(Uuid::NIL));
            hash.word(holder.erased.0);
        }
        for forgotten in &self.forgotten {
            hash.text(&forgotten.key.namespace);
            hash.text(&forgotten.key.path);
            hash.word(forgotten.at.0);
        }
        hash.finish()
    }
}

/// All 128 bits count: whoever may choose a path must not find one that has the key of another variable.
fn key_id(variable: &VariableKey, times: u64) -> Uuid {
    let mut hash = blake3::Hasher::new_derive_key(KEY_CONTEXT);
    for text in [&variable.namespace, &variable.path] {
        hash.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hash.update(&times.to_le_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    Uuid(id)
}

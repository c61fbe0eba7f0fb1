use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Index, StableHash, Time, Uuid};
use model::SigningAlgorithm;
use serde::{Deserialize, Serialize};

/// The whole keyring; a clone is a pointer copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyring(Arc<Content>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    pub servers: BTreeMap<Uuid, ServerKey>,
    pub keys: BTreeMap<Uuid, RootKey>,
    /// What the cluster signs with now.
    pub active: Option<Uuid>,
    /// Former keys whose seals are being replaced by those of the active one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rekeying: BTreeSet<Uuid>,
    pub changed: Index,
}

/// What is sealed for this key can only be read by its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerKey {
    /// X25519.
    pub public: [u8; 32],
    pub announced: Index,
}

/// A key that the cluster signs with, or did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootKey {
    /// The public half: an RSA modulus and exponent, most significant byte first; or the 32 bytes of an Ed25519 key and
    /// no exponent.
    pub modulus: Vec<u8>,
    pub exponent: Vec<u8>,
    /// The private half for each server that can sign with it.
    pub sealed: BTreeMap<Uuid, Vec<u8>>,
    pub created_at: Time,
    pub created: Index,
    pub modified: Index,
}

impl RootKey {
    pub fn algorithm(&self) -> SigningAlgorithm {
        SigningAlgorithm::of_exponent(&self.exponent)
    }
}

impl Keyring {
    pub fn servers(&self) -> &BTreeMap<Uuid, ServerKey> {
        &self.0.servers
    }

    pub fn keys(&self) -> &BTreeMap<Uuid, RootKey> {
        &self.0.keys
    }

    /// What the cluster signs with now.
    pub fn active(&self) -> Option<(Uuid, &RootKey)> {
        let key = self.0.active?;
        Some((key, &self.0.keys[&key]))
    }

    /// How the cluster signs: a key that nobody asked to be different is like the one before.
    pub fn algorithm(&self) -> SigningAlgorithm {
        self.active().map_or_else(SigningAlgorithm::default, |(_, key)| key.algorithm())
    }

    /// Former keys whose seals are being replaced by those of the active one.
    pub fn rekeying(&self) -> &BTreeSet<Uuid> {
        &self.0.rekeying
    }

    /// When it changed last.
    pub fn changed(&self) -> Index {
        self.0.changed
    }

    pub(crate) fn content(&self) -> &Content {
        &self.0
    }

    pub(crate) fn change(&mut self) -> &mut Content {
        Arc::make_mut(&mut self.0)
    }

    /// How many there were.
    pub(crate) fn forget_private_halves(&mut self) -> usize {
        let sealed = self.keys().values().map(|key| key.sealed.len()).sum();
        if sealed > 0 {
            self.change().keys.values_mut().for_each(|key| key.sealed.clear());
        }
        sealed
    }

    pub(crate) fn is_same(&self, other: &Keyring) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Zero for a cluster that never had a key: its digests stay what they were.
    pub(crate) fn hash(&self) -> u64 {
        if self.0.changed == Index::ZERO {
            return 0;
        }
        let mut hash = StableHash::new(crate::domain::Domain::Keyring as u64);
        hash.word(self.0.changed.0);
        hash.id(self.0.active.unwrap_or(Uuid::NIL));
        for (server, key) in &self.0.servers {
            hash.id(*server);
            hash.bytes(&key.public);
            hash.word(key.announced.0);
        }
        for (id, key) in &self.0.keys {
            hash.id(*id);
            hash.bytes(&key.modulus);
            hash.bytes(&key.exponent);
            hash.pair(key.created.0, key.modified.0);
            hash.word(key.created_at.0 as u64);
            for (server, bytes) in &key.sealed {
                hash.id(*server);
                hash.bytes(bytes);
            }
        }
        self.0.rekeying.iter().for_each(|key| hash.id(*key));
        hash.finish()
    }
}

impl From<Content> for Keyring {
    fn from(content: Content) -> Keyring {
        Keyring(Arc::new(content))
    }
}

//! Variables: small secrets that the cluster keeps for its jobs. Their items stand nowhere in the clear.

use std::fmt;

use base::{Duration, Index, Uuid};
use rkyv::{Archive, Deserialize, Serialize};

use crate::keyring::SealedData;

/// A variable's name.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Archive,
    Serialize,
    Deserialize,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct VariableKey {
    pub namespace: String,
    /// May have slashes.
    pub path: String,
}

impl VariableKey {
    pub fn new(namespace: &str, path: &str) -> VariableKey {
        VariableKey { namespace: namespace.to_string(), path: path.to_string() }
    }
}

impl fmt::Display for VariableKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "variable {} in namespace {}", self.path, self.namespace)
    }
}

/// The items of a variable.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct SealedItems {
    pub sealed: SealedData,
    /// BLAKE3 of the items with a key that follows from the root key. Two seals of the same items differ, and whoever
    /// decides cannot open them: this says whether they are the same, and nothing to who has not the key.
    pub digest: [u8; 32],
}

impl SealedItems {
    /// The same items. Under another root key that cannot be said, and counts as a difference.
    pub fn is_same(&self, other: &SealedItems) -> bool {
        self.sealed.key == other.sealed.key && self.digest == other.digest
    }
}

/// Who has its id alone may change the variable.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct VariableLock {
    pub id: Uuid,
    /// How long it holds without being renewed; its holder has as long again.
    pub ttl: Duration,
    /// How long nobody else gets it after that.
    pub delay: Duration,
}

/// Gives a variable these items.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SetVariable {
    pub key: VariableKey,
    pub items: SealedItems,
    /// Only if it was last modified at that index; zero: only if there is no such variable.
    pub only_at: Option<Index>,
    /// Its lock, while it has one.
    pub lock: Option<Uuid>,
}

/// Locks a variable, and makes it if there is none. Who asks has drawn the id of the lock.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct AcquireVariableLock {
    pub key: VariableKey,
    pub items: SealedItems,
    /// A variable that is there keeps its items.
    pub keep_items: bool,
    pub lock: VariableLock,
}

/// Versions that one command seals anew at most: with the largest ones that is an entry of some megabytes.
pub const RESEALED_MAX: usize = 64;

/// The items of one version of a variable, sealed anew.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ResealVersion {
    pub key: VariableKey,
    pub version: u64,
    /// Only if the version has these items, under this root key: it is the digest of [`SealedItems`].
    pub before: [u8; 32],
    pub from: Uuid,
    pub items: SealedItems,
}

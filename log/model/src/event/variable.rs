//! What happened to variables. Their items are sealed.

use base::Uuid;
use rkyv::{Archive, Deserialize, Serialize};

use crate::variable::{SealedItems, VariableKey, VariableLock};

/// It has other items from here on: another version of it.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariableSet {
    pub key: VariableKey,
    pub items: SealedItems,
}

/// With all its versions.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariableDeleted {
    pub key: VariableKey,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariableLockAcquired {
    pub key: VariableKey,
    pub lock: VariableLock,
    /// Set with it; `None` where the variable keeps those that it has.
    pub items: Option<SealedItems>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariableLockReleased {
    pub key: VariableKey,
    pub lock: Uuid,
    /// Its holder did not renew it, and did not give it back.
    pub expired: bool,
}

/// The same items, sealed with another root key.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariablesResealed {
    pub versions: Vec<ResealedVersion>,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ResealedVersion {
    pub key: VariableKey,
    pub version: u64,
    pub items: SealedItems,
}

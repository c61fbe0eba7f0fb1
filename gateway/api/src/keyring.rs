//! The keys that the cluster signs with.

use serde::{Deserialize, Serialize};

/// `RootKeyMeta` of Nomad's API. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RootKeyMeta {
    #[serde(rename = "KeyID")]
    pub key_id: String,
    pub algorithm: String,
    pub create_time: i64,
    pub create_index: u64,
    pub modify_index: u64,
    /// `active` or `inactive`.
    pub state: String,
    /// Zero: it was in use from its beginning.
    pub publish_time: i64,
}

/// What a rotation answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyringRotated {
    pub key: RootKeyMeta,
    pub index: u64,
}

/// What the removal of a key answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyringDeleted {
    pub index: u64,
}

/// Public keys as RFC 7517 has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SigningKeySet {
    pub keys: Vec<WebKey>,
}

/// An RSA public key as RFC 7518 has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WebKey {
    #[serde(rename = "use")]
    pub usage: String,
    #[serde(rename = "kty")]
    pub key_type: String,
    #[serde(rename = "kid")]
    pub key_id: String,
    #[serde(rename = "alg")]
    pub algorithm: String,
    #[serde(rename = "n")]
    pub modulus: String,
    #[serde(rename = "e")]
    pub exponent: String,
}

//! The keys that the cluster signs with.

use serde::{Deserialize, Serialize};

/// `RootKeyMeta` of Nomad's API. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RootKeyMeta {
    #[serde(rename = "KeyID")]
    pub key_id: String,
    /// Of what it encrypts.
    pub algorithm: String,
    pub create_time: i64,
    pub create_index: u64,
    pub modify_index: u64,
    /// `active` or `inactive`.
    pub state: String,
    /// Zero: it was in use from its beginning.
    pub publish_time: i64,
}

/// A root key as Nomad has it, and how it signs, which Nomad does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SigningRootKey {
    #[serde(flatten)]
    pub meta: RootKeyMeta,
    pub signing_algorithm: String,
}

/// What a rotation answers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct KeyringRotated {
    pub key: SigningRootKey,
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

/// An RSA public key as RFC 7518 has it, or an Ed25519 key as RFC 8037 has it.
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
    #[serde(rename = "n", skip_serializing_if = "String::is_empty")]
    pub modulus: String,
    #[serde(rename = "e", skip_serializing_if = "String::is_empty")]
    pub exponent: String,
    #[serde(rename = "crv", skip_serializing_if = "String::is_empty")]
    pub curve: String,
    /// What an Ed25519 key consists of.
    #[serde(rename = "x", skip_serializing_if = "String::is_empty")]
    pub point: String,
}

/// What verifiers of workloads' tokens read about who signs them (OpenID Connect Discovery).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IssuerMetadata {
    pub issuer: String,
    pub jwks_uri: String,
    pub response_types_supported: Vec<String>,
    pub subject_types_supported: Vec<String>,
    pub id_token_signing_alg_values_supported: Vec<String>,
}

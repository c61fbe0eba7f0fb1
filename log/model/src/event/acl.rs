//! What happened to access control. No secret stands here in the clear: see [`TokenSecret`].

use base::{Time, Uuid};
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::keyring::TokenSecret;

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclPolicyUpserted {
    pub name: String,
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclPolicyDeleted {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclRoleUpserted {
    pub role: Uuid,
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclRoleDeleted {
    pub role: Uuid,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclTokenCreated {
    pub accessor: Uuid,
    /// Without its secret.
    pub document: Doc,
    pub secret: TokenSecret,
    /// The first token of a cluster, which nobody's rights were needed for.
    pub bootstrap: bool,
}

/// Its name, policies or roles changed.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclTokenUpdated {
    pub accessor: Uuid,
    pub document: Doc,
}

/// By an operator, or because they expired.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclTokensDeleted {
    pub accessors: Vec<Uuid>,
    pub expired: bool,
}

/// A secret that can be exchanged for that of the token, once. It replaces the one that was made for the token before.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct OneTimeTokenCreated {
    pub accessor: Uuid,
    /// BLAKE3 of the secret.
    pub digest: [u8; 32],
    pub expires: Time,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct OneTimeTokenExchanged {
    pub accessor: Uuid,
}

/// Nobody exchanged them in time.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct OneTimeTokensExpired {
    pub accessors: Vec<Uuid>,
}

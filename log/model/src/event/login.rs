//! How people log in. No secret stands here in the clear: see `AuthMethodRecord` and [`TokenSecret`].

use base::Uuid;
use rkyv::{Archive, Deserialize, Serialize};

use super::Doc;
use crate::keyring::TokenSecret;

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclAuthMethodUpserted {
    pub name: String,
    /// An `AuthMethodRecord`.
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclAuthMethodDeleted {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclBindingRuleUpserted {
    pub rule: Uuid,
    pub document: Doc,
}

#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclBindingRuleDeleted {
    pub rule: Uuid,
}

/// Somebody logged in and got a token.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct AclTokenIssuedByLogin {
    pub accessor: Uuid,
    /// Without its secret.
    pub document: Doc,
    pub secret: TokenSecret,
    /// The auth method that they came by.
    pub method: String,
    /// The binding rules that gave the token its rights.
    pub rules: Vec<Uuid>,
}

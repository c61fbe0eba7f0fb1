//! What happened to the key tree that variables are encrypted with, and to what was forgotten of it. The tree itself stands
//! here only sealed for keys that their servers destroy once they have opened it.

use base::{Index, Uuid};
use rkyv::{Archive, Deserialize, Serialize};

use crate::keyring::SealedKey;
use crate::variable::VariableKey;

/// A server that has no key tree says for which key it is to be sealed. It destroys the private half once it has the tree.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct KeyTreeRequested {
    pub server: Uuid,
    /// X25519.
    pub public: [u8; 32],
}

/// From here on variables are encrypted with keys of this tree.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct KeyTreeFounded {
    pub tree: Uuid,
    pub sealed: Vec<SealedKey>,
}

/// One more server can get the tree.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct KeyTreeShared {
    pub tree: Uuid,
    pub sealed: SealedKey,
}

/// The variable is gone, if it was there, and the key of whatever it held is to be erased everywhere. What is written under its name
/// from here on has another key.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct VariableForgotten {
    pub key: VariableKey,
}

/// The key is to be erased everywhere that the secrets of an access token or an auth method are encrypted with
/// ([`crate::token_secrets`], [`crate::auth_method_secrets`]). It has gone by a fact of its own.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct SecretsForgotten {
    pub of: VariableKey,
}

/// The server has a tree of its own, and nothing on its disk opens what was forgotten up to this index.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ForgottenErased {
    pub server: Uuid,
    pub up_to: Index,
}

/// The server left the cluster: nobody waits for what is on its disk.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct KeyTreeHolderRemoved {
    pub server: Uuid,
}

//! What happened to the keys that the cluster signs with. No private key stands here in the clear: each is sealed for
//! every server, and only that server's own key, which never leaves its disk, opens it.

use base::Uuid;
use rkyv::{Archive, Deserialize, Serialize};

use crate::keyring::SealedKey;

/// A server says for which key the cluster's secrets are to be sealed, so that it can read them.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct ServerKeyAnnounced {
    pub server: Uuid,
    /// X25519.
    pub public: [u8; 32],
}

/// From here on the cluster signs with this key. The one before it still proves what it signed.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RootKeyActivated {
    pub key: Uuid,
    /// The public half: an RSA modulus and exponent, most significant byte first; or the 32 bytes of an Ed25519 key and
    /// no exponent.
    pub modulus: Vec<u8>,
    pub exponent: Vec<u8>,
    pub sealed: Vec<SealedKey>,
}

/// One more server can sign with the key.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RootKeySealed {
    pub key: Uuid,
    pub sealed: SealedKey,
}

/// What the key signed proves nothing any more.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RootKeyRemoved {
    pub key: Uuid,
}

/// What these keys seal is to be sealed with the active one.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RootKeysRekeying {
    pub keys: Vec<Uuid>,
}

/// No variable is sealed with these keys any more.
#[derive(Clone, Debug, PartialEq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize)]
pub struct RootKeysRekeyed {
    pub keys: Vec<Uuid>,
}

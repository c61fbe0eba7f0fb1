use base::Uuid;
use rkyv::{Archive, Deserialize, Serialize};

/// A private key that only one server can open.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct SealedKey {
    pub server: Uuid,
    pub bytes: Vec<u8>,
}

/// What proves that somebody holds a token.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct TokenSecret {
    /// BLAKE3 of the secret, which is a random UUID: it recognizes the secret and does not give it away.
    pub digest: [u8; 32],
    /// The secret itself, to be shown again to those who may see it.
    pub sealed: SealedData,
}

/// Bytes that only servers which can open this root key can read.
#[derive(
    Clone, Debug, PartialEq, Eq, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct SealedData {
    pub key: Uuid,
    pub bytes: Vec<u8>,
}

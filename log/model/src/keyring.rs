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

/// Has the cluster sign with a new key.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ActivateRootKey {
    pub key: Uuid,
    /// The public half: an RSA modulus and exponent, most significant byte first; or the 32 bytes of an Ed25519 key and
    /// no exponent.
    pub modulus: Vec<u8>,
    pub exponent: Vec<u8>,
    pub sealed: Vec<SealedKey>,
    /// Only if this is the active key; nil: only if there is none. `None`: whichever is.
    pub only_after: Option<Uuid>,
    /// What former keys seal is to be sealed with this one.
    #[serde(default)]
    pub full: bool,
}

/// How a root key signs. No field says it, the public half does: an RSA key has a modulus and an exponent, an Ed25519 key
/// has 32 bytes, which stand in place of the modulus, and no exponent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA of 2,048 bits: what every verifier of tokens understands.
    #[default]
    Rs256,
    /// Ed25519: short signatures, made and checked quickly.
    EdDsa,
}

impl SigningAlgorithm {
    pub const ALL: [SigningAlgorithm; 2] = [SigningAlgorithm::Rs256, SigningAlgorithm::EdDsa];

    /// As tokens and sets of keys name it.
    pub const fn name(self) -> &'static str {
        match self {
            SigningAlgorithm::Rs256 => "RS256",
            SigningAlgorithm::EdDsa => "EdDSA",
        }
    }

    /// Of a key with this exponent.
    pub const fn of_exponent(exponent: &[u8]) -> SigningAlgorithm {
        if exponent.is_empty() { SigningAlgorithm::EdDsa } else { SigningAlgorithm::Rs256 }
    }
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

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

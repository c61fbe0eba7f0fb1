use rkyv::{Archive, Deserialize, Serialize};
use serde::de::DeserializeOwned;

use crate::partial;

/// A document as self-describing msgpack: unknown fields are skipped, missing ones take their zero value, and those
/// that have it are left out.
#[derive(
    Clone, PartialEq, Eq, Default, Archive, Serialize, Deserialize, serde::Serialize, serde::Deserialize,
)]
pub struct Doc(pub Vec<u8>);

impl Doc {
    pub fn of<T: serde::Serialize>(document: &T) -> Doc {
        Doc(partial::to_vec(document).expect("documents hold only what msgpack can write"))
    }

    /// # Panics
    /// If the bytes are not such a document: the log is damaged, or an event of another kind was taken for this one.
    pub fn read<T: DeserializeOwned>(&self) -> T {
        Doc::read_from(&self.0)
    }

    /// [`Doc::read`] of bytes that stand elsewhere.
    pub fn read_from<T: DeserializeOwned>(bytes: &[u8]) -> T {
        rmp_serde::from_slice(bytes).expect("a logged document reads back as what it was written as")
    }

    /// [`Doc::read_from`] of bytes that may be anything.
    pub fn try_read_from<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        rmp_serde::from_slice(bytes).ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for Doc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Doc({} bytes)", self.0.len())
    }
}

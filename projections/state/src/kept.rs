use std::fmt;
use std::sync::{Arc, OnceLock};

use base::StableHash;
use bytes::Bytes;
use model::Doc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::Domain;

/// A document as it was logged, and what it says: read when somebody first looks at it.
///
/// Most are never looked at: a fold, a restart and an image pass on bytes. A clone shares both. No bytes stand for
/// the zero value.
pub struct Kept<T>(Arc<Inner<T>>);

struct Inner<T> {
    /// Out of an image they are a part of its chunk, which stays in memory as long as any of them.
    bytes: Bytes,
    hash: u64,
    read: OnceLock<Box<T>>,
}

impl<T> Kept<T> {
    /// What [`Doc`] holds.
    pub fn new(bytes: impl Into<Bytes>) -> Kept<T> {
        let bytes = bytes.into();
        let mut hash = StableHash::new(Domain::Document as u64);
        hash.bytes(&bytes);
        Kept(Arc::new(Inner { hash: hash.finish(), bytes, read: OnceLock::new() }))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Of its bytes; the same on every server.
    pub fn hash(&self) -> u64 {
        self.0.hash
    }

    /// They are one document in memory, not only alike.
    pub fn is_shared(&self, other: &Kept<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Serialize> Kept<T> {
    pub fn of(document: &T) -> Kept<T> {
        Kept::new(Doc::of(document).0)
    }
}

impl<T: DeserializeOwned + Default> std::ops::Deref for Kept<T> {
    type Target = T;

    /// # Panics
    /// If the bytes are not such a document: the log is damaged.
    fn deref(&self) -> &T {
        let bytes = &self.0.bytes;
        self.0
            .read
            .get_or_init(|| if bytes.is_empty() { Box::default() } else { Box::new(Doc::read_from(bytes)) })
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Kept(self.0.clone())
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept::new(Bytes::new())
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared(other) || (self.0.hash == other.0.hash && self.0.bytes == other.0.bytes)
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} bytes, hash {:016x})", self.0.bytes.len(), self.0.hash)
    }
}

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base::StableHash;
use bytes::Bytes;
use model::Doc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::Domain;

/// A document as it was logged, decoded when its content is first used.
///
/// Most are never decoded: a fold, a restart and an image pass on bytes. A clone shares both. No bytes stand for
/// the zero value.
pub struct LazyDoc<T>(Arc<Inner<T>>);

struct Inner<T> {
    /// Out of an image they are a part of its chunk, which stays in memory as long as any of them.
    bytes: Bytes,
    hash: u64,
    read: OnceLock<Box<T>>,
}

impl<T> LazyDoc<T> {
    /// What [`Doc`] holds.
    pub fn new(bytes: impl Into<Bytes>) -> LazyDoc<T> {
        let bytes = bytes.into();
        let mut hash = StableHash::new(Domain::Document as u64);
        hash.bytes(&bytes);
        LazyDoc(Arc::new(Inner { hash: hash.finish(), bytes, read: OnceLock::new() }))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// Of its bytes; the same on every server.
    pub fn hash(&self) -> u64 {
        self.0.hash
    }

    /// Both are the same document in memory, not only equal.
    pub fn is_shared(&self, other: &LazyDoc<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Serialize> LazyDoc<T> {
    pub fn of(document: &T) -> LazyDoc<T> {
        LazyDoc::new(Doc::of(document).0)
    }
}

impl<T: DeserializeOwned + Default> std::ops::Deref for LazyDoc<T> {
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

impl<T: DeserializeOwned + Default + Clone> LazyDoc<T> {
    /// What it says, without keeping it decoded: for who looks at many and will not come back.
    ///
    /// # Panics
    /// As when it is used.
    pub fn peek(&self) -> Cow<'_, T> {
        match self.0.read.get() {
            Some(read) => Cow::Borrowed(read),
            None if self.0.bytes.is_empty() => Cow::Owned(T::default()),
            None => Cow::Owned(Doc::read_from(&self.0.bytes)),
        }
    }
}

impl<T> Clone for LazyDoc<T> {
    fn clone(&self) -> Self {
        LazyDoc(self.0.clone())
    }
}

impl<T> Default for LazyDoc<T> {
    fn default() -> Self {
        LazyDoc::new(Bytes::new())
    }
}

impl<T> PartialEq for LazyDoc<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared(other) || (self.0.hash == other.0.hash && self.0.bytes == other.0.bytes)
    }
}

impl<T> fmt::Debug for LazyDoc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LazyDoc({} bytes, hash {:016x})", self.0.bytes.len(), self.0.hash)
    }
}

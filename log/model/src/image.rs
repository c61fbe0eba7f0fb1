//! The state at one index as bytes: what a restart begins from, and what a server that is far behind is sent.
//!
//! An image is a list of chunks in the order they were made in. The log keeps them without looking inside.

use std::fmt;

use base::Index;
use bytes::Bytes;

/// The first half of the BLAKE3 hash of a chunk's bytes: equal ids, equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub [u8; 16]);

impl ChunkId {
    pub fn of(bytes: &[u8]) -> ChunkId {
        let hash = blake3::hash(bytes);
        ChunkId(hash.as_bytes()[..16].try_into().expect("a hash has 32 bytes"))
    }
}

impl fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkId({:032x})", u128::from_be_bytes(self.0))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub id: ChunkId,
    /// Left out when the image that was kept before has the same chunk.
    pub bytes: Option<Bytes>,
}

impl Chunk {
    pub fn new(bytes: Bytes) -> Chunk {
        Chunk { id: ChunkId::of(&bytes), bytes: Some(bytes) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The last batch it holds the outcome of.
    pub index: Index,
    pub chunks: Vec<Chunk>,
}

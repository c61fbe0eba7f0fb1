use std::sync::Arc;

use base::{Index, Time, Uuid};
use bytes::Bytes;
use model::{Autopilot, Chunk, Image, SchedulerRules};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operator {
    /// `None` before the first leader wrote down what it was configured with.
    pub autopilot: Option<Configured<Autopilot>>,
    /// `None` before the cluster was founded.
    pub scheduler: Option<Configured<SchedulerRules>>,
}

/// A configuration and when it was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configured<R> {
    pub rules: R,
    pub created: Index,
    pub modified: Index,
}

impl<R> Configured<R> {
    /// Its modify index; zero for none.
    pub fn index(configured: Option<&Configured<R>>) -> Index {
        configured.map_or(Index::ZERO, |configured| configured.modified)
    }
}

/// Largest piece of a state in bytes: several fit into one batch.
pub const PIECE_BYTES_MAX: usize = 8 << 20;

/// Largest state that can be restored, in bytes. All of it is kept in memory until it is complete.
pub const RESTORED_BYTES_MAX: u64 = 4 << 30;

/// The pieces so far. Empty when nothing is being restored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restoring {
    pub restore: Uuid,
    pub pieces: Arc<Vec<Piece>>,
    pub bytes: u64,
    /// When the last piece came.
    pub last: Index,
    pub last_time: Time,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    pub bytes: Bytes,
    /// The next piece belongs to the same chunk.
    pub continues: bool,
}

impl Restoring {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The pieces put together, as a state that was saved at `index`.
    pub fn image(&self, index: Index) -> Image {
        let of_one_chunk = |piece: &Piece, _: &Piece| piece.continues;
        let joined = |pieces: &[Piece]| match pieces {
            [whole] => whole.bytes.clone(),
            parts => parts.iter().flat_map(|part| part.bytes.iter().copied()).collect(),
        };
        Image { index, chunks: self.pieces.chunk_by(of_one_chunk).map(joined).map(Chunk::new).collect() }
    }
}

/// A chunk as the pieces that carry it. Whatever its length, the last one is shorter than a piece may be: only so is it
/// known to be the last.
pub fn pieces_of(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    (0..=chunk.len() / PIECE_BYTES_MAX).map(|number| {
        let rest = &chunk[number * PIECE_BYTES_MAX..];
        &rest[..rest.len().min(PIECE_BYTES_MAX)]
    })
}

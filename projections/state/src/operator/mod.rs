//! What operators set for the whole cluster.

mod fold;
mod restoring;
mod state;

pub use state::{Configured, Operator, PIECE_BYTES_MAX, Piece, RESTORED_BYTES_MAX, Restoring, pieces_of};

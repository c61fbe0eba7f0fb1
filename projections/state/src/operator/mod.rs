//! What operators set for the whole cluster.

pub(crate) mod decide;
mod fold;
pub(crate) mod restoring;
mod state;

pub use restoring::{PIECE_BYTES_MAX, RESTORED_BYTES_MAX, Restoring};
pub use state::{Configured, Operator};

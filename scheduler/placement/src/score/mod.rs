//! How good a node is for one more allocation, and the best of many.

mod rank;
mod tournament;

pub use rank::{Score, binpack};
pub use tournament::Tournament;

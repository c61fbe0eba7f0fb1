//! How good a node is, and which of many is best.

mod fit;
mod rank;
mod tournament;

pub use fit::{Column, Need, fit, fits};
pub use rank::Score;
pub use tournament::{OUT, Tournament};

//! How good a node is, and which of many is best.

mod fit;
mod node_score;
mod tournament;

pub use fit::{Column, Need, fit, fits};
pub use node_score::NodeScore;
pub use tournament::{OUT, Tournament};

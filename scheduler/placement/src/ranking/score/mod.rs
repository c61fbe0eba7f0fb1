//! The score of a node, and the best of many.

mod fit;
mod node_score;
mod tournament;

pub use fit::{Column, Need, fit, fits};
pub use node_score::NodeScore;
pub use tournament::{OUT, Tournament};

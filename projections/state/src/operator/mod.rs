//! What operators set for the whole cluster.

mod fold;
mod restoring;
mod state;

pub use state::{Configured, Operator, Restoring};

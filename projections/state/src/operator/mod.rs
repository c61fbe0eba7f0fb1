//! What operators set for the whole cluster.

pub(crate) mod decide;
mod fold;
mod state;

pub use state::{Configured, Operator};

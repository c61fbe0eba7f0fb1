//! Pools of nodes: two that came with the cluster, those that operators make, and those that nodes bring.

mod state;
mod view;

pub use state::{ALL, DEFAULT, Pool, Pools};
pub use view::document;

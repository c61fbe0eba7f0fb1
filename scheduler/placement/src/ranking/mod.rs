//! Which node is best for one more allocation, answered again after each placement.
//!
//! `node_columns` holds what all nodes have and use. `node_ranking` is the feasibility and the score of every node for
//! one set of requirements; it outlives evaluations (`memory`). `eval_ranking` is that ranking as one evaluation sees
//! it: with the job's own allocations and the plan in progress.

pub mod affinity;
pub mod eval_ranking;
pub mod memory;
pub mod node_columns;
pub mod node_ranking;
pub mod sampling;
pub mod score;
pub mod spread;
pub mod spread_groups;

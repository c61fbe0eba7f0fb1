//! What is asked of a cluster, from a seed: shared by all layers.

pub mod cursors;
pub mod jobs;
pub mod nodes;
pub mod operations;
pub mod variables;
pub mod volumes;

//! One pass over a job: decides each group, finds nodes for what is to be placed, and fills the plan.
//!
//! `service` is the pass over service and batch jobs, `system` that over jobs that run on every node.

pub mod per_node_placer;
pub mod placer;
pub mod plan_draft;
pub mod service;
pub mod system;

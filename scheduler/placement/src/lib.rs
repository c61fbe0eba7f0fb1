//! What should run where: `(state, evaluation, seed, now) -> plan and explanation`.
//!
//! Pure: no clock, no randomness but the seed's, no I/O, and nothing here changes a row. The result is a settlement,
//! which the leader checks and turns into events. Start with [`schedule`]. The folders, in the order in which they use
//! each other:
//!
//! * `feasibility`: what a group requires, and whether one node meets it.
//! * `preemption`: which allocations have to end so that a node has room.
//! * `ranking`: which of all nodes is best.
//! * `reconcile`: what becomes of the allocations of a group, and how many are to be placed.
//! * `pass`: one evaluation of a job from its groups to a plan.
//! * `explain`: why a plan is what it is, and what would change it.

#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::disallowed_methods, clippy::iter_over_hash_type))]

pub mod budget;
mod descriptions;
mod explain;
mod explanation;
mod feasibility;
pub mod lint;
mod pass;
mod preemption;
mod ranking;
mod reconcile;
mod schedule;
mod settings;

use state::alloc::reschedule;

pub use descriptions::ORIGINAL_BACK;
pub use explain::{
    DryRun, GROUPS_EXPLAINED_MAX, HINTS_MAX, NEAREST_SHOWN, Reasons, Registers, TRIES_MAX, against, dry_run,
    explain,
};
pub use explanation::{Explanation, GroupExplanation, UNPLACED_MAX, Unplaced};
pub use feasibility::volumes::node_for as node_for_volume;
pub use ranking::memory::Memory;
pub use schedule::{
    Attempts, GIVEN_UP, Outcome, give_up, is_quarantine, is_quarantined, max_attempts, quarantine, schedule,
    schedule_with,
};

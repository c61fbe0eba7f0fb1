//! What should run where: `(state, evaluation, seed, now) -> plan and explanation`.
//!
//! Pure: no clock, no chance but the seed's, no I/O, and nothing here changes a row. What it wants it puts
//! into a settlement, which the leader checks and turns into events. Start with [`schedule`]; the decision
//! for one group is `reconcile/`, the choice of a node is `field.rs`, a node's checks are `judge.rs`.

#[allow(dead_code, reason = "judging a node does not ask them yet")]
mod addresses;
mod ask;
mod candidates;
mod constraint;
#[allow(dead_code, reason = "judging a node does not ask them yet")]
mod cores;
#[allow(dead_code, reason = "judging a node does not ask them yet")]
mod devices;
mod diff;
mod explain;
mod field;
mod generic;
mod judge;
pub mod lint;
#[allow(dead_code, reason = "no configuration says where memory is oversubscribed yet")]
mod memory;
mod metrics;
#[allow(dead_code, reason = "judging a node does not ask them yet")]
mod networks;
mod plan;
mod ports;
#[allow(dead_code, unused_imports, reason = "judging a node does not ask them yet")]
mod preempt;
mod proposed;
mod reconcile;
mod reschedule;
mod schedule;
mod score;
mod system;
mod texts;
#[allow(dead_code, unused_imports, reason = "judging a node does not ask them yet")]
mod volumes;

pub use explain::{Explanation, GroupExplanation};
pub use schedule::{Outcome, give_up, max_attempts, schedule};

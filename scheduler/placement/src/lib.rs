//! What should run where: `(state, evaluation, seed, now) -> plan and explanation`.
//!
//! Pure: no clock, no chance but the seed's, no I/O, and nothing here changes a row. What it wants it puts
//! into a settlement, which the leader checks and turns into events. Start with [`schedule`]; the decision
//! for one group is `reconcile/`, the choice of a node is `field.rs`, a node's checks are `judge.rs`.

mod ask;
mod candidates;
mod constraint;
mod diff;
mod dry_run;
mod explain;
mod field;
mod generic;
mod hints;
mod judge;
pub mod lint;
mod metrics;
mod nearest;
mod plan;
mod ports;
mod proposed;
mod reconcile;
mod reschedule;
mod schedule;
mod score;
mod settings;
mod system;
mod texts;

pub use dry_run::{DryRun, dry_run};
pub use explain::{Explanation, GROUPS_EXPLAINED_MAX, GroupExplanation, Reasons, explain};
pub use hints::{HINTS_MAX, TRIES_MAX};
pub use nearest::NEAREST_SHOWN;
pub use schedule::{Outcome, give_up, max_attempts, schedule};
pub use settings::{Settings, settings};

//! What should run where: `(state, evaluation, seed, now) -> plan and explanation`.
//!
//! Pure: no clock, no chance but the seed's, no I/O, and nothing here changes a row. What it wants it puts
//! into a settlement, which the leader checks and turns into events. Start with [`schedule`]; the decision
//! for one group is `reconcile/`, the choice of a node is `field.rs`, a node's checks are `judge.rs`.

mod addresses;
mod affinity;
mod ask;
mod board;
mod candidates;
mod constraint;
mod cores;
mod devices;
mod diff;
mod dry_run;
mod evict;
mod explain;
mod field;
mod fixtures;
mod fleet;
mod generic;
mod hints;
mod judge;
mod lanes;
pub mod lint;
mod memory;
mod memory_max;
mod metrics;
mod nearest;
mod networks;
mod place;
mod place_per_node;
mod plan;
mod preempt;
mod property;
mod proposed;
mod reconcile;
mod rules;
mod sample;
mod schedule;
mod score;
mod settings;
mod shape;
mod spread;
mod system;
mod texts;
mod volumes;

use state::alloc::reschedule;

pub use dry_run::{DryRun, dry_run};
pub use explain::{Explanation, GROUPS_EXPLAINED_MAX, GroupExplanation, Reasons, explain};
pub use hints::{HINTS_MAX, TRIES_MAX};
pub use memory::Memory;
pub use nearest::NEAREST_SHOWN;
pub use schedule::{Attempts, Outcome, give_up, max_attempts, schedule, schedule_with};
pub use settings::{Settings, settings};

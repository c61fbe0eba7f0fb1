//! What would happen: the leader and a scheduler on a fork of a state, with a clock of their own.
//!
//! A fork is a copy of a state, which is a pointer copy. The same rules, controllers, scheduler and folds run on it as in a
//! cluster, until nothing is left to be done; nodes are ideal ones ([`nodes`]). Nothing is written to a log and no node
//! hears of it. No clock, chance or I/O: the same state, changes and time give the same result. Read [`forecast`], then
//! [`machine`], [`result`], and [`kept`] for forks that are read and go on later.

mod change;
mod kept;
mod machine;
mod nodes;
mod result;

use std::sync::Arc;

use base::{Duration, Time};
use model::document::ForkResult;
use state::State;

pub use change::{ADDED_MAX, Change, Refused, Unfound, find_datacenter, find_node};
pub use kept::KeptFork;

/// Most commands that are decided on a fork: at some microseconds each, half a minute.
pub const STEPS_MAX: u64 = 1_000_000;

/// Most evaluations that are scheduled on a fork.
pub const EVALUATIONS_MAX: u64 = 50_000;

/// Most allocations that a fork changes or adds: at some 2 KiB each, half a gigabyte at the most.
pub const ALLOCATIONS_MAX: usize = 250_000;

/// The longest time that passes on a fork's clock.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Items of a list of the result. The counts are of all.
pub const LISTED_MAX: usize = 10_000;

/// How long a fork goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until nothing is left to be done or waited for.
    Quiet,
    /// Until so much time has passed on its clock, at most [`DURATION_MAX`].
    Passed(Duration),
}

/// What a fork is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub changes: Vec<Change>,
    pub until: Until,
    /// The time that the fork begins at; not before that of its state.
    pub now: Time,
    /// Most allocations that a job may ask for.
    pub job_count_max: i64,
}

/// What the changes lead to. `go_on` is asked before each step: once it says no, the fork ends with what it has come to.
///
/// # Errors
/// [`Refused`]: one of the changes is not possible.
pub fn forecast(
    base: &Arc<State>,
    question: &Question,
    go_on: &dyn Fn() -> bool,
) -> Result<ForkResult, Refused> {
    Ok(KeptFork::open(base, question, go_on)?.result())
}

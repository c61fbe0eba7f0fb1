//! A fork between two runs: how far it has come, to be read and to be taken further.
//!
//! It is data alone, and shares what did not change with the state that it began with. The machines around it are made anew
//! for each run, as a new leader makes its own from the state. So a run that is refused or given up has changed nothing.

use std::sync::Arc;

use base::{Duration, Time};
use model::document::ForkResult;
use state::State;

use super::machine::{Ended, Fork, Touched};
use super::{Change, DURATION_MAX, Question, Refused, Until, result};

/// What a fork has come to.
#[derive(Clone, Debug)]
pub struct KeptFork {
    pub(super) base: Arc<State>,
    pub(super) state: Arc<State>,
    pub(super) job_count_max: i64,
    pub(super) begin: Time,
    pub(super) now: Time,
    pub(super) touched: Touched,
    pub(super) steps: u64,
    pub(super) evaluations: u64,
    /// Nodes that were added.
    pub(super) added: u32,
    pub(super) changes: Vec<Change>,
    pub(super) ended: Ended,
}

impl KeptFork {
    /// Makes the changes on a fork of the state, and runs it. `go_on` is asked before each step: once it says no, the run ends
    /// with what it has come to.
    ///
    /// # Errors
    /// [`Refused`]: one of the changes is not possible.
    pub fn open(
        base: &Arc<State>,
        question: &Question,
        go_on: &dyn Fn() -> bool,
    ) -> Result<KeptFork, Refused> {
        let now = question.now.max(base.time);
        let untouched = KeptFork {
            base: base.clone(),
            state: base.clone(),
            job_count_max: question.job_count_max,
            begin: now,
            now,
            touched: Touched::default(),
            steps: 0,
            evaluations: 0,
            added: 0,
            changes: Vec::new(),
            ended: Ended::Quiet,
        };
        untouched.changed(&question.changes, question.until, go_on)
    }

    /// The fork after further changes and another run; this one stays what it is. Bounds are of all runs together.
    ///
    /// # Errors
    /// [`Refused`]: one of the changes is not possible.
    pub fn changed(
        &self,
        changes: &[Change],
        until: Until,
        go_on: &dyn Fn() -> bool,
    ) -> Result<KeptFork, Refused> {
        let mut fork = Fork::open(self.clone());
        for (number, change) in changes.iter().enumerate() {
            fork.change(change).map_err(|why| Refused { number, why })?;
        }
        let ended = fork.run(until, go_on);
        let mut kept = fork.at;
        kept.ended = ended;
        kept.changes.extend_from_slice(changes);
        Ok(kept)
    }

    /// The state that it has come to.
    pub fn state(&self) -> &Arc<State> {
        &self.state
    }

    /// The state that it began with.
    pub fn base(&self) -> &Arc<State> {
        &self.base
    }

    /// The time that it began with.
    pub fn begin(&self) -> Time {
        self.begin
    }

    /// Why its last run went no further, as [`ForkResult`] has it.
    pub fn ended_by(&self) -> &'static str {
        result::word(self.ended)
    }

    /// The time on its clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How much more time may pass on its clock.
    pub fn time_left(&self) -> Duration {
        self.begin.plus(DURATION_MAX).since(self.now)
    }

    /// Changes that were made.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Allocations that it changed or added: most of what it takes besides the state that it began with.
    pub fn allocations(&self) -> usize {
        self.touched.allocs.len()
    }

    /// How it differs from the state that it began with.
    pub fn result(&self) -> ForkResult {
        result::of(self)
    }
}

//! Hands evaluations to workers: the most urgent first, one of each job at a time, again if a worker fails.
//!
//! What waits is known from state; only who has what, and since when, lives here, on the leader. Losing it
//! costs a repetition, never an evaluation.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use base::{Duration, Index, Rng, Time};
use model::{Command, EvalId, EvalStatus, JobType, Trigger};
use serde::{Deserialize, Serialize};
use state::eval::{Eval, EvalRow};
use state::job::JobRow;
use state::{Delta, State};

use super::controller::Controller;
use super::ready::Ready;

/// When plans were rejected too often, no new room has to appear: other schedulers were in the way. The
/// evaluation is tried again after this.
const CONFLICTS_SETTLE_IN: Duration = Duration::from_secs(60);

/// Without a delivery for so long, nobody schedules: workers are switched off, gone, or all at work on something
/// long. Whoever writes is not made to wait for that.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct BrokerSettings {
    /// How long a worker may be silent about what it was given.
    pub nack_timeout: Duration,
    /// Deliveries of one evaluation before it fails.
    pub delivery_limit: u32,
    /// Wait before the second delivery.
    pub first_delay: Duration,
    /// Wait before each further one, times the deliveries after the first.
    pub further_delay: Duration,
    /// A failed evaluation's job is looked at again after this, and up to five times as much more.
    pub follow_up_after: Duration,
    /// Once an evaluation has waited this long for a worker, what makes more of them has to wait as well; zero for never.
    pub lag_max: Duration,
}

/// What a server has: operators do not choose it.
impl Default for BrokerSettings {
    fn default() -> BrokerSettings {
        BrokerSettings {
            nack_timeout: Duration::from_secs(60),
            delivery_limit: 3,
            first_delay: Duration::from_secs(1),
            further_delay: Duration::from_secs(20),
            follow_up_after: Duration::from_secs(60),
            lag_max: Duration::from_secs(2),
        }
    }
}

/// An evaluation that was delivered to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub eval: EvalId,
    /// Proves who holds it.
    pub token: u64,
    /// The worker must look at a state at least this new.
    pub wait_index: Index,
}

/// Evaluations that a worker had.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    pub done: Vec<Delivery>,
    /// Somebody else should try.
    pub back: Vec<Delivery>,
}

/// Why a worker's word about an evaluation does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NotHeld {
    #[error("evaluation is not outstanding")]
    NotOutstanding,
    #[error("evaluation token does not match")]
    WrongToken,
}

/// How many evaluations are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BrokerStats {
    pub ready: usize,
    pub unacked: usize,
    pub delayed: usize,
}

#[derive(Debug)]
struct Outstanding {
    row: EvalRow,
    kind: JobType,
    token: u64,
    deadline: Time,
}

#[derive(Debug)]
pub struct Broker {
    settings: BrokerSettings,
    leading: bool,
    /// The state it knows: what a worker must have seen.
    seen: Index,
    ready: Ready,
    /// When a worker got something last.
    delivered: Option<Time>,
    /// The evaluation of each job that is ready or delivered.
    current: BTreeMap<JobRow, EvalRow>,
    unacked: BTreeMap<EvalId, Outstanding>,
    /// Deliveries so far, of evaluations that were delivered in vain.
    deliveries: BTreeMap<EvalId, u32>,
    delayed: BTreeSet<(Time, EvalRow)>,
}

impl Broker {
    pub fn new(settings: BrokerSettings) -> Broker {
        Broker {
            settings,
            leading: false,
            seen: Index::ZERO,
            ready: Ready::default(),
            delivered: None,
            current: BTreeMap::new(),
            unacked: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            delayed: BTreeSet::new(),
        }
    }

    /// The most urgent evaluations of these types, at most `max` and at most half of what is ready, so that another
    /// worker finds some too. None while operators have the broker pause: what workers have by then they finish, and what
    /// comes in waits.
    pub fn dequeue(
        &mut self,
        state: &State,
        types: &[JobType],
        max: usize,
        now: Time,
        rng: &mut Rng,
    ) -> Vec<Delivery> {
        if is_paused(state) {
            return Vec::new();
        }
        let most = self.ready.of_types(types).div_ceil(2).min(max);
        (0..most).map_while(|_| self.deliver(state, types, now, rng)).collect()
    }

    fn deliver(&mut self, state: &State, types: &[JobType], now: Time, rng: &mut Rng) -> Option<Delivery> {
        let ((kind, row), token) = (self.ready.pop(types)?, rng.next());
        self.delivered = Some(now);
        let eval = state.evals.get(row).id();
        let deadline = now.plus(self.settings.nack_timeout);
        self.unacked.insert(eval, Outstanding { row, kind, token, deadline });
        *self.deliveries.entry(eval).or_default() += 1;
        Some(Delivery { eval, token, wait_index: self.seen })
    }

    /// The worker still works on it.
    ///
    /// # Errors
    /// [`NotHeld`]: it was taken away, and what the worker found out must not be used.
    pub fn touch(&mut self, eval: EvalId, token: u64, now: Time) -> Result<(), NotHeld> {
        let deadline = now.plus(self.settings.nack_timeout);
        self.held(eval, token)?.deadline = deadline;
        Ok(())
    }

    /// The worker is done, and the log says so. The job's next evaluation may go.
    ///
    /// # Errors
    /// [`NotHeld`]: somebody else has it, or the end of the evaluation was seen first.
    pub fn ack(&mut self, state: &State, eval: EvalId, token: u64, now: Time) -> Result<(), NotHeld> {
        let row = self.held(eval, token)?.row;
        self.unacked.remove(&eval);
        self.deliveries.remove(&eval);
        self.release(state, state.evals.get(row).job, now);
        Ok(())
    }

    /// The worker gives it back. Delivered too often, it has to fail: the command says so.
    ///
    /// # Errors
    /// [`NotHeld`]: the worker did not have it.
    pub fn nack(
        &mut self,
        eval: EvalId,
        token: u64,
        now: Time,
        rng: &mut Rng,
    ) -> Result<Option<Command>, NotHeld> {
        let row = self.held(eval, token)?.row;
        self.unacked.remove(&eval);
        let deliveries = self.deliveries.get(&eval).copied().unwrap_or(0);
        if deliveries >= self.settings.delivery_limit {
            // The job stays taken until the log says that the evaluation failed.
            let more = rng.below(5 * self.settings.follow_up_after.0.max(1) as u64) as i64;
            let follow_up_at = now.plus(self.settings.follow_up_after).plus(Duration(more));
            return Ok(Some(Command::FailEval { eval, deliveries, follow_up_at }));
        }
        let further = i64::from(deliveries.saturating_sub(1));
        let delay = if further == 0 {
            self.settings.first_delay
        } else {
            Duration(self.settings.further_delay.0 * further)
        };
        self.delayed.insert((now.plus(delay), row));
        Ok(None)
    }

    pub fn stats(&self) -> BrokerStats {
        BrokerStats { ready: self.ready.len(), unacked: self.unacked.len(), delayed: self.delayed.len() }
    }

    /// What is ready and what workers have, by type.
    pub fn stats_by_type(&self) -> BTreeMap<JobType, (usize, usize)> {
        let mut by_type: BTreeMap<JobType, (usize, usize)> = BTreeMap::new();
        for (kind, ready) in self.ready.by_type() {
            by_type.entry(kind).or_default().0 = ready;
        }
        for outstanding in self.unacked.values() {
            by_type.entry(outstanding.kind).or_default().1 += 1;
        }
        by_type
    }

    /// How long the evaluation waits for a worker that waits the longest.
    pub fn longest_wait(&self, now: Time) -> Duration {
        self.ready.longest_wait(now)
    }

    /// Workers do what they can, and evaluations wait too long all the same.
    pub fn is_behind(&self, state: &State, now: Time) -> bool {
        let at_work = self.delivered.is_some_and(|last| now.since(last) < SCHEDULED_WITHIN);
        let lag_max = self.settings.lag_max;
        lag_max > Duration::ZERO && at_work && !is_paused(state) && self.longest_wait(now) >= lag_max
    }

    fn held(&mut self, eval: EvalId, token: u64) -> Result<&mut Outstanding, NotHeld> {
        let held = self.unacked.get_mut(&eval).ok_or(NotHeld::NotOutstanding)?;
        if held.token == token { Ok(held) } else { Err(NotHeld::WrongToken) }
    }

    /// Takes in an evaluation, now or when it may run.
    fn admit(&mut self, state: &State, row: EvalRow, eval: &Eval, now: Time) {
        if eval.status == EvalStatus::Pending && eval.facts.wait_until > now {
            self.delayed.insert((eval.facts.wait_until, row));
        } else if may_run(state, eval) {
            self.take_turn(row, eval, now);
        } else if eval.status == EvalStatus::Blocked && eval.facts.trigger == Trigger::MaxPlanAttempts {
            self.delayed.insert((eval.modify_time.plus(CONFLICTS_SETTLE_IN), row));
        }
    }

    /// It runs next for its job, unless another has the turn.
    fn take_turn(&mut self, row: EvalRow, eval: &Eval, now: Time) {
        if let Entry::Vacant(turn) = self.current.entry(eval.job) {
            turn.insert(row);
            self.ready.insert(row, eval, now);
        }
    }

    fn drop_ended(&mut self, state: &State, row: EvalRow, eval: &Eval, now: Time) {
        self.ready.remove(row, eval);
        self.delayed.retain(|(_, delayed)| *delayed != row);
        self.unacked.remove(&eval.id());
        self.deliveries.remove(&eval.id());
        if self.current.get(&eval.job) == Some(&row) {
            self.release(state, eval.job, now);
        }
    }

    /// The job's turn is free: the best of what waits takes it.
    fn release(&mut self, state: &State, job: JobRow, now: Time) {
        self.current.remove(&job);
        let live = state.jobs.get(job).live_evals.iter().map(|row| (*row, state.evals.get(*row)));
        let due = live.filter(|(_, eval)| may_run(state, eval) && eval.facts.wait_until <= now);
        let best = due.max_by_key(|(row, eval)| (eval.facts.priority, eval.modified, *row));
        if let Some((row, eval)) = best {
            self.admit(state, row, eval, now);
        }
    }
}

impl Controller for Broker {
    fn name(&self) -> &'static str {
        "broker"
    }

    /// This server leads: everything that waits in `state` waits here from now on.
    fn lead(&mut self, state: &State, now: Time) {
        self.follow();
        self.leading = true;
        self.seen = state.index;
        for (row, eval) in state.evals.iter() {
            self.admit(state, row, eval, now);
        }
    }

    /// This server does not lead: nothing is handed out, and nothing handed out counts.
    fn follow(&mut self) {
        *self = Broker::new(self.settings.clone());
    }

    /// A batch was committed.
    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        if !self.leading {
            return;
        }
        self.seen = state.index;
        for row in &delta.evals {
            let eval = state.evals.get(*row);
            if eval.status.is_terminal() {
                self.drop_ended(state, *row, eval, now);
            } else {
                self.admit(state, *row, eval, now);
            }
        }
        if delta.capacity {
            for (_, row) in state.evals.blocked() {
                self.admit(state, row, state.evals.get(row), now);
            }
        }
    }

    /// Workers keep what they have, nothing waits longer by it, and what is delivered again waits no longer: those are the delayed that have their
    /// job's turn. The others wait for a time that is written down.
    fn clock_moved(&mut self, by: Duration) {
        self.unacked.values_mut().for_each(|held| held.deadline = held.deadline.plus(by));
        self.delivered = self.delivered.map(|last| last.plus(by));
        self.ready.clock_moved(by);
        let again: BTreeSet<EvalRow> = self.current.values().copied().collect();
        let moved =
            |(due, row): (Time, EvalRow)| (if again.contains(&row) { due.plus(by) } else { due }, row);
        self.delayed = std::mem::take(&mut self.delayed).into_iter().map(moved).collect();
    }

    fn next_deadline(&self) -> Option<Time> {
        let outstanding = self.unacked.values().map(|held| held.deadline).min();
        let delayed = self.delayed.first().map(|(due, _)| *due);
        outstanding.into_iter().chain(delayed).min()
    }

    /// Takes back what workers are silent about, and wakes what is due.
    fn expire(&mut self, state: &State, now: Time, rng: &mut Rng) -> Vec<Command> {
        let silent = self.unacked.iter().filter(|(_, held)| held.deadline <= now);
        let silent: Vec<(EvalId, u64)> = silent.map(|(eval, held)| (*eval, held.token)).collect();
        let failed =
            silent.into_iter().filter_map(|(eval, token)| self.nack(eval, token, now, rng).ok().flatten());
        let commands = failed.collect();
        while let Some((_, row)) = self.delayed.first().copied().filter(|(due, _)| *due <= now) {
            self.delayed.pop_first();
            let eval = state.evals.get(row);
            if self.current.get(&eval.job) == Some(&row) {
                // Delivered before, it kept its job's turn. Room may have appeared before its time came: a worker has it.
                if !self.unacked.contains_key(&eval.id()) {
                    self.ready.insert(row, eval, now);
                }
            } else if !eval.status.is_terminal() {
                self.take_turn(row, eval, now);
            }
        }
        commands
    }
}

fn is_paused(state: &State) -> bool {
    state.scheduler().is_some_and(|rules| rules.pause_eval_broker)
}

/// It waits for a worker, or for room that has appeared.
fn may_run(state: &State, eval: &Eval) -> bool {
    match eval.status {
        EvalStatus::Pending => true,
        EvalStatus::Blocked => eval.may_be_unblocked(state),
        EvalStatus::Complete | EvalStatus::Failed | EvalStatus::Canceled => false,
    }
}

//! When a failed or cut-off allocation may be replaced: policy arithmetic over its predecessors.
//!
//! Nothing is stored for this: who replaced whom says it.

use std::fmt;

use base::{Duration, Time};
use model::document::{RescheduleEvent, ReschedulePolicy, RescheduleTracker};
use model::{AllocId, ClientStatus, Desired, EvalId};

use super::endings::{MIGRATING, RESCHEDULED, UPDATING};
use super::state::Alloc;
use crate::State;
use crate::eval::Eval;
use crate::row::NodeRow;

/// Due times closer than this to the first of them share a follow-up evaluation.
pub const WINDOW: Duration = Duration::from_secs(5);

/// Most predecessors that are looked at. Delays reach any sensible maximum long before.
const CHAIN_MAX: usize = 32;

/// Most attempts that are shown of a policy without a limit.
const SHOWN_MAX: usize = 6;

/// A replacement that has already been made on the way to an allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Past {
    pub time: Time,
    pub alloc: AllocId,
    pub node: NodeRow,
    pub delay: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    Constant,
    Exponential,
    Fibonacci,
}

/// A group's reschedule policy, with what it does not say as zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    unlimited: bool,
    attempts: i64,
    interval: Duration,
    delay: Duration,
    growth: Growth,
    max_delay: Duration,
}

impl Policy {
    /// The policy the allocation was placed under.
    pub fn of(alloc: &Alloc) -> Option<Policy> {
        let group = alloc.version.group(&alloc.group)?;
        group.reschedule_policy.as_ref().map(Policy::read)
    }

    fn read(document: &ReschedulePolicy) -> Policy {
        let span = |span: Option<model::document::Duration>| span.map_or(Duration::ZERO, |span| span.0);
        Policy {
            unlimited: document.unlimited.unwrap_or(false),
            attempts: document.attempts.unwrap_or(0),
            interval: span(document.interval),
            delay: span(document.delay),
            growth: match document.delay_function.as_deref() {
                Some("exponential") => Growth::Exponential,
                Some("fibonacci") => Growth::Fibonacci,
                _ => Growth::Constant,
            },
            max_delay: span(document.max_delay),
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.unlimited || self.attempts > 0
    }

    /// Attempts that the policy allows within its interval; `None` without a limit.
    pub fn attempts_max(&self) -> Option<u64> {
        (!self.unlimited).then(|| u64::try_from(self.attempts).unwrap_or(0))
    }

    /// Attempts that count at that time.
    pub fn attempts_used(&self, past: &[Past], failure: Time) -> u64 {
        let counts = |event: &&Past| self.unlimited || failure.since(event.time) < self.interval;
        past.iter().filter(counts).count() as u64
    }

    /// The delay before the next attempt. `failure` is when the allocation failed or was last known to run.
    fn next_delay(&self, past: &[Past], failure: Time) -> Duration {
        let Some(last) = past.last() else { return self.delay };
        let delay = match self.growth {
            Growth::Constant => return self.delay,
            Growth::Exponential => Duration(last.delay.0.saturating_mul(2)),
            Growth::Fibonacci => match past {
                [.., before, _] if before.delay == self.max_delay && last.delay == self.delay => last.delay,
                [.., before, _] => Duration(before.delay.0.saturating_add(last.delay.0)),
                _ => self.delay,
            },
        };
        if self.max_delay <= Duration::ZERO || delay <= self.max_delay {
            delay
        } else if failure.since(last.time) > self.max_delay {
            self.delay
        } else {
            self.max_delay
        }
    }

    /// Whether the policy allows another attempt.
    fn is_eligible(&self, past: &[Past], failure: Time) -> bool {
        if self.unlimited {
            return true;
        }
        self.has_attempts(past, failure)
            && (past.is_empty() || self.next_delay(past, failure) < self.interval)
    }

    /// Whether attempts are left within the interval, whatever the delay.
    fn has_attempts(&self, past: &[Past], failure: Time) -> bool {
        let attempted = past.iter().filter(|event| failure.since(event.time) < self.interval).count();
        self.unlimited || i64::try_from(attempted).unwrap_or(i64::MAX) < self.attempts
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_enabled() {
            return f.write_str("never");
        }
        match self.attempts_max() {
            None => f.write_str("without a limit")?,
            Some(most) => write!(f, "at most {most} times in {}", self.interval)?,
        }
        let growth = match self.growth {
            Growth::Constant => return write!(f, ", each after {}", self.delay),
            Growth::Exponential => "exponential",
            Growth::Fibonacci => "fibonacci",
        };
        write!(f, ", first after {}, {growth} up to {}", self.delay, self.max_delay)
    }
}

/// When the allocation may be replaced, if it may, for something that happened to it at `failure`.
pub fn due(state: &State, alloc: &Alloc, failure: Time) -> Option<Time> {
    let policy = Policy::of(alloc)?;
    let past = past(state, alloc);
    policy.is_eligible(&past, failure).then(|| failure.plus(policy.next_delay(&past, failure)))
}

/// [`due`] for an allocation that ended by itself.
pub fn due_after_failure(state: &State, alloc: &Alloc) -> Option<Time> {
    let policy = Policy::of(alloc)?;
    let ended = matches!(alloc.client, ClientStatus::Failed | ClientStatus::Lost);
    let asked = alloc.version.kind.is_batch() && alloc.transition.reschedule;
    let wanted = alloc.desired != Desired::Stop && (ended || asked) && policy.is_enabled();
    wanted.then(|| due(state, alloc, alloc.last_event_time())).flatten()
}

/// The evaluation that the allocation waits for. A failed one does not store it: it follows from when it is due.
pub fn follow_up(state: &State, alloc: &Alloc) -> Option<EvalId> {
    if alloc.follow_up.is_some() || alloc.client != ClientStatus::Failed || alloc.is_stopping() {
        return alloc.follow_up;
    }
    if successors(state, alloc).any(|successor| !successor.is_stopping()) {
        return None;
    }
    let due = due_after_failure(state, alloc)?;
    let live = state.jobs.get(alloc.job).live_evals.iter().map(|row| state.evals.get(*row));
    let mut waiting = live.filter(|eval| eval.reschedules_at(due));
    waiting.next().map(Eval::id)
}

/// The allocations that replaced one, nearest first.
pub fn successors<'a>(state: &'a State, alloc: &Alloc) -> impl Iterator<Item = &'a Alloc> {
    let next = move |alloc: &Alloc| alloc.next.and_then(|id| state.allocs.lookup(id));
    // A chain cannot be longer than the job has allocations. The bound only guards against a damaged log.
    let most = state.jobs.get(alloc.job).allocs.len();
    std::iter::successors(next(alloc), move |alloc| next(alloc)).take(most)
}

/// Whether the failure of the allocation is worth an evaluation.
pub fn may_be_rescheduled(state: &State, alloc: &Alloc) -> bool {
    let policy = Policy::of(alloc).filter(|_| !alloc.version.kind.is_per_node());
    policy.is_some_and(|policy| policy.has_attempts(&past(state, alloc), alloc.last_event_time()))
}

/// The replacements that led to the allocation, oldest first.
///
/// A predecessor that failed, or was cut off when its successor was placed, was
/// rescheduled; one that was lost, moved or updated was not, and the count begins anew after it.
pub fn past(state: &State, alloc: &Alloc) -> Vec<Past> {
    let mut chain = Vec::new();
    let mut successor = alloc;
    while chain.len() < CHAIN_MAX {
        let Some(previous) = successor.previous.and_then(|id| state.allocs.lookup(id)) else { break };
        let Some(failure) = rescheduled_at(previous, successor) else { break };
        chain.push((successor.create_time, failure, previous));
        successor = previous;
    }
    let mut past: Vec<Past> = Vec::with_capacity(chain.len());
    for (time, failure, previous) in chain.into_iter().rev() {
        let delay = Policy::of(previous).map_or(Duration::ZERO, |policy| policy.next_delay(&past, failure));
        past.push(Past { time, alloc: previous.id, node: previous.node, delay });
    }
    past
}

/// When the predecessor failed or was cut off, if that is why its successor was placed.
fn rescheduled_at(previous: &Alloc, successor: &Alloc) -> Option<Time> {
    let made_room = [UPDATING, MIGRATING].contains(&&*previous.desired_description);
    if made_room && previous.alloc_modified <= successor.created {
        return None;
    }
    if previous.client == ClientStatus::Failed && &*previous.desired_description == RESCHEDULED {
        return Some(previous.last_event_time());
    }
    let until_then = previous.states.iter().take_while(|known| known.time <= successor.create_time);
    let last = until_then.last()?;
    (last.status == ClientStatus::Unknown).then_some(last.time)
}

/// The reschedule attempts that led to the allocation, as Nomad's API shows them; `None` without any.
pub(super) fn tracker(state: &State, alloc: &Alloc) -> Option<RescheduleTracker> {
    let past = past(state, alloc);
    let successor = alloc.next.and_then(|id| state.allocs.lookup(id));
    let replaced = successor.is_some_and(|next| rescheduled_at(alloc, next).is_some());
    if past.is_empty() && !replaced {
        return None;
    }
    let event = |past: &Past| RescheduleEvent {
        reschedule_time: past.time.0,
        prev_alloc_id: past.alloc.to_string(),
        prev_node_id: state.nodes.cold(past.node).id.to_string(),
        delay: past.delay.into(),
    };
    let events = shown(state, &past).iter().map(event).collect();
    Some(RescheduleTracker { events, last_reschedule: "ok".to_string() })
}

/// The attempts that are shown: those that counted when the newest replacement was made, under the policy of what
/// it replaced.
fn shown<'p>(state: &State, past: &'p [Past]) -> &'p [Past] {
    let Some(newest) = past.last() else { return past };
    let policy = state.allocs.lookup(newest.alloc).and_then(Policy::of);
    let older = past.len() - 1;
    let from = match policy {
        Some(policy) if !policy.unlimited => {
            let forgotten = |event: &&Past| newest.time.since(event.time) > policy.interval;
            past[..older].iter().take_while(forgotten).count()
        }
        Some(_) | None => past.len().saturating_sub(SHOWN_MAX),
    };
    &past[from..]
}

/// Nodes on which a replacement of `previous` gets a score penalty: it or a predecessor failed there.
pub fn penalties(state: &State, previous: &Alloc) -> Vec<NodeRow> {
    let failed = (previous.client == ClientStatus::Failed).then_some(previous.node);
    let mut rows: Vec<NodeRow> = past(state, previous).iter().map(|past| past.node).chain(failed).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(growth: Growth, delay: i64, max_delay: i64) -> Policy {
        Policy {
            unlimited: true,
            attempts: 0,
            interval: Duration::ZERO,
            delay: Duration::from_secs(delay),
            growth,
            max_delay: Duration::from_secs(max_delay),
        }
    }

    fn past(delays: &[i64]) -> Vec<Past> {
        let event = |delay: &i64| Past {
            time: Time::from_secs(1000),
            alloc: AllocId::default(),
            node: NodeRow(0),
            delay: Duration::from_secs(*delay),
        };
        delays.iter().map(event).collect()
    }

    fn next(policy: Policy, delays: &[i64], since_last: i64) -> i64 {
        policy.next_delay(&past(delays), Time::from_secs(1000 + since_last)).as_millis() / 1000
    }

    /// E14, E15.
    #[test]
    fn exponential_delays_double_up_to_the_maximum_and_reset_after_calm() {
        let unbounded = policy(Growth::Exponential, 5, 0);
        assert_eq!(next(unbounded, &[], 0), 5);
        assert_eq!(next(unbounded, &[5, 10, 20, 40, 80], 0), 160);
        let bounded = policy(Growth::Exponential, 5, 60);
        assert_eq!(next(bounded, &[40], 10), 60);
        assert_eq!(next(bounded, &[40], 61), 5);
    }

    /// E16, E17.
    #[test]
    fn fibonacci_delays_add_the_last_two_and_restart_after_the_maximum() {
        let fibonacci = policy(Growth::Fibonacci, 5, 0);
        assert_eq!(next(fibonacci, &[5], 0), 5);
        assert_eq!(next(fibonacci, &[5, 5], 0), 10);
        assert_eq!(next(fibonacci, &[5, 10], 0), 15);
        assert_eq!(next(fibonacci, &[65, 105], 0), 170);
        assert_eq!(next(policy(Growth::Fibonacci, 5, 100), &[100, 5], 0), 5);
    }

    /// E18.
    #[test]
    fn constant_delays_know_no_maximum() {
        assert_eq!(next(policy(Growth::Constant, 15, 10), &[15, 15, 15, 15], 0), 15);
    }

    /// E08-E12.
    #[test]
    fn attempts_are_counted_within_the_interval() {
        let limited = |attempts, interval| Policy {
            unlimited: false,
            attempts,
            interval: Duration::from_secs(interval),
            ..policy(Growth::Constant, 5, 0)
        };
        let eligible = |policy: Policy, delays: &[i64], since_last: i64| {
            policy.is_eligible(&past(delays), Time::from_secs(1000 + since_last))
        };
        let day = 24 * 3600;
        assert!(!eligible(limited(1, day), &[5], 3600));
        assert!(eligible(limited(1, day), &[5], 25 * 3600));
        assert!(eligible(limited(2, 600), &[5, 5], 600));
        assert!(!eligible(limited(3, 5), &[5], 1));
        assert!(eligible(limited(1, day), &[], 0));
        assert!(!eligible(limited(0, day), &[], 0));
    }
}

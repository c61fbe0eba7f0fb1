//! Watches the locks of variables: has those released that nobody renews.

use std::collections::BTreeMap;

use base::{Duration, Rng, Time, Uuid};
use model::{Command, VariableKey, VariableLock};
use serde::{Deserialize, Serialize};
use state::{Delta, State};

use super::controller::Controller;
use super::deadlines::Deadlines;

/// A release that is not seen in the log after this long is asked for again; twice as long after each time.
const AGAIN: Duration = Duration::from_secs(10);
const DOUBLED_MAX: u32 = 6;

/// The deadlines of all locks, by their ids.
#[derive(Debug, Default)]
pub struct Locks {
    held: BTreeMap<Uuid, Held>,
    of: BTreeMap<VariableKey, Uuid>,
    deadlines: Deadlines<Uuid>,
}

#[derive(Debug)]
struct Held {
    key: VariableKey,
    lock: VariableLock,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It may be renewed.
    Held,
    /// Nobody renewed it in time. Who held it may not know that yet, so nobody else gets it before the delay is over.
    Lost,
    /// Its release was asked for so many times.
    Releasing(u32),
}

/// Why a lock is not renewed; Nomad's clients know these words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NotRenewed {
    #[error("variable doesn't exist")]
    Unknown,
    #[error("variable doesn't hold a lock")]
    Unlocked,
    /// Somebody else has it, or it was lost.
    #[error("attempting to modify locked variable")]
    Foreign,
}

impl Locks {
    /// It holds for its whole time again. Nothing is written: only the leader counts.
    ///
    /// # Errors
    /// [`NotRenewed`].
    pub fn renew(
        &mut self,
        state: &State,
        key: &VariableKey,
        lock: Uuid,
        now: Time,
    ) -> Result<(), NotRenewed> {
        let variable = state.variables.get(key).ok_or(NotRenewed::Unknown)?;
        let own = variable.lock.ok_or(NotRenewed::Unlocked)?;
        let is_lost = self.held.get(&lock).is_some_and(|held| held.phase != Phase::Held);
        if own.id != lock || is_lost {
            return Err(NotRenewed::Foreign);
        }
        self.watch(key, own, now);
        Ok(())
    }

    /// Locks that are watched.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn watch(&mut self, key: &VariableKey, lock: VariableLock, now: Time) {
        self.of.insert(key.clone(), lock.id);
        self.held.insert(lock.id, Held { key: key.clone(), lock, phase: Phase::Held });
        // As long again as its holder was promised: its renewal may be late.
        self.deadlines.set(lock.id, now.plus(Duration(lock.ttl.0.saturating_mul(2))));
    }

    fn forget(&mut self, key: &VariableKey) {
        if let Some(lock) = self.of.remove(key) {
            self.held.remove(&lock);
            self.deadlines.forget(lock);
        }
    }
}

impl Controller for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    /// A new leader does not know which lock was renewed when: each gets its whole time.
    fn lead(&mut self, state: &State, now: Time) {
        self.follow();
        for (key, variable) in state.variables.iter() {
            if let Some(lock) = variable.lock {
                self.watch(key, lock, now);
            }
        }
    }

    fn follow(&mut self) {
        self.held.clear();
        self.of.clear();
        self.deadlines.clear();
    }

    fn observe(&mut self, state: &State, delta: &Delta, now: Time) {
        for key in &delta.variables {
            let lock = state.variables.get(key).and_then(|variable| variable.lock);
            match lock {
                Some(lock) if self.of.get(key) == Some(&lock.id) => {}
                Some(lock) => {
                    self.forget(key);
                    self.watch(key, lock, now);
                }
                None => self.forget(key),
            }
        }
    }

    /// Nobody held a lock for any longer by that.
    fn clock_moved(&mut self, by: Duration) {
        self.deadlines.shift(by);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next()
    }

    fn expire(&mut self, _: &State, now: Time, _: &mut Rng) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(id) = self.deadlines.take_due(now) {
            let held = self.held.get_mut(&id).expect("a deadline is that of a lock that is watched");
            let (next, wait) = match held.phase {
                Phase::Held if held.lock.delay > Duration::ZERO => (Phase::Lost, held.lock.delay),
                Phase::Held | Phase::Lost => (Phase::Releasing(1), AGAIN),
                Phase::Releasing(times) => {
                    let wait = Duration(AGAIN.0 << times.min(DOUBLED_MAX));
                    (Phase::Releasing(times + 1), wait)
                }
            };
            held.phase = next;
            self.deadlines.set(id, now.plus(wait));
            if next != Phase::Lost {
                commands.push(Command::ExpireVariableLock { key: held.key.clone(), lock: id });
            }
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use base::Index;
    use model::event::{Event, VariableLockAcquired, VariableLockReleased};
    use model::{Actor, CommandRecord, RequestId, SealedData, SealedItems};
    use state::Moment;

    use super::*;

    const TTL: i64 = 10;
    const DELAY: i64 = 5;

    fn key() -> VariableKey {
        VariableKey::new("default", "lock")
    }

    fn id(number: u128) -> Uuid {
        Uuid::from(number)
    }

    fn fold(state: &mut State, event: impl Into<Event>) -> Delta {
        let at = Moment { index: Index(state.index.0 + 1), time: Time::ZERO, epoch: model::EPOCH };
        let record = CommandRecord { request: RequestId::default(), kind: 0, actor: Actor::ANONYMOUS };
        let mut delta = Delta::default();
        state.absorb(at, &record, [event.into()].iter(), &mut delta);
        state.seal(at, &delta);
        delta
    }

    fn acquired(lock: u128, items: bool) -> VariableLockAcquired {
        let (ttl, delay) = (Duration::from_secs(TTL), Duration::from_secs(DELAY));
        let sealed = SealedData { key: Uuid::NIL, bytes: vec![1] };
        let items = items.then_some(SealedItems { sealed, digest: [0; 32] });
        VariableLockAcquired { key: key(), lock: VariableLock { id: id(lock), ttl, delay }, items }
    }

    fn expire(locks: &mut Locks, second: i64) -> Vec<Command> {
        locks.expire(&State::default(), Time::from_secs(second), &mut Rng::new(1))
    }

    #[test]
    fn a_lock_that_is_not_renewed_is_released_after_twice_its_time_and_the_delay() {
        let (mut state, mut locks) = (State::default(), Locks::default());
        locks.lead(&state, Time::ZERO);
        let delta = fold(&mut state, acquired(7, true));
        locks.observe(&state, &delta, Time::ZERO);
        let renew =
            |locks: &mut Locks, lock, second| locks.renew(&state, &key(), id(lock), Time::from_secs(second));
        assert_eq!(renew(&mut locks, 8, 1), Err(NotRenewed::Foreign));
        assert_eq!(locks.renew(&State::default(), &key(), id(7), Time::ZERO), Err(NotRenewed::Unknown));
        assert_eq!(renew(&mut locks, 7, 19), Ok(()));
        assert!(expire(&mut locks, 38).is_empty(), "it was renewed");
        assert!(expire(&mut locks, 39).is_empty());
        assert_eq!(renew(&mut locks, 7, 40), Err(NotRenewed::Foreign), "it is lost, and nobody has it yet");
        assert!(expire(&mut locks, 43).is_empty());
        assert!(
            matches!(expire(&mut locks, 44)[..], [Command::ExpireVariableLock { lock, .. }] if lock == id(7))
        );
        assert!(expire(&mut locks, 53).is_empty());
        assert_eq!(expire(&mut locks, 54).len(), 1, "nobody wrote it down");
        assert!(expire(&mut locks, 73).is_empty());
        assert_eq!(expire(&mut locks, 74).len(), 1, "and after twice as long");

        let delta = fold(&mut state, VariableLockReleased { key: key(), lock: id(7), expired: true });
        locks.observe(&state, &delta, Time::from_secs(75));
        assert!(locks.is_empty() && locks.next_deadline().is_none());
        assert_eq!(locks.renew(&state, &key(), id(7), Time::from_secs(76)), Err(NotRenewed::Unlocked));
        let delta = fold(&mut state, acquired(9, false));
        locks.observe(&state, &delta, Time::from_secs(80));
        assert_eq!((locks.len(), locks.next_deadline()), (1, Some(Time::from_secs(100))));
    }

    #[test]
    fn a_new_leader_gives_every_lock_its_whole_time() {
        let mut state = State::default();
        fold(&mut state, acquired(7, true));
        let mut locks = Locks::default();
        locks.lead(&state, Time::from_secs(1_000));
        assert_eq!(locks.next_deadline(), Some(Time::from_secs(1_000 + 2 * TTL)));
        locks.clock_moved(Duration::from_secs(-600));
        assert_eq!(locks.next_deadline(), Some(Time::from_secs(400 + 2 * TTL)));
        locks.follow();
        assert!(locks.is_empty() && locks.next_deadline().is_none());
    }
}

//! The states that were published a moment ago.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Index;
use state::{Delta, State};

/// States at hand, at most.
const STATES_MAX: usize = 64;

/// Rows that changed from the oldest of them to the newest, at most: each may hold on to a page of rows as it was, and in a
/// large cluster one plan changes a row in most pages there are. The newest two states stay whatever they changed.
const ROWS_MAX: usize = 16_384;

/// Newest last: readers of the stream show each batch with the state that it led to.
#[derive(Default)]
pub struct RecentStates(VecDeque<Recent>);

struct Recent {
    state: Arc<State>,
    /// Rows that are others than in the one before.
    changed: usize,
}

/// States that fell out. One may be the last holder of many pages, and freeing them takes a while.
#[must_use = "freed once the lock is free"]
pub struct Dropped(#[expect(dead_code, reason = "only to be dropped")] Vec<Recent>);

impl RecentStates {
    pub fn push(&mut self, state: &Arc<State>, delta: &Delta) -> Dropped {
        let changed = delta.rows();
        // Those before a restored one may be of another past.
        let kept = if delta.restored { 0 } else { self.fitting(changed) };
        let surplus = self.0.len() - kept;
        let dropped = Dropped(self.0.drain(..surplus).collect());
        self.0.push_back(Recent { state: Arc::clone(state), changed });
        dropped
    }

    pub fn find(&self, index: Index) -> Option<Arc<State>> {
        self.0.iter().rev().find(|one| one.state.index == index).map(|one| Arc::clone(&one.state))
    }

    /// How many of them may stay beside a next one that changed so many rows.
    fn fitting(&self, changed: usize) -> usize {
        let mut since = changed;
        let fits = |recent: &&Recent| {
            let fits = since <= ROWS_MAX;
            since += recent.changed;
            fits
        };
        let fitting = self.0.iter().rev().take(STATES_MAX - 1).take_while(fits).count();
        fitting.max(self.0.len().min(1))
    }
}

#[cfg(test)]
mod tests {
    use model::VariableKey;

    use super::*;

    fn published(index: u64) -> Arc<State> {
        let mut state = State::default();
        state.index = Index(index);
        Arc::new(state)
    }

    /// The oldest index that is at hand after so many states, of which each changed so many rows.
    fn oldest(states: u64, rows: usize) -> u64 {
        let mut recent = RecentStates::default();
        let delta = Delta { variables: vec![VariableKey::new("default", "a"); rows], ..Delta::default() };
        for index in 1..=states {
            drop(recent.push(&published(index), &delta));
        }
        (1..=states).find(|index| recent.find(Index(*index)).is_some()).unwrap()
    }

    #[test]
    fn states_are_at_hand_as_far_as_little_changed_since() {
        assert_eq!(oldest(100, 1), 37, "64 of them");
        assert_eq!(oldest(100, 4_096), 96, "16,384 rows changed from there to the newest");
        assert_eq!(oldest(100, 20_000), 99, "the newest two");
        assert_eq!(oldest(1, 20_000), 1);
    }

    #[test]
    fn a_restored_state_has_no_past() {
        let mut recent = RecentStates::default();
        for index in [1, 2] {
            drop(recent.push(&published(index), &Delta::default()));
        }
        drop(recent.push(&published(9), &Delta::everything()));
        assert!(recent.find(Index(2)).is_none() && recent.find(Index(9)).is_some());
    }
}

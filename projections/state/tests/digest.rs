//! The digest names the state: kept by folds, compared at each batch.

use crate::history::History;
use model::{Batch, Digest};
use state::{FoldError, State};

#[test]
fn a_batch_of_another_state_is_refused_and_the_table_named() {
    let (before, next) = a_state_and_the_next_batch();
    for (table, wrong) in wrong_in_each_table(next.digest) {
        let mut state = before.clone();
        let error = state.apply(&Batch { digest: wrong, ..next.clone() }).unwrap_err();
        assert!(state == before, "nothing is folded");
        let FoldError::Diverged { table: named, index, .. } = error.clone() else { panic!("{error}") };
        assert_eq!((named, index), (table, before.index));
        let said = format!("its table {table} has the digest");
        assert!(error.to_string().contains(&said), "{error}");
    }
    let mut state = before.clone();
    state.apply(&next).unwrap();
    assert_ne!(state.digest(), before.digest());
}

#[test]
fn the_same_tables_later_are_not_the_same_state() {
    let (before, next) = a_state_and_the_next_batch();
    let mut state = before.clone();
    state.apply(&Batch { events: vec![], commands: vec![], ..next }).unwrap();
    let (earlier, after) = (before.digest(), state.digest());
    assert_eq!(earlier.difference(&after).map(|(table, ..)| table), Some("cluster"));
    assert_eq!(State::default().digest(), Digest::default());
}

#[test]
fn requests_count() {
    let (before, mut next) = a_state_and_the_next_batch();
    let fold = |batch: &Batch| {
        let mut state = before.clone();
        state.apply(batch).unwrap();
        assert_eq!(state.digest(), state.recomputed_digest());
        state.digest()
    };
    next.commands[0].request = model::RequestId::default();
    let unnamed = fold(&next);
    next.commands[0].request = model::RequestId(7.into());
    assert_eq!(unnamed.difference(&fold(&next)).map(|(table, ..)| table), Some("requests"));
}

/// A state that a while of history led to, and the batch that came after it.
fn a_state_and_the_next_batch() -> (State, Batch) {
    let mut history = History::of(3, 40);
    let before = history.state.clone();
    history.step();
    (before, history.log.pop().expect("a step adds a batch"))
}

fn wrong_in_each_table(right: Digest) -> Vec<(&'static str, Digest)> {
    let bytes = right.to_bytes();
    let wrong = |table: usize| {
        let mut bytes = bytes;
        bytes[table * 8] ^= 1;
        Digest::from_bytes(&bytes)
    };
    right.tables().iter().enumerate().map(|(at, (name, _))| (*name, wrong(at))).collect()
}

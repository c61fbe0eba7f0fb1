//! The digest names the state: kept by folds, compared at each batch.

use crate::support::{World, node_id};
use model::{Batch, Command, Digest, NodeStatus};
use state::{FoldError, State};

#[test]
fn a_batch_of_another_state_is_refused_and_the_table_named() {
    let (world, next) = a_world_and_a_batch_to_come();
    for (table, wrong) in wrong_in_each_table(next.digest) {
        let mut state = world.state.clone();
        let error = state.apply(&Batch { digest: wrong, ..next.clone() }).unwrap_err();
        assert!(state == world.state, "nothing is folded");
        let FoldError::Diverged { table: named, index, .. } = error.clone() else { panic!("{error}") };
        assert_eq!((named, index), (table, world.state.index));
        let said = format!("its table {table} has the digest");
        assert!(error.to_string().contains(&said), "{error}");
    }
    let mut state = world.state.clone();
    state.apply(&next).unwrap();
    assert_ne!(state.digest(), world.state.digest());
}

#[test]
fn the_same_tables_later_are_not_the_same_state() {
    let (world, next) = a_world_and_a_batch_to_come();
    let mut state = world.state.clone();
    state.apply(&Batch { events: vec![], commands: vec![], ..next }).unwrap();
    let (before, after) = (world.state.digest(), state.digest());
    assert_eq!(before.difference(&after).map(|(table, ..)| table), Some("cluster"));
    assert_eq!(State::default().digest(), Digest::default());
}

#[test]
fn requests_count() {
    let (world, mut next) = a_world_and_a_batch_to_come();
    let fold = |batch: &Batch| {
        let mut state = world.state.clone();
        state.apply(batch).unwrap();
        assert_eq!(state.digest(), state.recomputed_digest());
        state.digest()
    };
    let unnamed = fold(&next);
    next.commands[0].request = model::RequestId(7.into());
    assert_eq!(unnamed.difference(&fold(&next)).map(|(table, ..)| table), Some("requests"));
}

fn a_world_and_a_batch_to_come() -> (World, Batch) {
    let mut world = World::new();
    world.register_node(1, "r1").unwrap();
    let before = World { state: world.state.clone(), log: world.log.clone(), now: world.now };
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    (before, world.log.pop().unwrap())
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

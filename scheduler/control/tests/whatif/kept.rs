//! Forks between two runs.

use base::Duration;
use control::whatif::{Change, KeptFork, Until};
use test_world::node_id;

use super::cluster::{Cluster, service};
use super::{busiest, question, small};

/// Room for everything on any two of the nodes.
fn begun() -> (Cluster, KeptFork) {
    let cluster = small();
    let fork = KeptFork::open(&cluster.state(), &question(Vec::new()), &|| true).unwrap();
    (cluster, fork)
}

#[test]
fn a_fork_goes_on_from_what_it_has_come_to() {
    let (cluster, fork) = begun();
    assert_eq!((fork.state().index, fork.allocations(), fork.changes()), (cluster.state().index, 0, 0));
    let first = busiest(fork.state());
    let drained = fork.changed(&[Change::Drain(first)], Until::Quiet, &|| true).unwrap();
    let moved = drained.result().counts.moved;
    assert!(moved > 0 && drained.result().quiet);
    // One after the other leads to the same places being left as both at once.
    let second = busiest(drained.state());
    assert_ne!(first, second);
    let both = drained.changed(&[Change::Drain(second)], Until::Quiet, &|| true).unwrap();
    let result = both.result();
    assert_eq!((result.counts.unplaced, both.changes()), (0, 2), "{result:?}");
    assert!(result.steps > drained.result().steps && result.evaluations > drained.result().evaluations);
    assert!(result.virtual_time.0 >= drained.result().virtual_time.0);
    for node in [first, second] {
        let row = both.state().nodes.find(node).unwrap();
        assert_eq!(both.state().nodes.hot(row).allocs, 0);
    }
    // What it was is still there.
    assert_eq!((drained.result().counts.moved, drained.changes()), (moved, 1));
    assert_eq!(fork.state().digest(), cluster.state().digest());
}

#[test]
fn a_change_that_is_refused_leaves_the_fork_as_it_was() {
    let (_, fork) = begun();
    let node = busiest(fork.state());
    let before = fork.state().digest();
    let refused = fork.changed(&[Change::Drain(node), Change::Drain(node_id(99))], Until::Quiet, &|| true);
    assert_eq!(refused.unwrap_err().number, 1);
    assert_eq!(fork.state().digest(), before);
}

#[test]
fn time_passes_on_its_clock_and_a_drain_that_waits_ends() {
    let (mut cluster, _) = begun();
    cluster.register(service("wide", 9, 200, |_| {}));
    cluster.settle();
    let state = cluster.state();
    let node = busiest(&state);
    let minute = Until::Passed(Duration::from_secs(60));
    let changes = vec![Change::Drain(node)];
    let asked = control::whatif::Question { until: minute, ..question(changes) };
    let begun = KeptFork::open(&state, &asked, &|| true).unwrap();
    let draining = |fork: &KeptFork| {
        let row = fork.state().nodes.find(node).unwrap();
        fork.state().nodes.cold(row).draining().is_some()
    };
    assert!(draining(&begun), "there is no room for all that runs there");
    assert_eq!(begun.now().since(begun.begin()), Duration::from_secs(60));
    let later = begun.changed(&[], Until::Passed(Duration::from_secs(3600)), &|| true).unwrap();
    assert_eq!(later.now().since(later.begin()), Duration::from_secs(3660));
    assert!(!draining(&later), "its deadline of an hour is over");
    assert_eq!(later.time_left().0, begun.time_left().0 - Duration::from_secs(3600).0);
    // The same question to the same fork has the same answer.
    let again = begun.changed(&[], Until::Passed(Duration::from_secs(3600)), &|| true).unwrap();
    assert_eq!(again.state().digest(), later.state().digest());
}

//! What remains after an outage: originals that won over their replacements, names, places, attempts.

use crate::support::deploy::*;
use crate::support::*;
use base::Duration;
use model::document::Job;
use model::{AllocId, ClientStatus, Trigger};
use state::alloc::reschedule::past;

/// Lost after five minutes, replaced at once while it is cut off; failures wait half a minute.
fn patient(kind: &str, count: i64) -> Job {
    job(kind, count)
        .with(lost_after(300))
        .with(|job| disconnect(job).reconcile = Some("keep_original".to_string()))
}

fn without_attempts(job: &mut Job) {
    group(job).reschedule_policy = Some(limited(0, 0, 0));
}

fn without_replacement(job: &mut Job) {
    disconnect(job).replace = Some(false);
}

fn cut_off(world: &mut World, alloc: AllocId) {
    let node = world.node_of(alloc);
    world.silence(node);
    world.work_off();
}

fn returns(world: &mut World, alloc: AllocId, status: ClientStatus) {
    let node = world.node_of(alloc);
    world.heartbeat(node);
    world.report(alloc, status);
    world.heartbeat(node);
}

/// The allocation of that name is cut off and gets a replacement, which runs.
fn substituted(world: &mut World, name: u32) -> (AllocId, AllocId) {
    let original = world.named(name);
    cut_off(world, original);
    if world.named(name) == original {
        let eval = world.skip_to(Trigger::RescheduleLater);
        world.settle(eval);
    }
    let substitute = world.named(name);
    assert_ne!(original, substitute, "it was replaced");
    world.report(substitute, ClientStatus::Running);
    (original, substitute)
}

/// The original returned and was kept; its replacement has ended.
fn won(world: &mut World, name: u32) -> AllocId {
    let (original, substitute) = substituted(world, name);
    returns(world, original, ClientStatus::Running);
    world.work_off();
    assert!(world.alloc(substitute).is_stopping() && !world.alloc(original).is_stopping());
    world.report(substitute, ClientStatus::Complete);
    original
}

fn names(world: &World) -> Vec<u32> {
    world.wanted().iter().filter(|alloc| !alloc.client.is_terminal()).map(|alloc| alloc.name_index).collect()
}

/// Nomad takes the stopped replacement for the successor for good, and starts the work from the beginning.
#[test]
fn work_that_an_original_finishes_after_an_outage_is_not_done_again() {
    let mut world = World::running(patient("batch", 1), 2);
    let original = won(&mut world, 0);
    world.report(original, ClientStatus::Complete);
    assert!(placed(&world.evaluate()).is_empty());
}

#[test]
fn a_failure_after_an_outage_is_rescheduled_like_any_other() {
    let mut world = World::running(patient("service", 1), 2);
    let original = won(&mut world, 0);
    world.report(original, ClientStatus::Failed);
    let outcome = world.work_off();
    assert_eq!((counters(&outcome).as_str(), placed(&outcome)), ("ignore 1, later 1", vec![]));
    let shown = state::alloc::document(&world.state, world.alloc(original));
    let due = world.skip_to(Trigger::RescheduleLater);
    assert_eq!(shown.followup_eval_id, due.to_string(), "what waits for it says so");
    assert_eq!(placed(&world.settle(due)), [0]);
    let successor = world.alloc(world.named(0));
    assert_eq!(successor.previous, Some(original));
    assert_eq!(past(&world.state, successor).len(), 1);
}

#[test]
fn a_failure_after_an_outage_stays_where_nothing_is_rescheduled() {
    let mut world = World::running(patient("service", 1).with(without_attempts).with(without_replacement), 2);
    let original = world.named(0);
    cut_off(&mut world, original);
    returns(&mut world, original, ClientStatus::Running);
    world.work_off();
    world.report(original, ClientStatus::Failed);
    assert!(placed(&world.evaluate()).is_empty());
}

#[test]
fn a_failure_during_an_outage_follows_the_policy() {
    let fails = |job: Job| {
        let mut world = World::running(job.with(without_replacement), 2);
        let original = world.named(0);
        cut_off(&mut world, original);
        returns(&mut world, original, ClientStatus::Failed);
        let outcome = world.work_off();
        assert!(placed(&outcome).is_empty());
        (world, original)
    };
    for kind in ["service", "batch"] {
        let (mut world, _) = fails(patient(kind, 1).with(without_attempts));
        assert!(placed(&world.evaluate()).is_empty());
        assert_eq!(world.waiting(), []);

        let (mut world, original) = fails(patient(kind, 1));
        let due = world.skip_to(Trigger::RescheduleLater);
        assert_eq!(placed(&world.settle(due)), [0]);
        assert_eq!(world.alloc(world.named(0)).previous, Some(original));
        assert!(world.alloc(original).is_stopping());
    }
}

#[test]
fn an_original_that_returns_keeps_its_name_for_itself() {
    let mut world = World::running(patient("service", 1), 3);
    let (original, _) = substituted(&mut world, 0);
    let grown = world.register(patient("service", 2));
    let node = world.node_of(original);
    world.heartbeat(node);
    world.settle(grown);
    world.report(original, ClientStatus::Running);
    world.heartbeat(node);
    world.work_off();
    assert_eq!(names(&world), [0, 1]);
    world.run(patient("service", 1));
    assert_eq!(names(&world), [0]);
}

/// Two that have had one name since an older release: one of them goes first.
#[test]
fn of_two_with_one_name_one_goes_first() {
    let mut world = World::running(patient("service", 2), 3);
    let free = world.free_nodes().next().unwrap();
    world.add(0, free, |_| {});
    world.all_run();
    world.run(patient("service", 1));
    assert_eq!(names(&world), [0]);
}

#[test]
fn an_original_and_its_replacement_are_one_place() {
    let mut world = World::running(patient("service", 2), 4);
    substituted(&mut world, 0);
    assert_eq!(placed(&world.run(patient("service", 3))), [2]);
    let lost = world.node_of(world.named(1));
    world.forget(lost);
    assert_eq!(placed(&world.work_off()), [1]);
}

/// Nomad counts the update as an attempt, also where nothing may be rescheduled.
#[test]
fn an_update_of_what_is_cut_off_is_no_attempt() {
    let still = |job: &mut Job| {
        without_attempts(job);
        without_replacement(job);
    };
    let mut world = World::running(patient("service", 1).with(still), 2);
    let original = world.named(0);
    cut_off(&mut world, original);
    assert_eq!(placed(&world.run(patient("service", 1).with(still).with(destructive))), [0]);
    let successor = world.alloc(world.named(0));
    assert_eq!(successor.previous, Some(original));
    assert_eq!(past(&world.state, successor), []);
}

/// Three of the old version, a canary of the next one, and all nodes fall silent and return.
fn outage_during_canaries(change: impl Fn(&mut Job)) -> World {
    let mut world = World::with_nodes(8);
    let job = patient("service", 3).with(rolling(1, 1)).with(&change);
    world.run(job.clone());
    world.deploy();
    world.run(job.with(destructive));
    world.all_run();
    let all: Vec<AllocId> = world.wanted().iter().map(|alloc| alloc.id).collect();
    assert_eq!(all.len(), 4);
    let nodes: Vec<u128> = all.iter().map(|alloc| world.node_of(*alloc)).collect();
    nodes.iter().for_each(|node| world.silence(*node));
    world.work_off();
    world.pass(10);
    nodes.iter().for_each(|node| world.heartbeat(*node));
    for alloc in all {
        if !world.alloc(alloc).is_stopping() {
            world.report(alloc, ClientStatus::Running);
        }
    }
    nodes.iter().for_each(|node| world.heartbeat(*node));
    world.all_run();
    world.work_off();
    world.all_run();
    world
}

/// Nomad stops all of the old version, and one canary is what is left.
#[test]
fn an_outage_during_canaries_leaves_the_old_version_at_its_count() {
    type Change = fn(&mut Job);
    let delayed: Change = |_| {};
    for (replaced, change) in [("delayed", delayed), ("never", without_replacement), ("at once", at_once)] {
        let world = outage_during_canaries(change);
        let of_version = |version: u64| {
            let wanted = world.wanted();
            let of = wanted.iter().filter(|alloc| alloc.version.version == version && !alloc.is_terminal());
            of.map(|alloc| alloc.name_index).collect::<Vec<_>>()
        };
        assert_eq!(of_version(0), [0, 1, 2], "{replaced}");
        assert_eq!(of_version(1).len(), 1, "{replaced}");
    }
}

/// A rolling update goes on at its pace after an outage.
#[test]
fn what_returns_with_an_older_version_is_updated_at_the_pace_of_the_update() {
    let mut world = World::with_nodes(8);
    let job = patient("service", 3).with(rolling(1, 0)).with(without_replacement);
    world.run(job.clone());
    world.deploy();
    let all: Vec<AllocId> = world.wanted().iter().map(|alloc| alloc.id).collect();
    all.iter().for_each(|alloc| cut_off(&mut world, *alloc));
    world.run(job.with(destructive));
    all.iter().for_each(|alloc| returns(&mut world, *alloc, ClientStatus::Running));
    world.work_off();
    let ended = all.iter().filter(|alloc| world.alloc(**alloc).is_stopping()).count();
    assert!(ended <= 1, "{ended} of three were stopped at once");
}

/// What a job no longer waits for does not keep it from ending.
#[test]
fn timeouts_end_with_the_outage() {
    let mut world = World::running(patient("service", 1), 2);
    won(&mut world, 0);
    assert_eq!(world.waiting(), []);

    let mut world = World::running(patient("service", 1), 2);
    substituted(&mut world, 0);
    let eval = world.deregister(false);
    world.settle(eval);
    assert_eq!(world.waiting(), []);

    let mut world = World::running(patient("service", 2).with(|job| job.constraints.clear()), 2);
    world.report(world.named(0), ClientStatus::Failed);
    world.work_off();
    assert_eq!(world.waiting().len(), 1);
    let eval = world.deregister(false);
    world.settle(eval);
    assert_eq!(world.waiting(), []);
    world.pass(Duration::from_secs(60).as_millis() / 1000);
}

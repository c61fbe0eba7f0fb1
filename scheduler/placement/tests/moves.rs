//! Names, ends and moves that need a state made by hand (more cases B and C).

use crate::support::deploy::*;
use crate::support::*;
use base::Duration;
use model::document::{EphemeralDisk, Job};
use model::event::AllocTransitionRequested;
use model::{AllocId, ClientStatus, Command, Eligibility, NodeStatus};

fn service(count: i64) -> Job {
    job("service", count)
}

/// One more running allocation, whatever the count says.
fn add(world: &mut World, name: u32, node: u128) -> AllocId {
    let id = world.add(name, node, |_| {});
    world.report(id, ClientStatus::Running);
    id
}

/// A drain at its deadline: nothing takes the place.
fn drain_for_good(world: &mut World, allocs: Vec<AllocId>) {
    world.event(AllocTransitionRequested {
        allocs,
        migrate: true,
        reschedule: false,
        no_shutdown_delay: false,
        force_reschedule: false,
        disable_placement: true,
        cause: "drain".into(),
    });
}

/// B05.
#[test]
fn a_count_of_zero_ends_all_whatever_their_names() {
    let mut world = World::with_nodes(20);
    world.run(service(2));
    world.all_run();
    for node in world.free_nodes() {
        add(&mut world, (node % 2) as u32, node);
    }
    assert_eq!(world.wanted().len(), 20);
    assert_eq!(counters(&world.run(service(0))), "stop 20");
}

/// B07.
#[test]
fn what_stays_is_updated_in_place_beside_what_is_missing() {
    let mut world = World::running(service(10), 10);
    let longer = |job: &mut Job| task(job).kill_timeout = Some(Duration::from_secs(9).into());
    let outcome = world.run(service(15).with(longer));
    assert_eq!(counters(&outcome), "place 5, in-place 10");
    assert_eq!(placed(&outcome), [10, 11, 12, 13, 14]);
}

/// B15.
#[test]
fn a_stopped_job_stops_what_has_not_ended() {
    for (ended, expected) in [(false, 10), (true, 0)] {
        let mut world = World::running(service(10), 10);
        if ended {
            (0..10).for_each(|name| world.report(world.named(name), ClientStatus::Complete));
        }
        let stop = world.deregister(false);
        assert_eq!(stopped_names(&world, &world.plan(stop)).len(), expected);
    }
}

/// B38.
#[test]
fn a_longer_run_is_no_reason_to_start_anew() {
    let hours = |hours: i64| {
        move |job: &mut Job| {
            group(job).max_run_duration = Some(Duration::from_secs(hours * 3600).into());
        }
    };
    let mut world = World::running(job("batch", 1).with(hours(1)), 2);
    assert_eq!(counters(&world.run(job("batch", 1).with(hours(4)))), "in-place 1");
}

/// B42.
#[test]
fn a_successor_of_a_shared_name_takes_a_free_one() {
    let mut world = World::with_nodes(8);
    world.run(service(2));
    world.all_run();
    let free = world.free_nodes().next().unwrap();
    add(&mut world, 0, free);
    let eval = world.register(service(3));
    world.silence(free);
    let outcome = world.settle(eval);
    assert_eq!((stopped_names(&world, &outcome), placed(&outcome)), (vec![0], vec![2]));
}

/// B43.
#[test]
fn a_name_goes_to_its_successor() {
    let mut world = World::running(service(10), 10);
    world.silence(world.node_of(world.named(3)));
    let outcome = world.work_off();
    assert_eq!((stopped_names(&world, &outcome), placed(&outcome)), (vec![3], vec![3]));
}

/// B49.
#[test]
fn what_was_told_to_end_and_did_is_missing() {
    let mut world = World::running(service(3), 3);
    let told = world.named(1);
    world.tell_to_end(told);
    world.report(told, ClientStatus::Complete);
    assert_eq!(counters(&world.evaluate()), "ignore 2, place 1");
}

/// B57.
#[test]
fn a_failed_member_too_many_is_only_stopped() {
    let mut world = World::with_nodes(6);
    world.run(service(2).with(rolling(1, 0)));
    world.all_run();
    let free = world.free_nodes().next().unwrap();
    let third = add(&mut world, 2, free);
    world.report(third, ClientStatus::Failed);
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome).as_str(), stopped_names(&world, &outcome)), ("ignore 2, stop 1", vec![2]));
}

/// B58.
#[test]
fn the_cut_off_are_not_surplus() {
    let mut world = World::running(service(10).with(at_once).with(lost_after(300)), 10);
    world.silence(world.node_of(world.named(9)));
    assert_eq!(counters(&world.work_off()), "ignore 9, place 1, disconnect 1, now 1");
    assert_eq!(counters(&world.evaluate()), "ignore 11");
}

/// C06, C23.
#[test]
fn finished_work_is_not_lost_and_does_not_move() {
    let mut world = World::running(job("batch", 3), 6);
    let done = world.named(0);
    world.report(done, ClientStatus::Complete);
    world.drain(vec![done]);
    assert!(world.evaluate().settlement.plan.is_empty());
    world.silence(world.node_of(done));
    assert!(world.evaluate().settlement.plan.is_empty());
}

/// C07, D14.
#[test]
fn what_failed_before_its_node_went_is_rescheduled() {
    for job in [service(3).with(at_once), service(3).with(at_once).with(lost_after(300))] {
        let mut world = World::running(job, 6);
        let failed = world.named(1);
        world.report(failed, ClientStatus::Failed);
        world.silence(world.node_of(failed));
        let next = world.pending()[0];
        let outcome = world.settle(next);
        assert_eq!(counters(&outcome), "ignore 2, place 1, stop 1");
        let why = "alloc was rescheduled because it failed".to_string();
        assert_eq!(stopped(&world, &outcome), [(1, why, None)]);
    }
}

/// C12.
#[test]
fn moves_come_beside_what_is_missing() {
    let mut world = World::running(service(10), 10);
    let eval = world.register(service(15));
    world.drain(vec![world.named(0), world.named(1)]);
    assert_eq!(counters(&world.settle(eval)), "place 5, migrate 2, in-place 8");
}

/// C14.
#[test]
fn what_was_asked_to_move_moves_also_off_a_dead_node() {
    let mut world = World::running(service(3), 3);
    let moving = world.named(1);
    world.drain(vec![moving]);
    world.silence(world.node_of(moving));
    let outcome = world.work_off();
    assert_eq!(stopped(&world, &outcome), [(1, "alloc is being migrated".to_string(), None)]);
}

/// C15, C16.
#[test]
fn a_batch_allocation_drained_at_the_deadline_is_not_placed_again() {
    let mut world = World::running(job("batch", 3), 6);
    let drained = world.named(1);
    drain_for_good(&mut world, vec![drained]);
    let outcome = world.evaluate();
    assert_eq!((stopped_names(&world, &outcome), placed(&outcome)), (vec![1], vec![]));
    for ended in [false, true] {
        if ended {
            world.report(drained, ClientStatus::Complete);
        }
        assert!(world.evaluate().settlement.plan.is_empty(), "its place stays taken");
    }
}

/// C22.
#[test]
fn what_moves_takes_the_wanted_version_along() {
    let mut world = World::running(job("batch", 2), 4);
    let eval = world.register(job("batch", 2).with(destructive));
    world.drain(vec![world.named(0)]);
    let outcome = world.settle(eval);
    assert!(outcome.settlement.plan.placed.iter().all(|event| event.version == 1));
    assert_eq!(placed(&outcome), [0, 1]);
}

/// C25, C28.
#[test]
fn a_sticky_disk_stays_behind_where_its_node_or_its_job_moved_on() {
    let sticky = |job: &mut Job| {
        let sticky = Some(true);
        group(job).ephemeral_disk =
            Some(EphemeralDisk { sticky, size_mb: Some(150), ..EphemeralDisk::default() });
    };
    let mut world = World::running(service(1).with(sticky), 2);
    let node = world.node_of(world.named(0));
    world.eligible(node, Eligibility::Ineligible);
    world.drain(vec![world.named(0)]);
    assert!(!nodes(&world.evaluate()).contains(&node));

    // A node that is preferred by everything but the disk.
    let mut world = World::running(service(1).with(sticky).with(at_once), 2);
    world.report(world.named(0), ClientStatus::Failed);
    let both = |job: &mut Job| job.datacenters = vec!["dc1".to_string(), "dc2".to_string()].into();
    let outcome = world.run(service(1).with(sticky).with(at_once).with(both));
    let failed = outcome.settlement.plan.stopped[0].allocs[0];
    assert!(!nodes(&outcome).contains(&world.node_of(failed)), "it failed there, and nothing draws it back");
}

/// A22, B16: what a purged job runs is stopped, and keeps its room until its node has ended it.
#[test]
fn a_purged_job_leaves_its_nodes_when_they_have_ended_it() {
    let large = |job: &mut Job| {
        let resources = task(job).resources.get_or_insert_default();
        (resources.cpu, resources.memory_mb) = (Some(3900), Some(256));
    };
    let mut world = World::with_nodes(1);
    world.run(service(1).with(large));
    world.all_run();
    let before = world.named(0);
    world.deregister(true);
    assert!(world.pending().is_empty() && world.wanted().is_empty());
    assert_eq!(&*world.alloc(before).desired_description, "alloc not needed due to job update");

    let outcome = world.run(service(1).with(large));
    assert!(placed(&outcome).is_empty(), "the node still runs what was purged");
    // Nothing that happens to it is a matter of the new job.
    world.silence(1);
    world.heartbeat(1);
    world.report(before, ClientStatus::Running);
    world.heartbeat(1);
    while !world.pending().is_empty() {
        world.work_off();
    }
    world.submit(Command::CollectGarbage { jobs_after: Duration::ZERO, nodes_after: Duration::ZERO });
    assert!(world.state.allocs.lookup(before).is_some(), "it has not ended");

    world.report(before, ClientStatus::Complete);
    let woken = world.unblocked();
    assert_eq!(placed(&world.settle(woken[0])), [0]);
    assert_eq!(world.alloc(before).client, ClientStatus::Complete);
    world.submit(Command::CollectGarbage { jobs_after: Duration::ZERO, nodes_after: Duration::ZERO });
    assert!(world.state.allocs.lookup(before).is_none());
}

/// B18.
#[test]
fn each_allocation_of_a_group_has_a_fate_of_its_own() {
    let hourly = |job: &mut Job| group(job).reschedule_policy = Some(limited(5, 24 * 3600, 3600));
    let longer = |job: &mut Job| task(job).kill_timeout = Some(Duration::from_secs(9).into());
    let mut world = World::with_nodes(8);
    world.run(service(1).with(hourly));
    world.all_run();
    // The first stays as it was while two others come.
    world.run(service(3).with(hourly).with(rolling(1, 0)).with(destructive));
    world.all_run();
    world.report(world.named(2), ClientStatus::Failed);
    world.pass(3000);
    world.report(world.named(1), ClientStatus::Failed);
    world.pass(600);
    let outcome = world.run(service(4).with(hourly).with(longer));
    assert_eq!(counters(&outcome), "place 2, stop 1, in-place 1, destructive 1, later 1");
    assert_eq!((placed(&outcome), stopped_names(&world, &outcome)), (vec![1, 2, 3], vec![1, 2]));
}

/// C10, C29. A draining node gets no new allocations, and its allocations are asked to migrate; see also `drains.rs`.
#[test]
fn what_becomes_of_a_node_decides_what_becomes_of_its_work() {
    type Change = fn(&mut World, AllocId, u128);
    let changes: [(Change, &str); 6] = [
        (|world, _, node| world.set_node(node, NodeStatus::Initializing), "ignore 2"),
        (|world, _, node| world.eligible(node, Eligibility::Ineligible), "ignore 2"),
        (
            |world, alloc, node| {
                world.eligible(node, Eligibility::Ineligible);
                world.drain(vec![alloc]);
            },
            "ignore 1, migrate 1",
        ),
        (|world, _, node| world.set_node(node, NodeStatus::Disconnected), "ignore 2, disconnect 1, later 1"),
        (|world, _, node| world.set_node(node, NodeStatus::Down), "ignore 1, place 1, stop 1"),
        (|world, _, node| world.forget(node), "ignore 1, place 1, stop 1"),
    ];
    for (at, (change, expected)) in changes.into_iter().enumerate() {
        let mut world = World::running(service(2).with(lost_after(300)), 2);
        let alloc = world.named(0);
        let node = world.node_of(alloc);
        change(&mut world, alloc, node);
        assert_eq!(counters(&world.evaluate()), expected, "change {at}");
    }
}

/// E43.
#[test]
fn an_allocation_that_runs_beside_its_successor_is_one_too_many() {
    let mut world = World::running(service(1), 2);
    let original = world.named(0);
    let free = world.free_nodes().next().unwrap();
    let successor = world.add(0, free, |placed| placed.previous = vec![original]);
    world.report(successor, ClientStatus::Running);
    assert_eq!(world.alloc(original).next, Some(successor));
    assert_eq!(counters(&world.evaluate()), "ignore 1, stop 1");
    assert_eq!(counters(&world.evaluate()), "ignore 1");
}

//! Names, ends and moves that need a state made by hand (more cases B and C).

use crate::support::deploy::*;
use crate::support::*;
use base::{Duration, Uuid};
use model::document::{EphemeralDisk, Job, ReschedulePolicy};
use model::event::{AllocTransitionRequested, AllocsPlaced, AllocsStopped};
use model::{AllocId, ClientStatus, Desired, Doc, Eligibility};

fn service(count: i64) -> Job {
    job("service", count)
}

fn at_once(job: &mut Job) {
    let delay = Some(Duration::ZERO.into());
    group(job).reschedule_policy =
        Some(ReschedulePolicy { unlimited: Some(true), delay, ..ReschedulePolicy::default() });
}

/// One more allocation like the first, whatever the count says.
fn add(world: &mut World, name: u32, node: u128) -> AllocId {
    let like = world.wanted()[0].clone();
    let id = AllocId(Uuid::from(0xadd << 32 | node));
    world.event(AllocsPlaced {
        eval: like.eval,
        key: key(),
        version: like.version.version,
        group: "web".into(),
        template: Doc(like.template.bytes().to_vec()),
        metrics: Doc(like.metrics.bytes().to_vec()),
        ids: vec![id],
        nodes: vec![node_id(node)],
        names: vec![name],
        previous: vec![],
        deployment: like.deployment,
        canary: false,
        ports: vec![],
        given: vec![],
    });
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
    let used: Vec<u128> = world.wanted().iter().map(|alloc| number(alloc.node_id)).collect();
    let free: Vec<u128> = (1..=20).filter(|node| !used.contains(node)).collect();
    for node in free {
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
    let used: Vec<u128> = world.wanted().iter().map(|alloc| number(alloc.node_id)).collect();
    let free = (1..=8).find(|node| !used.contains(node)).unwrap();
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
    world.event(AllocsStopped {
        allocs: vec![told],
        desired: Desired::Stop,
        description: "by hand".into(),
        client: None,
        follow_up: None,
    });
    world.report(told, ClientStatus::Complete);
    assert_eq!(counters(&world.evaluate()), "ignore 2, place 1");
}

/// B57.
#[test]
fn a_failed_member_too_many_is_only_stopped() {
    let mut world = World::with_nodes(6);
    world.run(service(2).with(rolling(1, 0)));
    world.all_run();
    let used: Vec<u128> = world.wanted().iter().map(|alloc| number(alloc.node_id)).collect();
    let free = (1..=6).find(|node| !used.contains(node)).unwrap();
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

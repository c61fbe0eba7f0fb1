//! Counts, names, updates, lost and moving allocations (cases B and C).

use crate::support::deploy::*;
use crate::support::*;
use model::document::{NetworkResource, Port};
use model::{ClientStatus, Eligibility, Trigger};

const NOT_NEEDED: &str = "alloc not needed due to job update";
const LOST: &str = "alloc is lost since its node is down";

fn service(count: i64) -> model::document::Job {
    job("service", count)
}

/// B01-B04.
#[test]
fn counts_grow_and_shrink_by_names() {
    let mut world = World::with_nodes(20);
    let eval = world.register(service(5));
    assert_eq!(placed(&world.settle(eval)), [0, 1, 2, 3, 4]);
    let eval = world.register(service(8));
    let grown = world.settle(eval);
    assert_eq!((placed(&grown), counters(&grown)), (vec![5, 6, 7], "place 3, in-place 5".to_string()));
    let eval = world.register(service(3));
    let shrunk = world.settle(eval);
    assert_eq!(
        (stopped_names(&world, &shrunk), counters(&shrunk)),
        (vec![3, 4, 5, 6, 7], "stop 5, in-place 3".to_string())
    );
    let eval = world.register(service(0));
    let outcome = world.settle(eval);
    assert_eq!((stopped_names(&world, &outcome), counters(&outcome)), (vec![0, 1, 2], "stop 3".to_string()));
}

/// B06, B26, B30: the allocation stays, with a newer version.
#[test]
fn what_a_task_can_follow_is_updated_in_place() {
    let ports = |job: &mut model::document::Job| {
        let port = |label: &str| Port { label: label.into(), ..Port::default() };
        let dynamic_ports = vec![port("b"), port("a")].into();
        group(job).networks.push(NetworkResource { dynamic_ports, ..NetworkResource::default() });
    };
    let mut world = World::running(service(3).with(ports), 3);
    let before: Vec<_> = world.wanted().iter().map(|alloc| (alloc.id, alloc.ports.clone())).collect();
    let metrics = world.wanted()[0].metrics.clone();
    let eval = world.register(service(3).with(ports).with(|job| {
        task(job).kill_timeout = Some(model::document::Duration::from_secs(20));
        group(job).networks[0].dynamic_ports.reverse();
    }));
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "in-place 3");
    let after: Vec<_> = world.wanted().iter().map(|alloc| (alloc.id, alloc.ports.clone())).collect();
    assert_eq!(before, after);
    let alloc = world.wanted()[0];
    assert_eq!((alloc.version.version, alloc.eval, &alloc.metrics), (1, eval, &metrics));
    assert_eq!(alloc.template.ports[0].label, "a");
}

/// B09, B11, B12.
#[test]
fn without_an_update_block_everything_is_replaced_at_once() {
    let mut world = World::running(service(4), 4);
    let eval = world.register(service(4).with(destructive));
    let outcome = world.settle(eval);
    assert_eq!((counters(&outcome), placed(&outcome)), ("destructive 4".to_string(), vec![0, 1, 2, 3]));
    assert!(
        stopped(&world, &outcome).iter().all(|stop| stop.1 == "alloc is being updated due to job update")
    );
    assert!(outcome.settlement.plan.placed[0].previous.len() == 4);

    let mut world = World::running(service(4), 8);
    let eval = world.register(service(6).with(destructive));
    assert_eq!(counters(&world.settle(eval)), "place 2, destructive 4");
    let mut world = World::running(service(4), 4);
    let eval = world.register(service(2).with(destructive));
    assert_eq!(counters(&world.settle(eval)), "stop 2, destructive 2");
}

/// The blocked evaluation goes on when there is room: to look again and again before would fill the log.
#[test]
fn an_update_that_finds_no_room_waits_for_room_and_not_for_time() {
    let mut world = World::running(service(3).with(rolling(1, 0)), 3);
    world.pass(60);
    let nowhere = |job: &mut model::document::Job| {
        job.constraints.push(constraint("${attr.kernel.name}", "=", "plan9"));
    };
    let eval = world.register(service(3).with(rolling(1, 0)).with(destructive).with(nowhere));
    let outcome = world.settle(eval);
    assert!(!is_placed_in_full(&outcome) && stopped(&world, &outcome).is_empty());
    assert_eq!(world.waiting(), []);
}

/// B10.
#[test]
fn a_max_parallel_of_zero_is_no_update_block() {
    let mut world = World::running(service(3).with(rolling(0, 0)), 3);
    let eval = world.register(service(3).with(rolling(0, 0)).with(destructive));
    assert_eq!(counters(&world.settle(eval)), "destructive 3");
}

/// B14.
#[test]
fn groups_come_and_go() {
    let mut world = World::running(service(3), 3);
    let eval = world.register(service(3).with(|job| group(job).name = Some("api".into())));
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "stop 3");
    assert_eq!(outcome.explanation.groups["api"].desired.place, 3);
    assert!(stopped(&world, &outcome).iter().all(|stop| stop.1 == NOT_NEEDED));
}

/// B19-B21, B23.
#[test]
fn an_allocation_whose_node_the_job_no_longer_asks_for_is_replaced() {
    for (change, expected) in [
        (
            (|job: &mut model::document::Job| job.datacenters = vec!["dc1".into(), "dc2".into()].into())
                as fn(&mut model::document::Job),
            "in-place 2",
        ),
        (|job| job.datacenters = vec!["dc2".into()].into(), "destructive 2"),
        (|job| job.node_pool = Some("gpu".into()), "destructive 2"),
        (|job| job.constraints.push(constraint("${meta.rack}", "=", "r1")), "destructive 2"),
        (|job| job.constraints.push(constraint("${meta.rack}", "!=", "r1")), "in-place 2"),
        (|job| job.node_pool = Some("all".into()), "in-place 2"),
    ] {
        let mut world = World::running(service(2), 2);
        // A job can only ask for a pool that has nodes.
        world.node(9, |node| node.node_pool = "gpu".into());
        let eval = world.register(service(2).with(change));
        let outcome = world.plan(eval);
        assert_eq!(counters(&outcome), expected);
    }
}

/// B22, B39-B41.
#[test]
fn a_successor_may_have_the_room_of_what_it_replaces() {
    let whole = |job: &mut model::document::Job| {
        task(job).resources.get_or_insert_default().cpu = Some(3900);
    };
    let mut world = World::with_nodes(1);
    world.register(service(1).with(whole));
    world.work_off();
    world.all_run();
    let eval = world.register(service(1).with(whole).with(destructive));
    let outcome = world.settle(eval);
    assert_eq!((counters(&outcome), nodes(&outcome)), ("destructive 1".to_string(), vec![1]));
    let tags = service(1).with(whole).with(destructive).with(|job| job.priority = Some(60));
    let eval = world.register(tags);
    assert_eq!(counters(&world.settle(eval)), "in-place 1");

    let mut world = World::with_nodes(5);
    world.register(service(5).with(whole));
    world.work_off();
    let eval = world.register(service(5).with(whole).with(destructive));
    assert_eq!(nodes(&world.settle(eval)), [1, 2, 3, 4, 5]);

    let eval = world.register(service(5).with(|job| {
        task(job).resources.get_or_insert_default().cpu = Some(9000);
    }));
    let outcome = world.settle(eval);
    assert!(outcome.settlement.plan.is_empty(), "old ones run until their successors fit");
    assert_eq!((failed(&outcome).coalesced_failures, queued(&outcome)[0].1), (4, 5));
}

/// B48: a service that ended is started again.
#[test]
fn a_completed_service_allocation_is_replaced() {
    let mut world = World::running(service(3), 3);
    world.report(world.named(1), ClientStatus::Complete);
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome), placed(&outcome)), ("ignore 2, place 1".to_string(), vec![1]));
}

/// B50, B51, B53, B54.
#[test]
fn a_batch_job_runs_once_per_version() {
    let mut world = World::running(job("batch", 3), 6);
    world.report(world.named(0), ClientStatus::Complete);
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome), outcome.settlement.plan.is_empty()), ("ignore 3".to_string(), true));
    world.report(world.named(1), ClientStatus::Complete);
    world.report(world.named(2), ClientStatus::Complete);
    assert!(world.evaluate().settlement.plan.is_empty());
    let eval = world.register(job("batch", 3).with(|job| job.priority = Some(60)));
    assert_eq!(counters(&world.settle(eval)), "ignore 3, place 3");
    let second: Vec<_> = world.wanted().iter().filter(|a| a.version.version == 1).map(|a| a.id).collect();
    second.into_iter().for_each(|alloc| world.report(alloc, ClientStatus::Complete));
    assert_eq!(counters(&world.evaluate()), "ignore 6");
}

/// B52.
#[test]
fn a_purged_job_starts_anew() {
    let mut world = World::running(job("batch", 2), 2);
    let eval = world.deregister(true);
    assert!(world.state.jobs.lookup(&key()).is_none());
    assert!(world.eval(eval).status.is_terminal());
    let eval = world.register(job("batch", 2));
    assert_eq!(placed(&world.settle(eval)), [0, 1]);
}

/// B55.
#[test]
fn a_batch_job_sheds_ended_allocations_by_name_too() {
    let mut world = World::running(job("batch", 6), 6);
    world.report(world.named(5), ClientStatus::Complete);
    let eval = world.register(job("batch", 5).with(|job| job.priority = Some(50)));
    let outcome = world.plan(eval);
    // The ended one ran an older version: it is set aside, and nothing has to stop.
    assert_eq!(counters(&outcome), "ignore 1, in-place 5");
}

/// B08, C03: surplus leaves from the highest name down.
#[test]
fn surplus_leaves_from_the_highest_name() {
    let mut world = World::running(service(6), 6);
    let lost = [world.named(0), world.named(1)].map(|alloc| world.node_of(alloc));
    lost.into_iter().for_each(|node| world.silence(node));
    let eval = world.register(service(3));
    let outcome = world.settle(eval);
    assert_eq!(stopped_names(&world, &outcome), [0, 1, 5]);
    assert_eq!(counters(&outcome), "stop 3, in-place 3");
}

/// C01, C04.
#[test]
fn what_was_lost_is_replaced_under_its_name() {
    for purge in [false, true] {
        let mut world = World::running(service(4), 8);
        let ids = [world.named(0), world.named(1)];
        for node in ids.map(|alloc| world.node_of(alloc)) {
            if purge { world.forget(node) } else { world.silence(node) }
        }
        let eval = world.pending()[0];
        let outcome = world.settle(eval);
        assert_eq!(counters(&outcome), "ignore 2, place 2, stop 2");
        let words = (0, LOST.to_string(), Some(ClientStatus::Lost));
        assert_eq!(stopped(&world, &outcome)[0], words);
        assert_eq!(placed(&outcome), [0, 1]);
        let replaced = world.alloc(ids[0]);
        assert_eq!((replaced.client, replaced.next), (ClientStatus::Lost, Some(world.named(0))));
        assert!(world.evaluate().settlement.plan.is_empty());
    }
}

/// C08, C09.
#[test]
fn what_was_told_to_stop_on_a_dead_node_is_concluded_lost() {
    let mut world = World::running(service(3), 3);
    let (running, ended) = (world.named(1), world.named(2));
    let eval = world.register(service(1));
    world.settle(eval);
    world.report(ended, ClientStatus::Complete);
    for node in [running, ended].map(|alloc| world.node_of(alloc)) {
        world.silence(node);
    }
    let outcome = world.evaluate();
    assert_eq!(stopped(&world, &outcome), [(1, LOST.to_string(), Some(ClientStatus::Lost))]);
    assert!(placed(&outcome).is_empty());
    assert!(world.evaluate().settlement.plan.is_empty(), "once is enough");
}

/// C11, C17, C18.
#[test]
fn what_is_asked_to_move_ends_and_is_placed_elsewhere() {
    for kind in ["service", "batch"] {
        let mut world = World::running(job(kind, 3), 6);
        let alloc = world.named(1);
        world.stop_alloc(alloc, false);
        let eval = world.pending()[0];
        let outcome = world.settle(eval);
        assert_eq!(counters(&outcome), "ignore 2, migrate 1");
        assert_eq!(stopped(&world, &outcome), [(1, "alloc is being migrated".to_string(), None)]);
        assert_eq!(placed(&outcome), [1]);
        assert_eq!(world.alloc(world.named(1)).previous, Some(alloc));
        // A stopped batch allocation no longer counts; a service's is not even looked at.
        assert!(world.evaluate().settlement.plan.is_empty());
    }
}

/// C13.
#[test]
fn moving_allocations_are_the_first_surplus() {
    let mut world = World::running(service(10), 10);
    for index in [1, 4, 6] {
        world.stop_alloc(world.named(index), false);
    }
    let eval = world.register(service(8));
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "migrate 1, stop 2, in-place 7");
    let by_words: Vec<(u32, String)> =
        stopped(&world, &outcome).into_iter().map(|(name, words, _)| (name, words)).collect();
    let expected = [(1, "alloc is being migrated"), (4, NOT_NEEDED), (6, NOT_NEEDED)];
    assert_eq!(by_words, expected.map(|(name, words)| (name, words.to_string())));
}

/// C19-C21.
#[test]
fn a_batch_allocation_to_be_rescheduled_follows_its_policy() {
    for (delay, expected, later) in
        [(0, "ignore 1, place 1, migrate 1", 0), (60, "ignore 1, migrate 1, later 1", 1)]
    {
        let mut world = World::running(
            job("batch", 2).with(|job| group(job).reschedule_policy = Some(limited(1, 3600, delay))),
            4,
        );
        world.stop_alloc(world.named(0), true);
        let eval = world.pending()[0];
        let outcome = world.settle(eval);
        assert_eq!(counters(&outcome), expected);
        assert_eq!((stopped_names(&world, &outcome), world.waiting().len()), (vec![0], later));
    }
    let mut world = World::running(job("batch", 2).with(|job| group(job).reschedule_policy = None), 4);
    world.stop_alloc(world.named(0), true);
    let eval = world.pending()[0];
    assert_eq!(counters(&world.settle(eval)), "ignore 1, migrate 1");
}

/// C24.
#[test]
fn a_move_does_not_wait_for_room() {
    let mut world = World::with_nodes(2);
    world.register(service(2));
    world.work_off();
    world.all_run();
    world.eligible(1, Eligibility::Ineligible);
    let there = world.wanted().iter().find(|alloc| number(alloc.node_id) == 1).map(|alloc| alloc.id).unwrap();
    world.stop_alloc(there, false);
    let eval = world.pending()[0];
    let outcome = world.settle(eval);
    assert_eq!((stopped_names(&world, &outcome).len(), queued(&outcome)[0].1), (1, 1));
    assert!(!is_placed_in_full(&outcome));
}

/// C26, C27.
#[test]
fn a_sticky_disk_keeps_its_node_in_spite_of_the_failure() {
    let sticky = |job: &mut model::document::Job| {
        group(job).ephemeral_disk.get_or_insert_default().sticky = Some(true);
        group(job).reschedule_policy = Some(limited(3, 3600, 0));
    };
    let mut world = World::running(service(1).with(sticky), 3);
    let home = world.node_of(world.named(0));
    world.report(world.named(0), ClientStatus::Failed);
    let outcome = world.work_off();
    assert_eq!(nodes(&outcome), [home]);
    world.all_run();
    world.eligible(home, Eligibility::Ineligible);
    world.report(world.named(0), ClientStatus::Failed);
    assert_ne!(nodes(&world.work_off()), [home]);
}

/// C30, C31, C33.
#[test]
fn a_client_that_stops_by_itself_is_waited_for() {
    let waits = |secs| {
        move |job: &mut model::document::Job| {
            disconnect(job).stop_on_client_after = Some(model::document::Duration::from_secs(secs));
        }
    };
    let mut world = World::running(service(2).with(waits(10)), 4);
    let alloc = world.named(0);
    world.silence(world.node_of(alloc));
    let eval = world.pending()[0];
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 1, stop 1");
    assert_eq!(world.waiting(), [(15, Trigger::AllocFailure)]);
    let follow_up = outcome.settlement.plan.follow_ups[0].id;
    assert_eq!(world.alloc(alloc).follow_up, Some(follow_up));
    assert!(world.evaluate().settlement.plan.is_empty(), "other evaluations wait as well");
    let eval = world.skip_to(Trigger::AllocFailure);
    let outcome = world.settle(eval);
    assert_eq!((counters(&outcome), placed(&outcome)), ("ignore 1, place 1".to_string(), vec![0]));

    let mut world = World::running(service(2).with(waits(0)), 4);
    world.silence(world.node_of(world.named(0)));
    let eval = world.pending()[0];
    assert_eq!(counters(&world.settle(eval)), "ignore 1, place 1, stop 1");
}

/// A log may hold such jobs from before there was a bound. Without the budget this takes all the memory there is.
#[test]
fn a_job_beyond_all_sense_fails_with_the_reason_before_anything_is_taken_for_it() {
    let registered = |world: &mut World, version: u64, count: i64, canaries: i64| {
        let job = job("service", count).with(|job| {
            let update = model::document::UpdateStrategy { canary: Some(canaries), ..Default::default() };
            group(job).update = Some(update);
        });
        let document = model::Doc::of(&job);
        let event =
            model::event::JobRegistered { key: key(), version, document, submission: Default::default() };
        world.event(event);
    };
    let mut world = World::with_nodes(2);
    world.register(job("service", 1));
    world.work_off();
    for (version, count, canaries) in [(1, 1_000_000_000, 0), (2, i64::MAX, 0), (3, 1, 1_000_000_000)] {
        registered(&mut world, version, count, canaries);
        let end = world.evaluate().settlement.end.unwrap();
        assert_eq!(end.status, model::EvalStatus::Failed);
        let why = "too large to be scheduled: the job asks for";
        assert!(end.description.starts_with(why), "{}", end.description);
        assert_eq!(world.wanted().len(), 1, "what runs goes on");
    }
    // What is only stopped needs no budget.
    world.deregister(false);
    world.work_off();
    assert_eq!(world.wanted().len(), 0);
}

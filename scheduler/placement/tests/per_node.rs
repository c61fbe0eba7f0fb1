//! Jobs that run on every node (cases G).

use crate::support::deploy::*;
use crate::support::*;
use model::document::Job;
use model::{ClientStatus, Desired, Eligibility, Trigger};

/// Nodes 1 to `count`, each with a running allocation.
fn running(kind: &str, count: u128) -> World {
    let mut world = World::with_nodes(count);
    world.register(job(kind, 1));
    world.work_off();
    world.all_run();
    world
}

fn on(world: &World, node: u128) -> model::AllocId {
    let wanted = world.wanted();
    let here = wanted.iter().filter(|alloc| number(alloc.node_id) == node);
    here.max_by_key(|alloc| alloc.created).map(|alloc| alloc.id).expect("the node has an allocation")
}

/// G01, G02, G09.
#[test]
fn every_node_gets_every_name_once() {
    for (count, expected) in [(1, 4), (3, 12)] {
        let mut world = World::with_nodes(4);
        let eval = world.register(job("system", count).with(|job| job.name = Some("called".into())));
        let outcome = world.settle(eval);
        assert_eq!(nodes(&outcome).len(), expected);
        assert_eq!(world.wanted()[0].name(), "called.web[0]");
        assert!(world.evaluate().settlement.plan.is_empty());
    }
}

/// G03.
#[test]
fn a_new_node_is_filled() {
    let mut world = running("system", 2);
    world.node(3, |_| {});
    let outcome = world.work_off();
    assert_eq!((nodes(&outcome), counters(&outcome)), (vec![3], "ignore 2, place 1".to_string()));
}

fn small(node: &mut model::document::Node) {
    node.node_resources.as_mut().unwrap().cpu.cpu_shares = 300;
}

/// G04, G05.
#[test]
fn full_nodes_wait_in_one_blocked_evaluation() {
    for full in [1, 2] {
        let mut world = World::with_nodes(3);
        (4..4 + full).for_each(|n| world.node(n, small));
        let eval = world.register(job("system", 1));
        let outcome = world.settle(eval);
        assert_eq!(nodes(&outcome), [1, 2, 3]);
        let metric = failed(&outcome);
        assert_eq!((metric.nodes_exhausted, metric.coalesced_failures), (full as i64, full as i64 - 1));
        let end = outcome.settlement.end.as_ref().unwrap();
        assert_eq!(end.blocked.as_ref().unwrap().node, Some(node_id(4)));
        assert_eq!(queued(&outcome), [("web".to_string(), full as u32)]);
    }
}

/// G06-G08.
#[test]
fn filtered_nodes_are_no_failure_unless_all_are() {
    let linux = |job: &mut Job| job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    let windows = |node: &mut model::document::Node| {
        node.attributes.insert("kernel.name".into(), "windows".into());
    };
    let mut world = World::with_nodes(2);
    world.node(3, windows);
    let eval = world.register(job("system", 1).with(linux));
    let outcome = world.settle(eval);
    assert_eq!((nodes(&outcome), is_placed_in_full(&outcome)), (vec![1, 2], true));
    assert_eq!(queued(&outcome), [("web".to_string(), 0)]);
    world.node(4, windows);
    assert!(is_placed_in_full(&world.work_off()), "others run elsewhere");

    let mut world = World::new();
    world.node(1, windows);
    world.node(2, windows);
    let eval = world.register(job("system", 1).with(linux));
    let outcome = world.settle(eval);
    assert_eq!(failed(&outcome).constraint_filtered["${attr.kernel.name} = linux"], 2);
    let end = outcome.settlement.end.as_ref().unwrap();
    assert_eq!((end.blocked.is_none(), queued(&outcome)[0].1), (true, 0));
}

/// G10.
#[test]
fn a_destructive_change_replaces_each_on_its_node() {
    let mut world = running("system", 4);
    let eval = world.register(job("system", 1).with(destructive));
    let outcome = world.settle(eval);
    assert_eq!(nodes(&outcome), [1, 2, 3, 4]);
    assert_eq!(stopped_names(&world, &outcome).len(), 4);
    assert!(world.alloc(on(&world, 1)).previous.is_some());
}

/// Ours: a job that runs to its end has no deployment, so what has settled paces it.
#[test]
fn an_update_block_paces_what_runs_to_its_end() {
    let mut world = World::with_nodes(5);
    world.run(job("sysbatch", 1).with(rolling(2, 0)));
    world.all_run();
    let mut rounds = vec![nodes(&world.run(job("sysbatch", 1).with(rolling(2, 0)).with(destructive))).len()];
    while !world.waiting().is_empty() {
        world.all_run();
        let next = world.skip_to(Trigger::RollingUpdate);
        rounds.push(nodes(&world.settle(next)).len());
    }
    assert_eq!(rounds, [2, 2, 1]);
    let job = world.state.jobs.lookup(&key()).unwrap();
    assert!(job.deployments.is_empty());
}

/// G38, G39.
#[test]
fn in_place_changes_keep_ids_and_other_datacenters_are_left() {
    let mut world = World::with_nodes(2);
    world.node(3, |node| node.datacenter = "dc2".into());
    let both = |job: &mut Job| job.datacenters = vec!["dc1".to_string(), "dc2".to_string()].into();
    world.register(job("system", 1).with(both));
    world.work_off();
    let before: Vec<_> = world.wanted().iter().map(|alloc| alloc.id).collect();
    let eval = world.register(job("system", 1));
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "stop 1, in-place 2");
    assert_eq!(world.node_of(outcome.settlement.plan.stopped[0].allocs[0]), 3);
    assert!(world.wanted().iter().all(|alloc| before.contains(&alloc.id)));
}

/// G40, G58.
#[test]
fn what_is_not_required_ends() {
    for kind in ["system", "sysbatch"] {
        let mut world = running(kind, 3);
        let eval = world.register(job(kind, 1).with(|job| group(job).name = Some("api".into())));
        let outcome = world.settle(eval);
        assert_eq!((counters(&outcome), nodes(&outcome)), ("stop 3".to_string(), vec![1, 2, 3]));
        let eval = world.deregister(false);
        assert_eq!(stopped_names(&world, &world.plan(eval)).len(), 3);
    }
}

/// G41, G44.
#[test]
fn a_dead_node_loses_its_allocation_and_an_ineligible_one_keeps_it() {
    let mut world = running("system", 3);
    world.silence(1);
    let lost = on(&world, 1);
    let outcome = world.work_off();
    assert_eq!((counters(&outcome), placed(&outcome)), ("ignore 2, stop 1".to_string(), vec![]));
    assert_eq!(world.alloc(lost).client, ClientStatus::Lost);
    world.eligible(2, Eligibility::Ineligible);
    assert_eq!(counters(&world.evaluate()), "ignore 2");
    let eval = world.register(job("system", 1).with(|job| job.priority = Some(60)));
    assert_eq!(counters(&world.settle(eval)), "stop 1, in-place 1");
}

/// G42, and ours: on a node that takes work its place is filled again.
#[test]
fn a_stopped_allocation_is_placed_again_where_work_is_taken() {
    let mut world = running("system", 2);
    world.stop_alloc(on(&world, 1), false);
    let outcome = world.work_off();
    assert_eq!((counters(&outcome), nodes(&outcome)), ("ignore 1, place 1, migrate 1".to_string(), vec![1]));
    world.eligible(2, Eligibility::Ineligible);
    world.stop_alloc(on(&world, 2), false);
    let outcome = world.work_off();
    assert!(placed(&outcome).is_empty());
    assert_eq!(stopped(&world, &outcome)[0].1, "alloc not needed as node is tainted");
}

/// G43.
#[test]
fn what_was_asked_to_leave_a_node_that_died_leaves_it_as_asked() {
    let mut world = running("system", 2);
    let alloc = on(&world, 1);
    world.eligible(1, Eligibility::Ineligible);
    world.drain(vec![alloc]);
    world.silence(1);
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 1, migrate 1");
    assert_eq!(stopped(&world, &outcome), [(0, "alloc not needed as node is tainted".to_string(), None)]);
}

/// G45, G47-G50.
#[test]
fn a_cut_off_allocation_is_unknown_until_it_expires_or_returns() {
    let waits = job("system", 1).with(lost_after(300));
    let mut world = World::with_nodes(2);
    world.register(waits);
    world.work_off();
    world.all_run();
    let alloc = on(&world, 1);
    world.silence(1);
    let outcome = world.work_off();
    assert_eq!(world.alloc(alloc).client, ClientStatus::Unknown);
    assert!(placed(&outcome).is_empty());
    assert_eq!(world.waiting(), [(300, Trigger::NodeUpdate)], "an expiry nobody else would notice");
    assert!(world.evaluate().settlement.plan.is_empty());

    let mut returned = World { state: world.state.clone(), now: world.now, ..World::new() };
    returned.heartbeat(1);
    assert!(returned.work_off().settlement.plan.is_empty());
    returned.report(alloc, ClientStatus::Running);
    let outcome = returned.work_off();
    assert_eq!(counters(&outcome), "ignore 1, reconnect 1");
    assert!(!returned.alloc(alloc).needs_to_reconnect());
    assert!(returned.evaluate().settlement.plan.is_empty());

    let eval = world.skip_to(Trigger::NodeUpdate);
    let outcome = world.settle(eval);
    assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
}

/// G60: a failed system allocation is placed again, with its predecessor.
#[test]
fn what_ended_is_placed_again() {
    let mut world = running("system", 2);
    let ended = on(&world, 1);
    world.report(ended, ClientStatus::Failed);
    let outcome = world.evaluate();
    assert_eq!(nodes(&outcome), [1]);
    let successor = world.wanted().into_iter().find(|alloc| alloc.previous == Some(ended));
    assert!(successor.is_some());
}

/// G52-G55.
#[test]
fn a_sysbatch_job_runs_once_per_node_and_version() {
    for status in [ClientStatus::Complete, ClientStatus::Failed] {
        let mut world = running("sysbatch", 2);
        let ended = on(&world, 1);
        world.report(ended, status);
        assert!(world.evaluate().settlement.plan.is_empty());
        world.silence(1);
        assert!(world.evaluate().settlement.plan.is_empty(), "finished work is not lost");
        world.heartbeat(1);
        let eval = world.register(job("sysbatch", 1).with(destructive));
        let outcome = world.settle(eval);
        assert_eq!(nodes(&outcome), [1, 2]);
        assert_eq!(world.alloc(on(&world, 1)).desired, Desired::Run);
    }
    let mut world = running("sysbatch", 1);
    world.report(on(&world, 1), ClientStatus::Complete);
    let eval = world.register(job("sysbatch", 1).with(|job| group(job).count = Some(1)));
    assert!(world.settle(eval).settlement.plan.is_empty());
}

/// G56.
#[test]
fn what_makes_room_for_others_leaves_its_place_and_its_node() {
    let mut world = running("sysbatch", 2);
    let evicted = on(&world, 1);
    world.event(model::event::AllocsStopped {
        allocs: vec![evicted],
        desired: Desired::Evict,
        description: "by hand".into(),
        client: None,
        follow_up: None,
    });
    assert!(world.evaluate().settlement.plan.is_empty());
}

/// G57.
#[test]
fn a_new_node_runs_a_sysbatch_job_when_somebody_asks() {
    let mut world = running("sysbatch", 2);
    world.node(3, |_| {});
    assert_eq!(world.pending(), []);
    assert_eq!(nodes(&world.evaluate()), [3]);
}

/// G60.
#[test]
fn what_is_placed_again_names_what_ended_on_its_own_node() {
    let mut world = running("system", 2);
    let ended = on(&world, 1);
    world.report(ended, ClientStatus::Failed);
    world.node(3, |_| {});
    let outcome = world.evaluate();
    assert_eq!(nodes(&outcome), [1, 3]);
    let previous = |node| world.alloc(on(&world, node)).previous;
    assert_eq!((previous(1), previous(3)), (Some(ended), None));
}

/// G63.
#[test]
fn each_group_fails_for_itself() {
    let mut world = World::new();
    world.node(1, small);
    let eval = world.register(job("system", 1).with(|job| {
        let mut other = job.task_groups[0].clone();
        other.name = Some("api".into());
        job.task_groups.push(other);
    }));
    let outcome = world.settle(eval);
    assert_eq!(queued(&outcome), [("api".to_string(), 1), ("web".to_string(), 1)]);
}

/// G64: what a node no longer takes is dropped from a plan, and the next attempt goes without it.
#[test]
fn a_plan_for_a_node_that_takes_nothing_any_more_is_made_again() {
    let mut world = World::with_nodes(3);
    let eval = world.register(job("system", 1));
    let late = world.plan(eval);
    world.eligible(2, Eligibility::Ineligible);
    let verdict = world.submit(model::Command::SettleEval(Box::new(late.settlement))).verdict.unwrap();
    let rejected: Vec<u128> = verdict.rejected.iter().map(|node| number(node.node)).collect();
    assert_eq!((verdict.full, verdict.placed, rejected), (false, 2, vec![2]));
    assert_eq!(world.eval(eval).status, model::EvalStatus::Pending);
    assert!(placed(&world.settle(eval)).is_empty());
    assert_eq!(world.eval(eval).status, model::EvalStatus::Complete);
}

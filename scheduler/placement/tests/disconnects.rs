//! Nodes that disconnect and reconnect (cases D, invariants P1 and P5).

use crate::support::*;
use base::Duration;
use model::document::Job;
use model::{Actor, ClientStatus, Command, Desired, EvalStatus, NodeStatus, Trigger};

const NOT_NEEDED: &str = "alloc not needed due to job update";
const ORIGINAL_BACK: &str = "alloc not needed due to disconnected client reconnect";

/// Lost after five minutes, replaced after `delay` seconds.
fn patient(count: i64, delay: i64) -> Job {
    job("service", count).with(lost_after(300)).with(|job| {
        group(job).reschedule_policy.get_or_insert_default().delay = Some(Duration::from_secs(delay).into());
    })
}

fn reconcile(strategy: &str) -> impl Fn(&mut Job) + '_ {
    move |job| disconnect(job).reconcile = Some(strategy.to_string())
}

/// The node of this allocation disconnects; its evaluation is settled.
fn cut_off(world: &mut World, index: u32) -> placement::Outcome {
    world.silence(world.node_of(world.named(index)));
    let eval = world.pending()[0];
    world.settle(eval)
}

/// The first step of a reconnect: the node reports, but not yet its allocations.
fn knock(world: &mut World, node: u128) -> placement::Outcome {
    world.heartbeat(node);
    assert_eq!(world.status_of(node), NodeStatus::Initializing);
    let eval = world.pending()[0];
    world.settle(eval)
}

/// D01, D02, D04, D15.
#[test]
fn a_cut_off_allocation_becomes_unknown_and_its_substitute_waits() {
    let mut world = World::running(patient(3, 30), 6);
    let alloc = world.named(0);
    let outcome = cut_off(&mut world, 0);
    assert_eq!(counters(&outcome), "ignore 3, disconnect 1, later 1");
    let waiting = [(30, Trigger::RescheduleLater), (300, Trigger::MaxDisconnectTimeout)];
    assert_eq!(world.waiting(), waiting);
    let row = world.alloc(alloc);
    assert_eq!((row.client, row.desired), (ClientStatus::Unknown, Desired::Run));
    assert_eq!(&*row.client_description, "alloc is unknown since its node is disconnected");
    let follow_up = world.eval(row.follow_up.unwrap());
    assert_eq!(follow_up.facts.description, "created for delayed rescheduling");
    assert!(world.evaluate().settlement.plan.is_empty());
    assert_eq!(world.waiting(), waiting);
}

/// D03, D17.
#[test]
fn a_substitute_that_is_due_is_placed_at_once() {
    let mut world = World::running(patient(3, 0), 6);
    let alloc = world.named(0);
    let outcome = cut_off(&mut world, 0);
    assert_eq!(counters(&outcome), "ignore 2, place 1, disconnect 1, now 1");
    assert_eq!((placed(&outcome), stopped_names(&world, &outcome)), (vec![0], vec![]));
    assert_eq!(world.alloc(world.named(0)).previous, Some(alloc));
    assert_eq!(counters(&world.evaluate()), "ignore 4", "both count, and none is too many");
}

/// D16, D18: the replacement is placed when it is due, the original is stopped when it is lost.
#[test]
fn the_follow_ups_place_the_substitute_and_give_the_original_up() {
    let mut world = World::running(patient(2, 30), 4);
    let alloc = world.named(1);
    cut_off(&mut world, 1);
    let eval = world.skip_to(Trigger::RescheduleLater);
    let outcome = world.settle(eval);
    assert_eq!((counters(&outcome), placed(&outcome)), ("ignore 1, place 1".to_string(), vec![1]));
    assert_eq!(
        (world.alloc(alloc).client, world.alloc(alloc).desired),
        (ClientStatus::Unknown, Desired::Run)
    );
    world.all_run();
    let eval = world.skip_to(Trigger::MaxDisconnectTimeout);
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 2, stop 1");
    assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
    assert_eq!(world.alloc(alloc).client, ClientStatus::Lost);
}

/// D05, D07.
#[test]
fn what_is_cut_off_together_shares_a_follow_up() {
    let mut world = World::running(patient(3, 0), 6);
    for index in [0, 1] {
        world.silence(world.node_of(world.named(index)));
    }
    let eval = world.pending()[0];
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 1, place 2, disconnect 2, now 2");
    assert_eq!(world.waiting(), [(300, Trigger::MaxDisconnectTimeout)]);
}

/// D08, D09, D19.
#[test]
fn without_replacement_the_original_is_waited_for() {
    for change in [
        (|job| disconnect(job).replace = Some(false)) as fn(&mut Job),
        |job| group(job).reschedule_policy = Some(limited(0, 0, 0)),
        |job| group(job).reschedule_policy = None,
    ] {
        let mut world = World::running(patient(2, 0).with(change), 4);
        let outcome = cut_off(&mut world, 0);
        assert_eq!(counters(&outcome), "ignore 2, disconnect 1");
        assert_eq!(world.waiting(), [(300, Trigger::MaxDisconnectTimeout)]);
        let eval = world.skip_to(Trigger::MaxDisconnectTimeout);
        let outcome = world.settle(eval);
        assert_eq!(
            (counters(&outcome), placed(&outcome)),
            ("ignore 1, place 1, stop 1".to_string(), vec![0])
        );
    }
}

/// D11, D12.
#[test]
fn what_does_not_run_or_may_not_wait_is_lost() {
    let mut world = World::with_nodes(4);
    world.register(patient(2, 0));
    world.work_off();
    world.report(world.named(1), ClientStatus::Running);
    let pending = world.named(0);
    let outcome = cut_off(&mut world, 0);
    assert_eq!(world.alloc(pending).client, ClientStatus::Lost);
    assert_eq!(counters(&outcome), "ignore 1, place 1, stop 1");

    let mut world = World::running(job("service", 2), 4);
    let outcome = cut_off(&mut world, 0);
    assert_eq!((counters(&outcome), world.waiting()), ("ignore 1, place 1, stop 1".to_string(), vec![]));
}

/// D24, D25: the node goes down before its allocations expired.
#[test]
fn a_dead_node_loses_what_may_be_replaced() {
    for (replace, expected) in [(true, "ignore 1, place 1, stop 1"), (false, "ignore 2")] {
        let job = patient(2, 30).with(|job| disconnect(job).replace = Some(replace));
        let mut world = World::running(job, 4);
        let alloc = world.named(0);
        cut_off(&mut world, 0);
        let node = world.node_of(alloc);
        // Another group of the node's allocations expired: nothing keeps it merely disconnected.
        world.set_node(node, NodeStatus::Down);
        assert_eq!(counters(&world.evaluate()), expected, "replace {replace}");
    }
}

/// D31, D33, D36, P1: connected again, not replaced, kept; and the reconnect is recorded once.
#[test]
fn an_original_that_comes_back_stays() {
    let mut world = World::running(patient(2, 30), 4);
    let alloc = world.named(0);
    let node = world.node_of(alloc);
    cut_off(&mut world, 0);
    let outcome = knock(&mut world, node);
    assert!(outcome.settlement.plan.is_empty(), "it has not been heard yet, but its node has");
    assert_eq!(counters(&outcome), "ignore 2");
    // Its time for a replacement passes while the node is connected: none is placed.
    world.pass(60);
    assert!(world.evaluate().settlement.plan.is_empty());
    world.report(alloc, ClientStatus::Running);
    let eval = *world.pending().last().unwrap();
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 2, reconnect 1");
    assert!(!world.alloc(alloc).needs_to_reconnect());
    assert_eq!(counters(&world.evaluate()), "ignore 2");
}

/// An original on `node` that is back and running, beside its running substitute.
fn both_run(strategy: &str) -> World {
    let mut world = World::running(patient(3, 0).with(reconcile(strategy)), 6);
    let alloc = world.named(0);
    let node = world.node_of(alloc);
    cut_off(&mut world, 0);
    world.all_run();
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    world
}

/// D38, D39, D47, D50.
#[test]
fn the_strategy_picks_between_original_and_substitute() {
    for (strategy, expected, words) in [
        ("keep_original", "ignore 3, stop 1, reconnect 1", ORIGINAL_BACK),
        ("best_score", "ignore 3, stop 1, reconnect 1", ORIGINAL_BACK),
        ("", "ignore 3, stop 1, reconnect 1", ORIGINAL_BACK),
        ("keep_replacement", "ignore 3, stop 1", NOT_NEEDED),
    ] {
        let mut world = both_run(strategy);
        let eval = *world.pending().last().unwrap();
        let outcome = world.settle(eval);
        assert_eq!(counters(&outcome), expected, "{strategy}");
        assert_eq!(stopped(&world, &outcome), [(0, words.to_string(), None)], "{strategy}");
        let names: Vec<u32> = world.wanted().iter().map(|alloc| alloc.name_index).collect();
        assert_eq!(names, [0, 1, 2]);
    }
}

/// D41: a substitute of a newer version wins.
#[test]
fn an_older_version_does_not_come_back() {
    let mut world = World::running(patient(2, 0).with(reconcile("keep_original")), 4);
    let alloc = world.named(0);
    let node = world.node_of(alloc);
    cut_off(&mut world, 0);
    world.all_run();
    let newer = patient(2, 0).with(reconcile("keep_original")).with(destructive);
    world.register(newer);
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    let eval = *world.pending().last().unwrap();
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "stop 1, destructive 2");
    assert_eq!(world.alloc(alloc).desired_description.as_ref(), NOT_NEEDED);
}

/// D61, D62.
#[test]
fn what_failed_while_it_was_away_is_replaced_once() {
    for substituted in [true, false] {
        let mut world = World::running(patient(2, if substituted { 0 } else { 30 }), 4);
        let alloc = world.named(0);
        let node = world.node_of(alloc);
        cut_off(&mut world, 0);
        world.all_run();
        world.heartbeat(node);
        world.report(alloc, ClientStatus::Failed);
        let eval = *world.pending().last().unwrap();
        let outcome = world.settle(eval);
        let expected = if substituted { "ignore 2, stop 1" } else { "ignore 2, later 1" };
        assert_eq!(counters(&outcome), expected);
        if !substituted {
            let due = world.skip_to(Trigger::RescheduleLater);
            assert_eq!(placed(&world.settle(due)), [0]);
        }
        let ended = world.alloc(alloc);
        assert_eq!((ended.desired, ended.client), (Desired::Stop, ClientStatus::Failed));
        assert_eq!(&*ended.desired_description, "alloc was rescheduled because it failed");
    }
}

/// D72: unlike in Nomad, a substitute that dies in the same pass must not win against a running original.
#[test]
fn a_dying_substitute_does_not_win() {
    let mut world = both_run("keep_replacement");
    let substitute =
        world.wanted().iter().filter(|alloc| alloc.previous.is_some()).map(|a| a.id).next().unwrap();
    world.set_node(world.node_of(substitute), NodeStatus::Down);
    let eval = *world.pending().last().unwrap();
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 3, stop 1, reconnect 1");
    assert_eq!(stopped(&world, &outcome)[0].1, ORIGINAL_BACK);
    assert!(placed(&outcome).is_empty());
}

/// D73.
#[test]
fn a_substitute_that_is_cut_off_loses_and_is_not_marked() {
    let mut world = both_run("keep_original");
    let substitute = world.wanted().iter().find(|alloc| alloc.previous.is_some()).map(|a| a.id).unwrap();
    world.silence(world.node_of(substitute));
    let eval = *world.pending().last().unwrap();
    let outcome = world.settle(eval);
    assert!(outcome.settlement.plan.unknown.is_empty());
    assert_eq!(world.alloc(substitute).desired, Desired::Stop);
}

/// D71: unlike in Nomad, the whole chain of substitutes is looked at.
#[test]
fn a_later_substitute_is_found_behind_a_failed_one() {
    let mut world = World::running(patient(2, 0).with(reconcile("keep_original")), 4);
    let alloc = world.named(0);
    let node = world.node_of(alloc);
    cut_off(&mut world, 0);
    world.all_run();
    world.report(world.named(0), ClientStatus::Failed);
    let eval = world.pending()[0];
    assert_eq!(placed(&world.settle(eval)), [0]);
    world.all_run();
    let second = world.named(0);
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    let eval = *world.pending().last().unwrap();
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 2, stop 1, reconnect 1");
    assert_eq!(world.alloc(second).desired, Desired::Stop);
}

/// D66, P5.
#[test]
fn what_is_wanted_to_stop_does_not_reconnect() {
    for kind in ["service", "batch"] {
        let mut world = World::running(job(kind, 2).with(lost_after(300)), 4);
        let alloc = world.named(1);
        let node = world.node_of(alloc);
        cut_off(&mut world, 1);
        let eval = world.register(job(kind, 0).with(lost_after(300)));
        world.settle(eval);
        assert_eq!(world.alloc(alloc).desired, Desired::Stop);
        world.heartbeat(node);
        world.report(alloc, ClientStatus::Running);
        let outcome = world.work_off();
        assert!(outcome.settlement.plan.is_empty(), "{kind}: {:?}", outcome.settlement.plan);
    }
}

/// D84.
#[test]
fn a_stopped_job_stops_what_is_unknown_too() {
    let mut world = World::running(patient(2, 30), 4);
    cut_off(&mut world, 0);
    let eval = world.deregister(false);
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "stop 2");
}

/// D86, D87: unlike in Nomad, any evaluation replaces what is due, and a blocked one too.
#[test]
fn a_due_substitute_does_not_depend_on_one_evaluation() {
    for kind in ["service", "batch"] {
        let job = job(kind, 1).with(lost_after(300));
        let mut world = World::with_nodes(1);
        world.register(job);
        world.work_off();
        world.all_run();
        world.silence(1);
        let eval = world.pending()[0];
        world.settle(eval);
        let eval = world.skip_to(Trigger::RescheduleLater);
        let outcome = world.settle(eval);
        assert!(!is_placed_in_full(&outcome), "{kind}: there is no other node");
        world.node(2, |_| {});
        let blocked = world.unblocked()[0];
        let outcome = world.settle(blocked);
        assert_eq!((placed(&outcome), stopped_names(&world, &outcome)), (vec![0], vec![]), "{kind}");
    }
}

/// D13.
#[test]
fn work_that_finished_is_never_lost() {
    let mut world = World::running(job("batch", 2).with(lost_after(300)), 4);
    world.report(world.named(0), ClientStatus::Complete);
    world.silence(world.node_of(world.named(0)));
    assert!(world.evaluate().settlement.plan.is_empty());
}

/// A lost substitute of an unknown original is replaced once, not twice.
#[test]
fn a_lost_substitute_is_replaced_once() {
    let mut world = World::running(patient(1, 0), 4);
    cut_off(&mut world, 0);
    let substitute = world.named(0);
    world.set_node(world.node_of(substitute), NodeStatus::Down);
    let outcome = world.evaluate();
    assert_eq!((placed(&outcome), stopped_names(&world, &outcome)), (vec![0], vec![0]));
    world.all_run();
    assert_eq!(counters(&world.evaluate()), "ignore 2");
}

/// D37, D60.
#[test]
fn a_substitute_that_fits_better_wins_against_an_original_that_was_not_heard_yet() {
    for strategy in [Some("best_score"), Some(""), None] {
        let ours = patient(1, 0).with(|job| disconnect(job).reconcile = strategy.map(str::to_string));
        let mut world = World::with_nodes(1);
        world.register(ours);
        world.work_off();
        world.all_run();
        let original = world.named(0);
        // Another job's work makes the second node the fuller one.
        world.node(2, |_| {});
        world.register(job("service", 1).with(|job| {
            job.id = Some("other".into());
            job.constraints.push(constraint("${node.unique.name}", "=", "n2"));
        }));
        world.work_off();
        world.silence(1);
        let eval = world.pending()[0];
        assert_eq!(nodes(&world.settle(eval)), [2]);
        world.all_run();
        let outcome = knock(&mut world, 1);
        assert_eq!(world.alloc(original).client, ClientStatus::Unknown);
        assert_eq!(counters(&outcome), "ignore 1, stop 1", "{strategy:?}");
        assert_eq!(world.alloc(original).desired_description.as_ref(), NOT_NEEDED);
    }
}

/// D42: a purged job is deleted with its allocations; a new job of its name keeps what it runs.
#[test]
fn an_original_of_a_purged_job_does_not_come_back() {
    let ours = || patient(1, 0).with(reconcile("keep_original"));
    let mut world = World::running(ours(), 2);
    let original = world.named(0);
    let node = world.node_of(original);
    cut_off(&mut world, 0);
    let update = world.update(original, ClientStatus::Running);
    world.deregister(true);
    world.register(ours());
    world.work_off();
    world.all_run();
    let kept = world.named(0);
    world.heartbeat(node);
    let node = node_id(node);
    world.command(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] });
    assert!(world.evaluate().settlement.plan.is_empty());
    assert_eq!(world.wanted().iter().map(|alloc| alloc.id).collect::<Vec<_>>(), [kept]);
}

/// D78, D79: once it reconnected it waits for nothing; others may still wait for the same evaluation.
#[test]
fn who_is_heard_again_takes_its_follow_up_along_unless_others_wait_for_it() {
    let mut world = World::running(patient(3, 30), 3);
    let away = [world.named(0), world.named(1)];
    let on = away.map(|alloc| world.node_of(alloc));
    on.into_iter().for_each(|node| world.silence(node));
    let eval = world.pending()[0];
    world.settle(eval);
    let follow_up = world.alloc(away[0]).follow_up.unwrap();
    assert_eq!(world.alloc(away[1]).follow_up, Some(follow_up));
    for (returns, ended) in [(0, false), (1, true)] {
        world.heartbeat(on[returns]);
        world.report(away[returns], ClientStatus::Running);
        assert_eq!(world.alloc(away[returns]).follow_up, None);
        assert_eq!(world.eval(follow_up).status == EvalStatus::Canceled, ended);
        let eval = *world.pending().last().unwrap();
        assert_eq!(world.eval(eval).facts.trigger, Trigger::Reconnect);
    }
    assert_eq!(world.eval(follow_up).description, "allocs reconnected");
}

//! Failed allocations and their successors (cases E).

use crate::support::*;
use base::Duration;
use model::document::Job;
use model::{Actor, AllocId, ClientStatus, Command, Trigger};

const RESCHEDULED: &str = "alloc was rescheduled because it failed";

fn with_policy(kind: &str, count: i64, attempts: i64, interval: i64, delay: i64) -> Job {
    job(kind, count).with(|job| group(job).reschedule_policy = Some(limited(attempts, interval, delay)))
}

fn fail(world: &mut World, index: u32) -> placement::Outcome {
    world.report(world.named(index), ClientStatus::Failed);
    let eval = world.pending()[0];
    world.settle(eval)
}

/// E01, E02, E04.
#[test]
fn a_failed_allocation_waits_for_its_delay() {
    let mut world = World::running(job("service", 3), 6);
    let failed = world.named(1);
    let outcome = fail(&mut world, 1);
    assert_eq!((counters(&outcome), placed(&outcome)), ("ignore 3, later 1".to_string(), vec![]));
    assert_eq!(world.waiting(), [(30, Trigger::RescheduleLater)]);
    assert_eq!(outcome.settlement.plan.follow_ups[0].description, "created for delayed rescheduling");
    let early = world.evaluate();
    assert!(early.settlement.plan.is_empty(), "the waiting evaluation covers it");

    let eval = world.skip_to(Trigger::RescheduleLater);
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 2, place 1, stop 1");
    assert_eq!(stopped(&world, &outcome), [(1, RESCHEDULED.to_string(), None)]);
    assert_eq!(world.alloc(world.named(1)).previous, Some(failed));
}

/// E03.
#[test]
fn what_is_due_within_a_second_is_due() {
    let mut world = World::running(job("service", 1), 3);
    fail(&mut world, 0);
    world.pass(29);
    assert_eq!(counters(&world.evaluate()), "place 1, stop 1");
}

/// E06.
#[test]
fn neighbours_in_time_share_a_follow_up() {
    let mut world = World::running(job("service", 7), 14);
    for index in 0..5 {
        world.report(world.named(index), ClientStatus::Failed);
    }
    world.pass(10);
    world.report(world.named(5), ClientStatus::Failed);
    world.report(world.named(6), ClientStatus::Failed);
    let eval = world.pending()[0];
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "ignore 7, later 7");
    assert_eq!(world.waiting(), [(20, Trigger::RescheduleLater), (30, Trigger::AllocFailure)]);
    let eval = world.skip_to(Trigger::RescheduleLater);
    assert_eq!(counters(&world.settle(eval)), "ignore 2, place 5, stop 5, later 2");
    assert_eq!(world.waiting(), [(10, Trigger::AllocFailure)], "it is still covered");
}

/// E07: what no policy covers stays as it is.
#[test]
fn without_a_policy_a_failure_stays() {
    let mut world = World::running(with_policy("service", 2, 0, 0, 0), 4);
    world.report(world.named(0), ClientStatus::Failed);
    assert!(world.pending().is_empty());
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome), outcome.settlement.plan.is_empty()), ("ignore 2".to_string(), true));
}

/// E08, E09, E44, E45: attempts are counted along the chain of predecessors.
#[test]
fn attempts_run_out_and_come_back() {
    for kind in ["service", "batch"] {
        let mut world = World::running(with_policy(kind, 1, 1, 24 * 3600, 5), 4);
        assert_eq!(counters(&fail(&mut world, 0)), "ignore 1, later 1", "{kind}");
        let eval = world.skip_to(Trigger::RescheduleLater);
        assert_eq!(counters(&world.settle(eval)), "place 1, stop 1", "{kind}");
        world.all_run();
        world.pass(3600);
        world.report(world.named(0), ClientStatus::Failed);
        // What a batch job stopped is still looked at, and ignored.
        let expected = if kind == "batch" { "ignore 2" } else { "ignore 1" };
        assert_eq!(counters(&world.evaluate()), expected, "{kind}: one attempt in a day");
        assert!(world.waiting().is_empty());
    }
    let mut world = World::running(with_policy("service", 1, 1, 24 * 3600, 5), 4);
    fail(&mut world, 0);
    let eval = world.skip_to(Trigger::RescheduleLater);
    world.settle(eval);
    world.all_run();
    world.pass(25 * 3600);
    world.report(world.named(0), ClientStatus::Failed);
    assert_eq!(counters(&world.evaluate()), "ignore 1, later 1", "a day later it may fail again");
}

/// E14 over real allocations.
#[test]
fn delays_grow_along_the_chain() {
    let mut world = World::running(job("service", 1), 6);
    let mut delays = Vec::new();
    for _ in 0..4 {
        world.report(world.named(0), ClientStatus::Failed);
        world.evaluate();
        delays.push(world.waiting()[0].0);
        let eval = world.skip_to(Trigger::RescheduleLater);
        world.settle(eval);
        world.all_run();
    }
    assert_eq!(delays, [30, 60, 120, 240]);
}

/// E19.
#[test]
fn an_allocation_failed_when_its_last_task_ended() {
    for (ended, expected) in [([10, 40], 20), ([0, 0], 30)] {
        let mut world = World::running(job("service", 1), 2);
        world.pass(50);
        let alloc = world.named(0);
        let mut update = world.update(alloc, ClientStatus::Failed);
        for (name, ended) in ["main", "side"].into_iter().zip(ended) {
            let mut told = update.task_states["main"].clone();
            told.finished_at =
                if ended > 0 { START.plus(Duration::from_secs(ended)).into() } else { Default::default() };
            update.task_states.insert(name.into(), told);
        }
        let node = world.alloc(alloc).node_id;
        world.command(Actor::Node(node), Command::UpdateAllocs { node, updates: vec![update] });
        world.evaluate();
        assert_eq!(world.waiting(), [(expected, Trigger::RescheduleLater)], "ended at {ended:?}");
    }
}

/// The attempts that are shown of the allocation: seconds from the start on, and delays.
fn shown(world: &World, alloc: AllocId) -> Vec<(i64, i64)> {
    let document = state::alloc::document(&world.state, world.alloc(alloc));
    let tracker = document.reschedule_tracker.expect("there were attempts");
    assert_eq!(tracker.last_reschedule, "ok");
    let since = |nanos: i64| base::Time(nanos).since(START).as_millis() / 1000;
    let events = tracker.events.iter();
    events.map(|event| (since(event.reschedule_time), event.delay.0.as_millis() / 1000)).collect()
}

/// E20.
#[test]
fn a_long_chain_of_attempts_keeps_the_longest_delay() {
    let mut world = World::running(job("service", 1), 2);
    let mut delays = Vec::new();
    for _ in 0..40 {
        world.report(world.named(0), ClientStatus::Failed);
        world.evaluate();
        delays.push(world.waiting()[0].0);
        let eval = world.skip_to(Trigger::RescheduleLater);
        world.settle(eval);
        world.all_run();
    }
    assert_eq!(delays[..8], [30, 60, 120, 240, 480, 960, 1920, 3600]);
    assert!(delays[8..].iter().all(|delay| *delay == 3600), "{delays:?}");
    let last = shown(&world, world.named(0));
    assert_eq!(last.len(), 6, "the newest, and five before it");
    assert!(last.is_sorted() && last[5].0 == world.now.since(START).as_millis() / 1000);
}

/// E21.
#[test]
fn attempts_before_the_interval_are_forgotten_and_later_ones_count() {
    let mut world = World::running(with_policy("service", 1, 2, 600, 5), 8);
    let fail_at = |world: &mut World, secs: i64| {
        world.now = START.plus(Duration::from_secs(secs));
        world.report(world.named(0), ClientStatus::Failed);
        world.evaluate();
        let again = !world.waiting().is_empty();
        if again {
            let eval = world.skip_to(Trigger::RescheduleLater);
            world.settle(eval);
            world.all_run();
        }
        again
    };
    assert!(fail_at(&mut world, 100) && fail_at(&mut world, 500));
    assert_eq!(shown(&world, world.named(0)), [(105, 5), (505, 5)]);
    assert!(fail_at(&mut world, 800), "the first attempt is 695 seconds old");
    assert_eq!(shown(&world, world.named(0)), [(505, 5), (805, 5)]);
    assert!(!fail_at(&mut world, 900), "the second and the third are not");
}

/// E22, E23: what its predecessor waited for is what doubles, whatever the policy says by now.
#[test]
fn the_delay_that_was_used_is_the_one_that_grows() {
    let mut world = World::running(job("service", 1), 4);
    let failed = world.named(0);
    fail(&mut world, 0);
    world.register(job("service", 1).with(|job| {
        let policy = group(job).reschedule_policy.get_or_insert_default();
        policy.delay = Some(Duration::from_secs(100).into());
    }));
    let eval = world.skip_to(Trigger::RescheduleLater);
    world.settle(eval);
    world.all_run();
    let successor = world.named(0);
    assert_eq!((world.alloc(failed).next, world.alloc(successor).previous), (Some(successor), Some(failed)));
    assert_eq!(&*world.alloc(failed).desired_description, RESCHEDULED);
    assert_eq!((shown(&world, failed), shown(&world, successor)), (vec![], vec![(30, 30)]));
    world.report(successor, ClientStatus::Failed);
    world.evaluate();
    assert_eq!(world.waiting(), [(60, Trigger::RescheduleLater)]);
}

/// A moved allocation starts anew.
#[test]
fn only_reschedules_count_as_attempts() {
    let mut world = World::running(with_policy("service", 1, 1, 24 * 3600, 0), 6);
    world.stop_alloc(world.named(0), false);
    world.work_off();
    world.all_run();
    assert_eq!(counters(&fail(&mut world, 0)), "place 1, stop 1");
}

/// E13, E24, E25.
#[test]
fn a_failure_without_room_stays_and_is_tried_again() {
    let mut world = World::with_nodes(1);
    world.register(with_policy("service", 1, 1, 3600, 0));
    world.work_off();
    world.all_run();
    world.eligible(1, model::Eligibility::Ineligible);
    let outcome = fail(&mut world, 0);
    assert!(outcome.settlement.plan.is_empty(), "it is not stopped in vain");
    assert!(!is_placed_in_full(&outcome));
    world.node(2, |_| {});
    let blocked = world.unblocked()[0];
    let outcome = world.settle(blocked);
    assert_eq!((nodes(&outcome), stopped_names(&world, &outcome)), (vec![2], vec![0]));
}

/// E26.
#[test]
fn room_does_not_hasten_what_waits_for_its_time() {
    let mut world = World::running(job("service", 2), 1);
    let (early, late) = (world.named(0), world.named(1));
    world.report(early, ClientStatus::Failed);
    world.pass(20);
    world.report(late, ClientStatus::Failed);
    world.evaluate();
    (1..=2).for_each(|node| world.eligible(node, model::Eligibility::Ineligible));
    let eval = world.skip_to(Trigger::RescheduleLater);
    let outcome = world.settle(eval);
    assert!(outcome.settlement.plan.is_empty() && !is_placed_in_full(&outcome));
    (3..=4).for_each(|node| world.node(node, |_| {}));
    let blocked = world.unblocked()[0];
    let outcome = world.settle(blocked);
    assert_eq!((placed(&outcome), stopped_names(&world, &outcome)), (vec![0], vec![0]));
    assert_eq!(world.alloc(late).next, None, "it waits for its own evaluation");
    assert!(world.evaluate().settlement.plan.is_empty());
}

/// E27-E29.
#[test]
fn a_successor_avoids_the_nodes_its_predecessors_failed_on() {
    let at_once = with_policy("service", 1, 9, 24 * 3600, 0);
    let mut world = World::running(at_once.clone(), 2);
    let mut seen = vec![world.node_of(world.named(0))];
    for _ in 0..3 {
        let outcome = fail(&mut world, 0);
        let shown = &world.wanted()[0].metrics.score_meta_data;
        let penalised = shown.iter().filter(|score| score.scores["node-reschedule-penalty"] < 0.0).count();
        assert_eq!(penalised, seen.len());
        seen.extend(nodes(&outcome));
        world.all_run();
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4]);

    let mut world = World::with_nodes(1);
    world.register(at_once);
    world.work_off();
    world.all_run();
    assert_eq!(nodes(&fail(&mut world, 0)), [1], "a bad node is better than none");
}

/// E30.
#[test]
fn a_node_that_only_lost_an_allocation_is_not_held_against_it() {
    let patient = |job: &mut Job| {
        lost_after(300)(job);
        disconnect(job).replace = Some(false);
    };
    let mut world = World::running(with_policy("service", 1, 9, 24 * 3600, 0).with(patient), 2);
    let failed_on = world.node_of(world.named(0));
    fail(&mut world, 0);
    world.all_run();
    let lost_on = world.node_of(world.named(0));
    world.silence(lost_on);
    world.evaluate();
    world.pass(400);
    world.set_node(lost_on, model::NodeStatus::Ready);
    let outcome = world.evaluate();
    assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
    let shown = &world.wanted()[0].metrics.score_meta_data;
    assert_eq!(shown.len(), 4);
    let penalised = shown.iter().filter(|score| score.scores["node-reschedule-penalty"] < 0.0);
    assert_eq!(penalised.map(|score| &score.node_id).collect::<Vec<_>>(), [&node_id(failed_on).to_string()]);
}

/// E42.
#[test]
fn a_replaced_failure_is_not_replaced_again() {
    let mut world = World::running(with_policy("service", 2, 5, 3600, 0), 4);
    fail(&mut world, 0);
    for _ in 0..2 {
        assert_eq!(counters(&world.evaluate()), "ignore 2");
    }
}

/// E46.
#[test]
fn a_stopped_batch_allocation_leaves_its_place() {
    let mut world = World::running(job("batch", 1), 4);
    let alloc = world.named(0);
    world.tell_to_end(alloc);
    assert_eq!(counters(&world.evaluate()), "ignore 1, place 1");
}

/// B56.
#[test]
fn a_failure_beside_enough_others_is_still_replaced() {
    let mut world = World::running(with_policy("service", 6, 5, 3600, 0), 12);
    world.report(world.named(3), ClientStatus::Failed);
    let eval = world.register(with_policy("service", 5, 5, 3600, 0));
    let outcome = world.settle(eval);
    assert_eq!(counters(&outcome), "place 1, stop 1, in-place 5");
    assert_eq!(stopped_names(&world, &outcome), [3]);
}

#[test]
fn a_follow_up_that_was_lost_is_made_again() {
    let mut world = World::running(job("service", 1), 3);
    fail(&mut world, 0);
    let eval = world
        .state
        .evals
        .iter()
        .find(|(_, eval)| eval.facts.wait_until > world.now)
        .map(|(_, eval)| eval.id());
    world.event(model::event::EvalsCanceled { evals: eval.into_iter().collect(), cause: "test".into() });
    assert!(world.waiting().is_empty());
    world.pass(10);
    world.evaluate();
    assert_eq!(world.waiting(), [(20, Trigger::RescheduleLater)]);
    assert_eq!(world.now.since(START), Duration::from_secs(10));
}

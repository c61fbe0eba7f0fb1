//! More of nodes that disconnect and reconnect (the cases D and E with several steps).

use crate::support::*;
use base::Duration;
use model::document::{Job, ReschedulePolicy};
use model::event::{AllocTransitionRequested, AllocsMarkedUnknown, AllocsPlaced};
use model::{ClientStatus, Command, Doc, Trigger};

/// Lost after five minutes, replaced at once.
fn patient(count: i64) -> Job {
    let delay = Some(Duration::ZERO.into());
    let policy = ReschedulePolicy { unlimited: Some(true), delay, ..ReschedulePolicy::default() };
    job("service", count).with(lost_after(300)).with(|job| group(job).reschedule_policy = Some(policy))
}

fn alone(job: &mut Job) {
    disconnect(job).replace = Some(false);
}

fn keeps(strategy: &str) -> impl Fn(&mut Job) + '_ {
    move |job| disconnect(job).reconcile = Some(strategy.to_string())
}

fn next(world: &mut World) -> placement::Outcome {
    let next = world.pending()[0];
    world.settle(next)
}

/// The node of this allocation disconnects.
fn cut_off(world: &mut World, name: u32) -> u128 {
    let node = world.node_of(world.named(name));
    world.silence(node);
    node
}

/// D06.
#[test]
fn each_group_waits_by_itself() {
    let two = |job: &mut Job| {
        let mut other = job.task_groups[0].clone();
        other.name = Some("api".into());
        other.disconnect.as_mut().unwrap().lost_after = Some(Duration::from_secs(62).into());
        job.task_groups.push(other);
        job.constraints.clear();
    };
    let mut world = World::with_nodes(1);
    world.run(patient(1).with(alone).with(lost_after(60)).with(two));
    world.all_run();
    world.silence(1);
    next(&mut world);
    assert_eq!(world.waiting(), [(60, Trigger::MaxDisconnectTimeout), (62, Trigger::MaxDisconnectTimeout)]);
}

/// D12.
#[test]
fn what_never_ran_is_lost_at_once() {
    let mut world = World::with_nodes(4);
    world.run(patient(2));
    cut_off(&mut world, 0);
    let outcome = next(&mut world);
    assert_eq!(counters(&outcome), "ignore 1, place 1, stop 1");
    assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
}

/// D20.
#[test]
fn who_stayed_away_too_long_is_lost_also_when_its_node_knocks() {
    let mut world = World::running(patient(2).with(alone), 2);
    let node = cut_off(&mut world, 0);
    next(&mut world);
    world.pass(400);
    world.heartbeat(node);
    let eval = world.evaluate();
    assert_eq!(stopped(&world, &eval)[0].2, Some(ClientStatus::Lost));
}

/// D21.
#[test]
fn the_lost_are_not_replaced_twice() {
    let mut world = World::running(patient(5), 5);
    cut_off(&mut world, 0);
    cut_off(&mut world, 1);
    assert_eq!(counters(&next(&mut world)), "ignore 3, place 2, disconnect 2, now 2");
    world.all_run();
    world.pass(400);
    assert_eq!(counters(&world.evaluate()), "ignore 5, stop 2");
}

/// D22.
#[test]
fn without_patience_the_cut_off_are_lost() {
    let mut world = World::running(patient(2).with(alone), 2);
    cut_off(&mut world, 0);
    next(&mut world);
    let impatient = |job: &mut Job| disconnect(job).lost_after = Some(Duration::ZERO.into());
    world.run(patient(2).with(alone).with(impatient));
    let outcome = world.evaluate();
    assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
}

/// D29, D30.
#[test]
fn nothing_is_waited_for_on_a_node_that_is_forgotten() {
    for secs in [10, 400] {
        let mut world = World::running(patient(2).with(alone), 2);
        let node = cut_off(&mut world, 0);
        next(&mut world);
        world.pass(secs);
        world.forget(node);
        let outcome = world.evaluate();
        assert_eq!(counters(&outcome), "ignore 1, place 1, stop 1");
        assert_eq!(stopped(&world, &outcome)[0].2, Some(ClientStatus::Lost));
    }
}

/// D32.
#[test]
fn all_that_return_stay() {
    let mut world = World::running(patient(2).with(alone), 2);
    let away = [cut_off(&mut world, 0), cut_off(&mut world, 1)];
    next(&mut world);
    away.into_iter().for_each(|node| world.heartbeat(node));
    world.all_run();
    let returned =
        world.pending().into_iter().find(|eval| world.eval(*eval).facts.trigger == Trigger::Reconnect);
    let outcome = world.settle(returned.unwrap());
    assert_eq!(counters(&outcome), "ignore 2, reconnect 2");
}

/// Away and back again; the return is on record.
fn away_and_back(world: &mut World, name: u32) -> placement::Outcome {
    let alloc = world.named(name);
    let node = cut_off(world, name);
    world.work_off();
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    world.heartbeat(node);
    let evals = world.pending();
    let returned = evals.iter().find(|eval| world.eval(**eval).facts.trigger == Trigger::Reconnect);
    let outcome = world.settle(*returned.unwrap());
    if !world.pending().is_empty() {
        world.work_off();
    }
    outcome
}

/// D34.
#[test]
fn each_return_is_recorded() {
    let mut world = World::running(patient(1).with(alone), 2);
    for _ in 0..2 {
        assert_eq!(counters(&away_and_back(&mut world, 0)), "ignore 1, reconnect 1");
    }
}

/// D35.
#[test]
fn who_returned_is_updated_like_the_others() {
    let mut world = World::running(patient(1).with(alone), 2);
    away_and_back(&mut world, 0);
    let longer = |job: &mut Job| task(job).kill_timeout = Some(Duration::from_secs(9).into());
    assert_eq!(counters(&world.run(patient(1).with(alone).with(longer))), "in-place 1");
}

/// D67.
#[test]
fn who_was_asked_to_move_moves_when_it_returns() {
    let mut world = World::running(patient(1).with(alone), 3);
    let alloc = world.named(0);
    let node = cut_off(&mut world, 0);
    world.work_off();
    world.drain(vec![alloc]);
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    let outcome = world.evaluate();
    assert_eq!(stopped(&world, &outcome)[0].1, "alloc is being migrated");
    assert_eq!(placed(&outcome), [0]);
}

/// D68.
#[test]
fn who_is_to_be_replaced_does_not_stay_when_it_returns() {
    for force_reschedule in [false, true] {
        let mut world = World::running(patient(1).with(alone), 3);
        let alloc = world.named(0);
        let node = cut_off(&mut world, 0);
        world.work_off();
        world.event(AllocTransitionRequested {
            allocs: vec![alloc],
            migrate: false,
            reschedule: !force_reschedule,
            no_shutdown_delay: false,
            force_reschedule,
            disable_placement: false,
            cause: "test".into(),
        });
        world.heartbeat(node);
        world.report(alloc, ClientStatus::Running);
        let outcome = world.evaluate();
        assert_eq!(stopped(&world, &outcome)[0].1, "alloc not needed due to job update");
    }
}

/// D69.
#[test]
fn who_returns_with_an_older_version_gives_way() {
    let mut world = World::running(patient(1).with(alone), 3);
    let alloc = world.named(0);
    let node = cut_off(&mut world, 0);
    world.work_off();
    let eval = world.register(patient(1).with(alone).with(destructive));
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Running);
    let outcome = world.settle(eval);
    assert_eq!((counters(&outcome).as_str(), placed(&outcome)), ("place 1, stop 1", vec![0]));
}

/// D70.
#[test]
fn all_substitutes_in_a_chain_give_way() {
    let mut world = World::running(patient(1).with(keeps("keep_original")), 6);
    let original = world.named(0);
    let first = cut_off(&mut world, 0);
    world.work_off();
    world.all_run();
    // The replacement becomes unknown too, and gets one of its own.
    let second = world.node_of(world.named(0));
    world.silence(second);
    world.work_off();
    world.all_run();
    world.heartbeat(first);
    world.report(original, ClientStatus::Running);
    let outcome = world.evaluate();
    assert_eq!(stopped(&world, &outcome).len(), 2);
    assert!(world.wanted().iter().all(|alloc| alloc.id == original));
}

/// D85.
#[test]
fn a_group_that_is_removed_takes_the_cut_off_along() {
    let mut world = World::running(patient(1).with(alone), 2);
    cut_off(&mut world, 0);
    world.work_off();
    world.pass(400);
    let outcome = world.run(patient(1).with(alone).with(|job| group(job).name = Some("api".into())));
    assert_eq!(stopped(&world, &outcome)[0].1, "alloc not needed due to job update");
}

/// D63.
#[test]
fn originals_and_substitutes_that_failed_give_way_to_new_ones() {
    let mut world = World::running(patient(5), 5);
    let originals = [world.named(0), world.named(1)];
    let away = [cut_off(&mut world, 0), cut_off(&mut world, 1)];
    world.work_off();
    let substitutes = [world.named(0), world.named(1)];
    world.all_run();
    substitutes.into_iter().for_each(|alloc| world.report(alloc, ClientStatus::Failed));
    away.into_iter().for_each(|node| world.heartbeat(node));
    originals.into_iter().for_each(|alloc| world.report(alloc, ClientStatus::Failed));
    let outcome = world.evaluate();
    assert_eq!(counters(&outcome), "ignore 3, place 2, stop 4");
    assert_eq!(placed(&outcome), [0, 1]);
}

/// D64.
#[test]
fn who_was_told_to_end_and_failed_while_it_was_away_is_left_alone() {
    for (kind, expected) in [("service", "place 1"), ("batch", "ignore 1, place 1")] {
        let mut world = World::running(job(kind, 1).with(lost_after(300)).with(alone), 2);
        let alloc = world.named(0);
        let node = cut_off(&mut world, 0);
        world.work_off();
        world.tell_to_end(alloc);
        world.heartbeat(node);
        world.report(alloc, ClientStatus::Failed);
        let outcome = world.evaluate();
        assert_eq!((counters(&outcome).as_str(), stopped_names(&world, &outcome)), (expected, vec![]));
        assert!(outcome.settlement.plan.reconnected.is_empty());
    }
}

/// D74.
#[test]
fn who_came_back_to_begin_anew_and_is_cut_off_again_is_lost() {
    let mut world = World::running(patient(2), 2);
    let alloc = world.named(0);
    let node = cut_off(&mut world, 0);
    world.work_off();
    world.all_run();
    world.heartbeat(node);
    world.report(alloc, ClientStatus::Pending);
    world.heartbeat(node);
    world.silence(node);
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome).as_str(), placed(&outcome)), ("ignore 2, stop 1", vec![]));
    assert_eq!(world.alloc(alloc).client, ClientStatus::Lost);
}

/// D88: neither was ever compared with other nodes.
#[test]
fn without_scores_the_original_stays() {
    let without_scores = |placed: &mut AllocsPlaced| placed.metrics = Doc::default();
    let mut world = World::with_nodes(3);
    world.run(patient(1));
    let first = world.named(0);
    let free: Vec<u128> = world.free_nodes().collect();
    let original = world.add(0, free[0], without_scores);
    world.tell_to_end(first);
    world.report(first, ClientStatus::Complete);
    world.event(AllocsMarkedUnknown { allocs: vec![original], follow_up: None });
    let substitute = world.add(0, free[1], |placed| {
        without_scores(placed);
        placed.previous = vec![original];
    });
    let outcome = world.evaluate();
    assert_eq!((counters(&outcome).as_str(), placed(&outcome)), ("ignore 1, stop 1", vec![]));
    assert!(world.alloc(substitute).is_stopping() && !world.alloc(original).is_stopping());
}

/// D89.
#[test]
fn between_equals_the_original_stays() {
    let mut world = World::running(patient(1), 1);
    let original = world.named(0);
    let node = cut_off(&mut world, 0);
    world.work_off();
    world.all_run();
    world.heartbeat(node);
    let outcome = next(&mut world);
    assert_eq!((counters(&outcome).as_str(), placed(&outcome)), ("ignore 1, stop 1", vec![]));
    assert_eq!(world.wanted()[0].id, original);
}

/// E41.
#[test]
fn forcing_leaves_alone_what_runs() {
    let mut world = World::running(patient(2), 2);
    let evaluate = Command::EvaluateJob { key: key(), force_reschedule: true };
    let eval = world.submit(evaluate).reply().evals[0];
    assert!(world.settle(eval).settlement.plan.is_empty());
    world.event(AllocTransitionRequested {
        allocs: vec![world.named(0)],
        migrate: false,
        reschedule: false,
        no_shutdown_delay: false,
        force_reschedule: true,
        disable_placement: false,
        cause: "force-reschedule".into(),
    });
    assert!(world.evaluate().settlement.plan.is_empty());
}

/// E40: a policy that allows no attempt gives way to the wish.
#[test]
fn forcing_replaces_what_its_policy_would_leave() {
    let never = |job: &mut Job| group(job).reschedule_policy = Some(limited(0, 0, 0));
    let mut world = World::running(job("service", 2).with(never), 2);
    world.report(world.named(0), ClientStatus::Failed);
    assert!(world.evaluate().settlement.plan.is_empty());
    let evaluate = Command::EvaluateJob { key: key(), force_reschedule: true };
    let eval = world.submit(evaluate).reply().evals[0];
    assert_eq!(counters(&world.settle(eval)), "ignore 1, place 1, stop 1");
}

/// E47.
#[test]
fn a_batch_allocation_that_was_stopped_leaves_its_place() {
    let mut world = World::running(job("batch", 1), 3);
    let stopped = world.named(0);
    world.tell_to_end(stopped);
    world.report(stopped, ClientStatus::Complete);
    assert_eq!(counters(&world.evaluate()), "ignore 1, place 1");
}

/// What `why` says of it.
#[test]
fn the_choice_after_a_reconnect_is_told_with_its_reason() {
    for (strategy, keeps_original) in [("keep_original", true), ("keep_replacement", false)] {
        let mut world = World::running(patient(1).with(keeps(strategy)), 1);
        let original = world.named(0);
        let node = cut_off(&mut world, 0);
        next(&mut world);
        let replacement = world.wanted().iter().map(|alloc| alloc.id).find(|id| *id != original).unwrap();
        world.report(replacement, ClientStatus::Running);
        world.heartbeat(node);
        world.report(original, ClientStatus::Running);
        world.heartbeat(node);
        let outcome = next(&mut world);
        let choices = &outcome.explanation.groups["web"].reconnects;
        assert_eq!(choices.len(), 1, "{strategy}");
        let found =
            (choices[0].original.as_str(), choices[0].replacement.as_str(), choices[0].strategy.as_str());
        assert_eq!(found, (original.to_string().as_str(), replacement.to_string().as_str(), strategy));
        assert_eq!(choices[0].keeps_original, keeps_original);
        let stays = if keeps_original { original } else { replacement };
        assert_eq!(world.wanted().iter().map(|alloc| alloc.id).collect::<Vec<_>>(), [stays]);
        assert!(choices[0].original_score.is_some() && choices[0].why.starts_with("the strategy keeps"));
    }
}

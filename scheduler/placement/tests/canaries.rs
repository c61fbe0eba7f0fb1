//! Canaries, and what happens beside them (cases F and E).

use crate::support::deploy::*;
use crate::support::*;
use model::document::Job;
use model::{AllocId, ClientStatus, DeploymentStatus};

fn service(count: i64) -> Job {
    job("service", count)
}

/// Ten old ones, and two canaries of the next version.
fn trying_out() -> World {
    let mut world = old(10);
    let outcome = world.run(service(10).with(rolling(2, 2)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 10, canary 2");
    assert_eq!(placements(&outcome), [(1, Some(world.deployment().id), vec![0, 1], true)]);
    world
}

/// F17, F18.
#[test]
fn canaries_come_first_and_wait_to_be_promoted() {
    let world = trying_out();
    let progress = world.progress();
    assert_eq!((progress.goal.desired_canaries, progress.goal.desired_total), (2, 10));
    assert_eq!(progress.placed_canaries, canaries(&world));
    assert_eq!(world.deployment().description, "Deployment is running but requires manual promotion");

    let mut world = old(10);
    let promotes = |job: &mut Job| {
        group(job).update.as_mut().unwrap().auto_promote = Some(true);
    };
    world.run(service(10).with(rolling(2, 2)).with(promotes).with(destructive));
    assert_eq!(world.deployment().description, "Deployment is running pending automatic promotion");
}

/// F16.
#[test]
fn canaries_of_a_failed_deployment_end() {
    let mut world = trying_out();
    world.set_status(DeploymentStatus::Failed);
    let outcome = world.evaluate();
    assert_eq!(counters(&outcome), "ignore 10, stop 2");
    assert!(canaries(&world).is_empty());
}

/// F19, F21, F22.
#[test]
fn counts_change_around_canaries() {
    let mut world = old(3);
    let outcome = world.run(service(3).with(rolling(1, 7)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 3, place 3, canary 7");
    assert_eq!(placed(&outcome).len(), 3);

    let mut world = old(10);
    let outcome = world.run(service(15).with(rolling(2, 2)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 10, canary 2");
    assert_eq!(world.progress().goal.desired_total, 15);

    let mut world = old(10);
    let outcome = world.run(service(5).with(rolling(2, 2)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 5, stop 5, canary 2");
    assert_eq!(stopped_names(&world, &outcome), [5, 6, 7, 8, 9]);
}

/// Another group like the first.
fn second_group(job: &mut Job) {
    let mut other = job.task_groups[0].clone();
    other.name = Some("api".into());
    job.task_groups.push(other);
    job.constraints.clear();
}

/// F20, F39.
#[test]
fn groups_have_canaries_and_come_to_their_ends_each_by_itself() {
    let mut world = World::with_nodes(8);
    world.run(service(2).with(second_group));
    world.all_run();
    let outcome = world.run(service(2).with(rolling(2, 2)).with(destructive).with(second_group));
    let updates = |group: &str| outcome.explanation.groups[group].desired.canary;
    assert_eq!((updates("web"), updates("api")), (2, 2));

    let mut world = World::with_nodes(8);
    world.run(service(2).with(rolling(2, 0)).with(second_group));
    let of_web: Vec<AllocId> =
        world.wanted().iter().filter(|alloc| &*alloc.group == "web").map(|alloc| alloc.id).collect();
    of_web.into_iter().for_each(|alloc| world.judge(alloc, true));
    assert_eq!(statuses(&world.evaluate()), [], "the other group is not done");
    world.deploy();
}

/// F23, F25.
#[test]
fn lost_canaries_are_replaced_by_fresh_ones_of_free_names() {
    let mut world = old(10);
    let outcome = world.run(service(10).with(rolling(2, 4)).with(destructive));
    assert_eq!(placements(&outcome)[0].2, [0, 1, 2, 3]);
    let all = canaries(&world);
    let gone = [world.node_of(all[1]), world.node_of(all[2])];
    gone.into_iter().for_each(|node| world.silence(node));
    let outcome = world.next();
    let lost: Vec<_> =
        stopped(&world, &outcome).into_iter().map(|(name, _, client)| (name, client)).collect();
    assert_eq!(lost, [(1, Some(ClientStatus::Lost)), (2, Some(ClientStatus::Lost))]);
    assert_eq!(counters(&outcome), "ignore 12, canary 2");
    assert_eq!(placements(&outcome)[0].2, [1, 2]);
    assert!(placements(&outcome)[0].3);
}

/// F24.
#[test]
fn a_canary_that_has_to_leave_its_node_is_tried_out_elsewhere() {
    let mut world = trying_out();
    let canary = canaries(&world)[0];
    world.drain(vec![canary]);
    let outcome = world.evaluate();
    assert_eq!(counters(&outcome), "ignore 11, canary 1");
    assert_eq!(stopped(&world, &outcome)[0].1, "alloc is being migrated");
    assert_eq!(canaries(&world).len(), 2);
}

/// F26.
#[test]
fn a_newer_version_tries_out_its_own_canaries() {
    let mut world = trying_out();
    let outcome = world.run(service(10).with(rolling(2, 2)).with(destructive).with(destructive));
    assert_eq!(counters(&outcome), "ignore 10, stop 2, canary 2");
    assert_eq!(statuses(&outcome)[0].1, "Cancelled due to newer version of job");
    assert_eq!(placements(&outcome)[0].2, [0, 1]);
}

/// F27.
#[test]
fn promoted_canaries_take_over_and_the_others_follow() {
    let mut world = trying_out();
    world.heal(2);
    let outcome = world.promote();
    assert_eq!(counters(&outcome), "ignore 8, stop 2, destructive 2");
    let stopped = stopped(&world, &outcome);
    let why = |why: &str| stopped.iter().filter(|stop| stop.1 == why).map(|stop| stop.0).collect::<Vec<_>>();
    assert_eq!(why("alloc not needed due to job update"), [0, 1]);
    assert_eq!(why("alloc is being updated due to job update"), [2, 3]);
    assert_eq!(world.deployment().description, "Deployment is running");
    world.deploy();
    assert_eq!(world.wanted().len(), 10);
    assert!(world.wanted().iter().all(|alloc| alloc.version.version == 1));
}

/// F28, F36.
#[test]
fn canaries_for_all_are_the_deployment_once_promoted() {
    let mut world = old(2);
    world.run(service(2).with(rolling(2, 2)).with(destructive));
    world.heal(2);
    assert_eq!(statuses(&world.evaluate()), [], "healthy, and not promoted");
    let outcome = world.promote();
    assert_eq!(counters(&outcome), "ignore 2, stop 2");
    assert_eq!(statuses(&outcome), [(DeploymentStatus::Successful, "Deployment completed successfully")]);
}

/// F52, F56.
#[test]
fn what_is_lost_while_canaries_are_tried_out_comes_back_as_it_was() {
    let mut world = World::with_nodes(25);
    world.run(service(10).with(rolling(10, 0)));
    world.deploy();
    world.run(service(10).with(rolling(10, 0)).with(destructive));
    world.deploy();
    let proven = world.deployment().id;
    world.run(service(10).with(rolling(2, 2)).with(destructive).with(destructive));
    world.silence(world.node_of(member(&world, 5)));
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 11, place 1, stop 1");
    assert_eq!(placements(&outcome), [(1, Some(proven), vec![5], false)]);
    assert_eq!(world.progress().goal.desired_canaries, 2);
}

/// F53, F54.
#[test]
fn it_comes_back_where_its_own_version_may_run() {
    for other_pool in [false, true] {
        let elsewhere = |job: &mut Job| match other_pool {
            false => job.datacenters = vec!["dc2".to_string()].into(),
            true => job.node_pool = Some("other".into()),
        };
        let there = |node: &mut model::document::Node| match other_pool {
            false => node.datacenter = "dc2".into(),
            true => node.node_pool = "other".into(),
        };
        let mut world = World::with_nodes(5);
        (6..=9).for_each(|n| world.node(n, there));
        world.run(service(3).with(rolling(3, 0)));
        world.deploy();
        let outcome = world.run(service(3).with(rolling(1, 1)).with(elsewhere));
        assert!(nodes(&outcome).iter().all(|node| *node >= 6), "canaries go where the new version says");
        world.silence(world.node_of(member(&world, 2)));
        let outcome = world.work_off();
        assert_eq!(placements(&outcome)[0].0, 0);
        assert!(nodes(&outcome).iter().all(|node| *node <= 5));
    }
}

/// F55, F57.
#[test]
fn versions_that_never_got_past_their_canaries_are_passed_over() {
    let mut world = World::with_nodes(25);
    world.run(service(5).with(rolling(5, 0)));
    world.deploy();
    let first = world.deployment().id;
    world.run(service(5).with(rolling(2, 2)).with(destructive));
    world.run(service(5).with(rolling(2, 2)).with(destructive).with(destructive));
    world.silence(world.node_of(member(&world, 4)));
    assert_eq!(placements(&world.work_off()), [(0, Some(first), vec![4], false)]);

    let mut world = trying_out();
    world.silence(world.node_of(member(&world, 4)));
    assert_eq!(placements(&world.work_off()), [(0, None, vec![4], false)]);
}

/// F58.
#[test]
fn nothing_comes_back_older_than_it_was() {
    let mut world = World::with_nodes(25);
    world.run(service(4).with(rolling(4, 0)));
    world.deploy();
    world.run(service(4).with(rolling(2, 0)).with(destructive));
    world.set_status(DeploymentStatus::Failed);
    world.run(service(4).with(rolling(1, 1)).with(destructive).with(destructive));
    let second =
        world.wanted().iter().find(|alloc| alloc.version.version == 1).map(|alloc| alloc.id).unwrap();
    world.silence(world.node_of(second));
    assert_eq!(placements(&world.work_off())[0].0, 2);
}

/// What was lost during a canary deployment is replaced, also if there was no room at first.
#[test]
fn what_found_no_room_while_canaries_are_tried_out_is_not_forgotten() {
    let mut world = World::with_nodes(4);
    world.run(service(3).with(rolling(3, 0)));
    world.deploy();
    world.run(service(3).with(rolling(1, 1)).with(destructive));
    world.silence(world.node_of(member(&world, 2)));
    let outcome = world.work_off();
    assert!(!is_placed_in_full(&outcome));
    world.node(9, |_| {});
    let blocked = world.unblocked();
    let outcome = world.settle(blocked[0]);
    assert_eq!((placements(&outcome)[0].0, placed(&outcome)), (0, vec![2]));
}

/// F67: the deployment would wait for ever. Nothing is left that the canary would replace, and nobody looks again.
#[test]
fn a_canary_is_placed_also_if_all_that_it_was_to_replace_is_lost() {
    let mut world = World::with_nodes(3);
    world.run(service(3).with(rolling(3, 0)));
    world.deploy();
    let outcome = world.run(service(3).with(rolling(1, 1)).with(destructive));
    assert!(!is_placed_in_full(&outcome));
    (1..=3).for_each(|node| world.silence(node));
    world.work_off();
    (4..=7).for_each(|node| world.node(node, |_| {}));
    let outcome = world.settle(world.unblocked()[0]);
    assert!(is_placed_in_full(&outcome));
    assert_eq!((canaries(&world).len(), placed(&outcome).len()), (1, 4));
    assert_eq!(world.progress().placed_canaries, canaries(&world));
}

/// F67, where it waited for an operator.
#[test]
fn a_resumed_deployment_gets_its_canary_also_if_what_it_was_to_replace_is_lost() {
    let mut world = World::with_nodes(8);
    world.run(service(1).with(rolling(1, 0)));
    world.deploy();
    let eval = world.register(service(1).with(rolling(1, 1)).with(destructive));
    begin(&mut world, false, DeploymentStatus::Paused, 1);
    world.settle(eval);
    world.set_status(DeploymentStatus::Running);
    world.silence(world.node_of(member(&world, 0)));
    let outcome = world.work_off();
    assert_eq!((canaries(&world).len(), placed(&outcome).len()), (1, 2));
}

/// One that has to move while there is no room for it is stopped; it is replaced as soon as there is room.
#[test]
fn what_moved_without_room_while_canaries_are_tried_out_is_not_forgotten() {
    let mut world = World::with_nodes(4);
    world.run(service(3).with(rolling(3, 0)));
    world.deploy();
    world.run(service(3).with(rolling(1, 1)).with(destructive));
    let moved = member(&world, 2);
    world.eligible(world.node_of(moved), model::Eligibility::Ineligible);
    world.stop_alloc(moved, false);
    assert!(!is_placed_in_full(&world.work_off()));
    world.node(9, |_| {});
    let blocked = world.unblocked();
    let outcome = world.settle(blocked[0]);
    assert_eq!((placements(&outcome)[0].0, placed(&outcome)), (0, vec![2]));
}

/// The node of a lost allocation comes back and reports that it ended: the group is short all the same.
#[test]
fn what_was_lost_without_room_is_replaced_also_if_its_node_reports_its_end() {
    let mut world = World::with_nodes(4);
    world.run(service(3).with(rolling(3, 0)));
    world.deploy();
    world.run(service(3).with(rolling(1, 1)).with(destructive));
    let lost = member(&world, 2);
    let node = world.node_of(lost);
    world.silence(node);
    assert!(!is_placed_in_full(&world.work_off()));
    world.heartbeat(node);
    world.report(lost, ClientStatus::Complete);
    world.heartbeat(node);
    let outcome = world.evaluate();
    assert_eq!((placements(&outcome)[0].0, placed(&outcome)), (0, vec![2]));
}

/// E37.
#[test]
fn what_fails_while_canaries_are_tried_out_comes_back_as_it_was() {
    let mut world = old(10).with_policy();
    world.run(service(10).with(at_once).with(rolling(2, 2)).with(destructive));
    for name in [5, 6] {
        world.report(member(&world, name), ClientStatus::Failed);
    }
    let outcome = world.next();
    assert_eq!(counters(&outcome), "ignore 10, place 2, stop 2");
    assert_eq!(placements(&outcome), [(1, None, vec![5, 6], false)]);
}

/// E38, E39.
#[test]
fn failed_canaries_are_replaced_as_canaries_while_attempts_are_left() {
    for (attempts, replaced) in [(1, true), (0, false)] {
        let mut world = old(10);
        let policy = |job: &mut Job| group(job).reschedule_policy = Some(limited(attempts, 3600, 0));
        world.run(service(10).with(policy).with(rolling(2, 2)).with(destructive));
        let failed = canaries(&world);
        failed.iter().for_each(|canary| world.report(*canary, ClientStatus::Failed));
        let reschedule = model::event::AllocTransitionRequested {
            allocs: failed,
            migrate: false,
            reschedule: true,
            no_shutdown_delay: false,
            force_reschedule: false,
            disable_placement: false,
            cause: "deployment".into(),
        };
        world.event(reschedule);
        let outcome = world.evaluate();
        let expected = if replaced { "ignore 10, place 2, stop 2" } else { "ignore 12" };
        assert_eq!(counters(&outcome), expected);
        if replaced {
            assert_eq!(placements(&outcome), [(1, Some(world.deployment().id), vec![0, 1], true)]);
        }
    }
}

/// F66.
#[test]
fn canaries_end_when_a_newer_version_begins_in_several_regions() {
    let mut world = trying_out();
    let tried = canaries(&world);
    assert_eq!(tried.len(), 2);
    let eval = world.register(service(10).with(rolling(2, 2)).with(|job: &mut Job| {
        destructive(job);
        job.priority = Some(60);
    }));
    begin(&mut world, true, DeploymentStatus::Initializing, 10);
    let outcome = world.settle(eval);
    let stopped: Vec<AllocId> =
        outcome.settlement.plan.stopped.iter().flat_map(|event| event.allocs.clone()).collect();
    assert_eq!(stopped, tried);
    assert_eq!(world.wanted().len(), 10);
}

/// F15.
#[test]
fn a_paused_deployment_gets_no_canaries_yet() {
    let mut world = old(10);
    let eval = world.register(service(10).with(rolling(2, 2)).with(destructive));
    begin(&mut world, false, DeploymentStatus::Paused, 10);
    assert_eq!(counters(&world.settle(eval)), "ignore 10");
    assert_eq!(world.progress().goal.desired_canaries, 2);
}

/// Three old ones and a canary of what is to be six. The canary runs, and `more` are added: on nodes of their own, and
/// not reported yet.
fn short_of_three(more: u32) -> World {
    let ours = |count| service(count).with(at_once).with(lost_after(300));
    let mut world = World::running(ours(3), 5);
    let outcome = world.run(ours(6).with(rolling(2, 1)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 3, canary 1");
    world.all_run();
    let deployment = Some(world.deployment().id);
    for name in 1..=more {
        let free = world.free_nodes().next().unwrap();
        world.add(name, free, |placed| {
            (placed.version, placed.deployment, placed.canary) = (1, deployment, true)
        });
    }
    world
}

fn silence_all(world: &mut World, allocs: &[AllocId]) {
    allocs.iter().for_each(|alloc| world.silence(world.node_of(*alloc)));
}

/// D75, D76: an unknown canary belongs to its deployment, and is not replaced; the others come back as they were.
#[test]
fn the_cut_off_are_replaced_beside_canaries_and_canaries_are_not() {
    for unknown_before in [false, true] {
        let mut world = short_of_three(2);
        world.all_run();
        let (old, canary) = ([member(&world, 0), member(&world, 1)], canaries(&world)[2]);
        silence_all(&mut world, &[canary]);
        if unknown_before {
            assert_eq!(counters(&world.evaluate()), "ignore 6, disconnect 1");
        }
        silence_all(&mut world, &old);
        let outcome = world.evaluate();
        let cut_off = if unknown_before { 2 } else { 3 };
        assert_eq!(counters(&outcome), format!("ignore 4, place 2, disconnect {cut_off}, now 2"));
        assert_eq!(placements(&outcome), [(0, None, vec![0, 1], false)]);
    }
}

/// D77.
#[test]
fn canaries_that_never_ran_are_lost_with_their_node_without_being_counted() {
    let mut world = short_of_three(3);
    let all = canaries(&world);
    world.report(all[1], ClientStatus::Running);
    let away = [member(&world, 0), member(&world, 1), all[2], all[3]];
    silence_all(&mut world, &away);
    let outcome = world.evaluate();
    assert_eq!(counters(&outcome), "ignore 3, place 2, disconnect 2, now 2");
    let lost: Vec<_> =
        stopped(&world, &outcome).into_iter().map(|(name, _, client)| (name, client)).collect();
    assert_eq!(lost, [(2, Some(ClientStatus::Lost)), (3, Some(ClientStatus::Lost))]);
}

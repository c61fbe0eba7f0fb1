//! Rolling updates and deployments of services (cases F, and those of E that speak of deployments).

mod support;

use base::Duration;
use model::document::{Job, ReschedulePolicy};
use model::event::{DeploymentCreated, DeploymentGoal};
use model::{AllocId, ClientStatus, Command, DeploymentId, DeploymentStatus, NodeId};
use placement::Outcome;
use support::*;

fn service(count: i64) -> Job {
    job("service", count)
}

/// The job runs without ever having had a deployment.
fn old(count: i64) -> World {
    World::running(service(count), 2 * count as u128)
}

/// Failed allocations are replaced at once.
fn at_once(job: &mut Job) {
    let delay = Some(Duration::ZERO.into());
    group(job).reschedule_policy =
        Some(ReschedulePolicy { unlimited: Some(true), delay, ..ReschedulePolicy::default() });
}

fn in_place(job: &mut Job) {
    task(job).kill_timeout = Some(Duration::from_secs(9).into());
}

/// What the plan does to deployments that were there before.
fn statuses(outcome: &Outcome) -> Vec<(DeploymentStatus, &str)> {
    let changed = outcome.settlement.plan.deployment_statuses.iter();
    changed.map(|changed| (changed.status, changed.description.as_str())).collect()
}

fn began(outcome: &Outcome) -> Option<&DeploymentCreated> {
    outcome.settlement.plan.deployment.as_ref()
}

/// Versions and deployments of what the plan places, with names and whether they are canaries.
fn placements(outcome: &Outcome) -> Vec<(u64, Option<DeploymentId>, Vec<u32>, bool)> {
    let placed = outcome.settlement.plan.placed.iter();
    placed.map(|event| (event.version, event.deployment, event.names.clone(), event.canary)).collect()
}

fn node(world: &World, name: u32) -> u128 {
    world.node_of(world.named(name))
}

/// The wanted allocation of that name that is no canary.
fn member(world: &World, name: u32) -> AllocId {
    let wanted = world.wanted();
    let mut named = wanted.iter().filter(|alloc| alloc.name_index == name && !alloc.health.canary);
    named.next().expect("the name is held").id
}

fn canaries(world: &World) -> Vec<AllocId> {
    world.wanted().iter().filter(|alloc| alloc.health.canary).map(|alloc| alloc.id).collect()
}

/// F01, F02, F03.
#[test]
fn a_service_with_an_update_block_begins_a_deployment() {
    let mut world = World::with_nodes(10);
    let outcome = world.run(service(10).with(rolling(4, 0)));
    assert_eq!(counters(&outcome), "place 10");
    let deployment = world.deployment();
    assert_eq!((deployment.status, deployment.version), (DeploymentStatus::Running, 0));
    assert_eq!(deployment.description, "Deployment is running");
    let progress = world.progress();
    assert_eq!((progress.goal.desired_total, progress.placed, progress.healthy), (10, 10, 0));
    assert_eq!(placements(&outcome)[0].1, Some(deployment.id));
    assert!(world.wanted().iter().all(|alloc| alloc.deployment == Some(deployment.id)));

    for job in [job("batch", 2).with(rolling(1, 0)), service(2).with(rolling(0, 0))] {
        let mut world = World::with_nodes(2);
        assert_eq!(began(&world.run(job)), None);
    }
}

/// F04, F29, F30.
#[test]
fn a_rolling_update_goes_on_as_far_as_allocations_are_healthy() {
    for healthy in 0..=4 {
        let mut world = old(10);
        let outcome = world.run(service(10).with(rolling(4, 0)).with(destructive));
        assert_eq!(counters(&outcome), "ignore 6, destructive 4");
        assert_eq!(world.progress().goal.desired_total, 10);
        world.heal(healthy);
        let outcome = world.evaluate();
        assert_eq!(placed(&outcome).len(), healthy, "with {healthy} healthy");
    }
    let mut world = old(10);
    world.run(service(10).with(rolling(4, 0)).with(destructive));
    world.heal(3);
    world.judge(world.named(3), false);
    assert_eq!(counters(&world.evaluate()), "ignore 10");
}

/// F05, F51.
#[test]
fn allocations_that_are_updated_in_place_prove_their_health_again() {
    let mut world = World::with_nodes(10);
    world.run(service(10).with(rolling(4, 0)));
    world.deploy();
    let first = world.deployment().id;
    let outcome = world.run(service(10).with(rolling(4, 0)).with(in_place));
    assert_eq!(counters(&outcome), "in-place 10");
    let (deployment, progress) = (world.deployment().id, world.progress());
    assert_ne!(deployment, first);
    assert_eq!((progress.goal.desired_total, progress.placed, progress.healthy), (10, 10, 0));
    assert!(world.wanted().iter().all(|alloc| alloc.deployment == Some(deployment)));
    assert!(world.wanted().iter().all(|alloc| alloc.health.healthy.is_none()));
    world.pass(10);
    world.heal(10);
    assert_eq!(world.progress().healthy, 10);
}

/// F07.
#[test]
fn nothing_new_begins_no_deployment() {
    let mut world = World::with_nodes(10);
    world.run(service(10).with(rolling(4, 0)));
    world.deploy();
    assert!(world.state.jobs.lookup(&key()).unwrap().is_stable(0), "it is one to go back to");
    let outcome = world.evaluate();
    assert!(outcome.settlement.plan.is_empty());
    // Losing one is no change of what is wanted either.
    world.silence(node(&world, 3));
    let outcome = world.work_off();
    assert_eq!((counters(&outcome).as_str(), began(&outcome)), ("ignore 9, place 1, stop 1", None));
}

/// F08, F09, F10, F11.
#[test]
fn a_deployment_that_nobody_waits_for_is_cancelled() {
    use DeploymentStatus::{Cancelled, Failed, Paused, Running, Successful};
    for (status, active) in [(Running, true), (Paused, true), (Failed, false), (Successful, false)] {
        let began = || {
            let mut world = World::with_nodes(6);
            world.run(service(3).with(rolling(1, 0)));
            world.set_status(status);
            world
        };
        let mut world = began();
        let stop = world.deregister(false);
        let expected = active.then_some((Cancelled, "Cancelled because job is stopped"));
        assert_eq!(statuses(&world.settle(stop)), expected.into_iter().collect::<Vec<_>>(), "{status}");
        let mut world = began();
        let outcome = world.run(service(3).with(rolling(1, 0)).with(destructive));
        let expected = active.then_some((Cancelled, "Cancelled due to newer version of job"));
        assert_eq!(statuses(&outcome), expected.into_iter().collect::<Vec<_>>(), "{status}");
        assert_eq!(world.deployment().version, 1);
    }
}

/// F12, F13.
#[test]
fn a_resting_deployment_places_nothing_fresh_and_replaces_nothing() {
    for status in [DeploymentStatus::Paused, DeploymentStatus::Failed] {
        let mut world = old(10);
        world.run(service(10).with(rolling(4, 0)).with(destructive));
        world.heal(4);
        world.set_status(status);
        world.report(world.named(9), ClientStatus::Complete);
        assert_eq!(counters(&world.work_off()), "ignore 9", "{status}");
    }
}

/// F14.
#[test]
fn a_deployment_of_several_regions_waits_for_its_peers() {
    let mut world = old(4);
    world.run(service(4).with(rolling(2, 0)).with(destructive));
    world.heal(2);
    world.set_status(DeploymentStatus::Initializing);
    let outcome = world.evaluate();
    assert_eq!(counters(&outcome), "ignore 4");
    let why = "Deployment is pending, waiting for peer region";
    assert_eq!(statuses(&outcome), [(DeploymentStatus::Pending, why)]);
    let outcome = world.evaluate();
    assert!(outcome.settlement.plan.is_empty());
}

/// A deployment of the job's newest version that no plan made.
fn begin(world: &mut World, is_multiregion: bool, status: DeploymentStatus, desired_total: u32) {
    let version = world.state.jobs.lookup(&key()).unwrap().current().version;
    let goal = DeploymentGoal { group: "web".into(), desired_total, ..DeploymentGoal::default() };
    world.event(DeploymentCreated {
        deployment: DeploymentId(base::Uuid::from(0xdeb)),
        key: key(),
        version,
        priority: 50,
        is_multiregion,
        status,
        description: "by hand".into(),
        groups: vec![goal],
    });
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

/// F38.
#[test]
fn a_complete_deployment_of_several_regions_waits_for_the_others() {
    let mut world = old(2);
    begin(&mut world, true, DeploymentStatus::Running, 0);
    let why = "Deployment is complete but waiting for peer region";
    assert_eq!(statuses(&world.evaluate()), [(DeploymentStatus::Blocked, why)]);
    assert_eq!(statuses(&world.evaluate()), []);
    world.set_status(DeploymentStatus::Unblocking);
    assert_eq!(statuses(&world.evaluate()), []);
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

/// F31.
#[test]
fn losses_and_moves_come_before_the_update_goes_on() {
    let mut world = old(10);
    world.run(service(10).with(rolling(4, 0)).with(destructive));
    world.heal(4);
    world.evaluate();
    world.heal(4);
    world.silence(node(&world, 0));
    world.drain(vec![world.named(1), world.named(2)]);
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 5, place 1, migrate 2, stop 1, destructive 2");
    assert_eq!(placed(&outcome), [0, 1, 2, 8, 9]);
}

/// F32.
#[test]
fn losses_and_moves_are_made_up_for_while_a_deployment_has_failed() {
    let mut world = old(10);
    world.run(service(10).with(rolling(4, 0)).with(destructive));
    world.heal(4);
    world.set_status(DeploymentStatus::Failed);
    world.silence(node(&world, 0));
    world.drain(vec![world.named(1)]);
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 8, place 1, migrate 1, stop 1");
    assert_eq!(placed(&outcome), [0, 1]);
}

/// Ours: what moves while its deployment has failed stays at the version it ran.
#[test]
fn after_a_failure_nothing_more_gets_the_failed_version() {
    let mut world = World::with_nodes(20);
    world.run(service(10).with(rolling(4, 0)));
    world.deploy();
    let first = world.deployment().id;
    world.run(service(10).with(rolling(4, 0)).with(destructive));
    world.set_status(DeploymentStatus::Failed);
    world.drain(vec![world.named(9)]);
    assert_eq!(placements(&world.evaluate()), [(0, Some(first), vec![9], false)]);
}

/// F33, F34, F35.
#[test]
fn a_deployment_succeeds_with_its_last_healthy_allocation() {
    let mut world = old(10);
    world.run(service(10).with(rolling(10, 0)).with(destructive));
    world.heal(9);
    assert_eq!(statuses(&world.evaluate()), []);
    world.heal(1);
    let outcome = world.evaluate();
    assert_eq!(statuses(&outcome), [(DeploymentStatus::Successful, "Deployment completed successfully")]);
    assert!(outcome.settlement.plan.placed.is_empty());
    assert_eq!(world.eval(outcome.settlement.eval).outcome.deployment, Some(world.deployment().id));
}

/// F37.
#[test]
fn what_waits_to_be_rescheduled_keeps_a_deployment_open() {
    let mut world = old(3);
    world.run(service(3).with(rolling(3, 0)).with(destructive));
    world.heal(3);
    world.report(world.named(2), ClientStatus::Failed);
    // Asked for by the watcher, and due in 30 s.
    world.judge_again(world.named(2));
    world.advance();
    let outcome = world.work_off();
    assert_eq!((counters(&outcome).as_str(), statuses(&outcome)), ("ignore 3, later 1", vec![]));
}

/// F40.
#[test]
fn what_is_missing_counts_among_what_may_move_at_once() {
    let mut world = World::with_nodes(40);
    world.run(service(10));
    world.all_run();
    let outcome = world.run(service(30).with(rolling(4, 0)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 10, place 20");
    assert_eq!(counters(&world.evaluate()), "ignore 30");
}

/// F41.
#[test]
fn missing_ones_come_before_replaced_ones() {
    let mut world = old(10);
    (7..10).for_each(|name| world.report(world.named(name), ClientStatus::Complete));
    let outcome = world.run(service(10).with(rolling(4, 0)).with(destructive));
    assert_eq!(counters(&outcome), "ignore 6, place 3, destructive 1");
}

/// F42.
#[test]
fn the_next_version_after_a_failure_has_a_deployment_of_its_own() {
    let mut world = old(4);
    world.run(service(4).with(rolling(2, 0)).with(destructive));
    world.set_status(DeploymentStatus::Failed);
    let failed = world.deployment().id;
    let outcome = world.run(service(4).with(rolling(2, 0)).with(destructive).with(destructive));
    assert_eq!((counters(&outcome).as_str(), statuses(&outcome)), ("ignore 2, destructive 2", vec![]));
    assert_ne!(world.deployment().id, failed);
}

/// F43, F44.
#[test]
fn going_back_keeps_what_ran_before() {
    let mut world = World::with_nodes(20);
    let reverts = |job: &mut Job| {
        group(job).update.as_mut().unwrap().auto_revert = Some(true);
    };
    world.run(service(10).with(rolling(2, 0)).with(reverts));
    world.deploy();
    world.run(service(10).with(rolling(2, 2)).with(reverts).with(destructive));
    let deployment = world.deployment().id;
    let decision = world.submit(Command::FailDeployment { deployment });
    assert_eq!(decision.reverted_to, Some(0));
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "stop 2, in-place 10");
    assert_eq!(world.deployment().version, 2);
    world.deploy();
    assert_eq!(world.wanted().len(), 10);
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
    let moves: [(&dyn Fn(&mut Job), &dyn Fn(&mut model::document::Node)); 2] = [
        (&|job| job.datacenters = vec!["dc2".to_string()].into(), &|node| node.datacenter = "dc2".into()),
        (&|job| job.node_pool = Some("other".into()), &|node| node.node_pool = "other".into()),
    ];
    for (elsewhere, there) in moves {
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

/// GR-12.4: the place of what was lost stays its own, also when it found no room at first.
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

/// E31, E32.
#[test]
fn members_of_a_running_deployment_are_replaced_when_it_says_so() {
    let mut world = World::with_nodes(20);
    world.run(service(10).with(rolling(10, 0)).with(at_once));
    world.pass(60);
    (0..5).for_each(|name| world.judge(world.named(name), false));
    assert_eq!(counters(&world.work_off()), "ignore 10");
    world.advance();
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 5, place 5, stop 5");
    assert_eq!(world.deployment().status, DeploymentStatus::Running);
}

/// E33, E34, F59.
#[test]
fn what_failed_with_its_deployment_stays_failed_and_what_ran_before_comes_back() {
    let mut world = old(4).with_policy();
    world.run(service(4).with(at_once).with(rolling(2, 0)).with(destructive));
    let deployment = world.deployment().id;
    let fresh = world.wanted().iter().find(|alloc| alloc.version.version == 2).map(|alloc| alloc.id).unwrap();
    world.judge(fresh, false);
    world.submit(Command::FailDeployment { deployment });
    assert_eq!(world.deployment().description, "Deployment marked as failed");
    world.work_off();
    assert_eq!(
        counters(&world.evaluate()),
        "ignore 3",
        "the failed one is neither replaced nor counted as left alone"
    );
    let before =
        world.wanted().iter().find(|alloc| alloc.version.version == 1).map(|alloc| alloc.id).unwrap();
    world.report(before, ClientStatus::Failed);
    let outcome = world.work_off();
    assert_eq!(counters(&outcome), "ignore 2, place 1, stop 1");
    assert_eq!(placements(&outcome)[0].0, 1);
}

/// E35.
#[test]
fn after_success_failures_are_rescheduled_as_usual() {
    let mut world = World::with_nodes(20);
    world.run(service(10).with(rolling(10, 0)).with(at_once));
    world.deploy();
    (0..10).for_each(|name| world.report(world.named(name), ClientStatus::Failed));
    let outcome = world.next();
    assert_eq!(counters(&outcome), "place 10, stop 10");
}

/// E36.
#[test]
fn a_paused_deployment_does_not_hold_back_what_failed_before_it() {
    let mut world = old(4).with_policy();
    world.run(service(4).with(at_once).with(rolling(2, 0)).with(destructive));
    world.set_status(DeploymentStatus::Paused);
    let before =
        world.wanted().iter().find(|alloc| alloc.version.version == 1).map(|alloc| alloc.id).unwrap();
    world.report(before, ClientStatus::Failed);
    assert_eq!(counters(&world.work_off()), "ignore 3, place 1, stop 1");
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

/// A11: what a rejected plan would have begun never began.
#[test]
fn a_deployment_begins_with_the_plan_that_is_accepted() {
    let mut world = World::with_nodes(2);
    let eval = world.register(service(2).with(rolling(1, 0)));
    let mut outcome = world.plan(eval);
    let first = began(&outcome).unwrap().deployment;
    // Nodes nobody knows: nothing of the plan holds.
    for event in &mut outcome.settlement.plan.placed {
        event.nodes.iter_mut().for_each(|node| *node = NodeId(base::Uuid::from(0xbad)));
    }
    let decision = world.submit(Command::SettleEval(Box::new(outcome.settlement)));
    assert!(!decision.verdict.unwrap().full);
    assert!(world.state.deployments.lookup(first).is_none());
    let outcome = world.settle(eval);
    let second = began(&outcome).unwrap().deployment;
    assert!(world.wanted().iter().all(|alloc| alloc.deployment == Some(second)));
}

impl World {
    /// The same job, in place with a policy that replaces at once.
    fn with_policy(mut self) -> World {
        let count = self.wanted().len() as i64;
        self.run(service(count).with(at_once));
        self
    }

    /// The oldest evaluation that is pending: it sees all that happened.
    fn next(&mut self) -> Outcome {
        let next = self.pending()[0];
        self.settle(next)
    }

    /// The node says that it is unwell after all.
    fn judge_again(&mut self, alloc: AllocId) {
        self.pass(1);
        self.judge(alloc, false);
    }
}

//! Rolling updates and deployments of services (cases F, and those of E about deployments).

use crate::support::deploy::*;
use crate::support::*;
use base::Duration;
use model::document::Job;
use model::{ClientStatus, Command, DeploymentStatus, NodeId};

fn service(count: i64) -> Job {
    job("service", count)
}

fn in_place(job: &mut Job) {
    task(job).kill_timeout = Some(Duration::from_secs(9).into());
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

/// F06: a purge forgets what ran. What comes under the same name begins anew, and has nothing to replace.
#[test]
fn a_job_of_a_name_that_was_purged_is_deployed_anew() {
    let mut world = World::with_nodes(10);
    world.run(service(5).with(rolling(2, 0)));
    world.deploy();
    let before = world.deployment().clone();
    world.deregister(true);
    let outcome = world.run(service(5).with(rolling(2, 0)));
    assert_eq!(counters(&outcome), "place 5");
    let deployment = world.deployment();
    assert!(deployment.id != before.id && deployment.job_created > before.job_created);
    assert_eq!((deployment.status, world.progress().goal.desired_total), (DeploymentStatus::Running, 5));
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
    world.silence(host(&world, 3));
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

/// F31.
#[test]
fn losses_and_moves_come_before_the_update_goes_on() {
    let mut world = old(10);
    world.run(service(10).with(rolling(4, 0)).with(destructive));
    world.heal(4);
    world.evaluate();
    world.heal(4);
    world.silence(host(&world, 0));
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
    world.silence(host(&world, 0));
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

/// A11: what a rejected plan would have begun never began.
#[test]
fn a_deployment_begins_with_the_plan_that_is_accepted() {
    let mut world = World::with_nodes(2);
    let eval = world.register(service(2).with(rolling(1, 0)));
    let mut outcome = world.plan(eval);
    let first = began(&outcome).unwrap().deployment;
    // Unknown nodes: nothing of the plan is accepted.
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

//! Deployments of system jobs (the cases G about updates).

use crate::support::deploy::*;
use crate::support::*;
use model::document::{Job, Node};
use model::{AllocId, ClientStatus, DeploymentStatus, Eligibility, Trigger};
use placement::Outcome;
use state::alloc::Alloc;

fn system() -> Job {
    job("system", 1)
}

/// Ten nodes on which the job runs, without ever having had a deployment.
fn old() -> World {
    let mut world = World::with_nodes(10);
    world.run(system());
    world.all_run();
    world
}

fn stops(outcome: &Outcome) -> usize {
    outcome.settlement.plan.stopped.iter().map(|event| event.allocs.len()).sum()
}

/// How many it stops and places.
fn moves(outcome: &Outcome) -> (usize, usize) {
    (stops(outcome), nodes(outcome).len())
}

fn of_version(world: &World, version: u64) -> Vec<AllocId> {
    let own = |alloc: &&&Alloc| alloc.version.version == version && !alloc.is_terminal();
    world.wanted().iter().filter(own).map(|alloc| alloc.id).collect()
}

fn goal(world: &World) -> (u32, u32) {
    let goal = &world.progress().goal;
    (goal.desired_canaries, goal.desired_total)
}

/// G35, G30, G09.
#[test]
fn a_system_job_with_an_update_block_is_deployed() {
    let mut world = World::with_nodes(10);
    let outcome = world.run(system().with(rolling(2, 0)));
    assert_eq!((moves(&outcome), goal(&world)), ((0, 10), (0, 10)));
    let deployment = world.deployment().id;
    assert!(world.wanted().iter().all(|alloc| alloc.deployment == Some(deployment)));
    assert!(world.evaluate().settlement.plan.is_empty());
    world.heal(9);
    world.evaluate();
    assert_eq!(world.deployment().status, DeploymentStatus::Running);
    world.heal(1);
    world.evaluate();
    assert_eq!(world.deployment().status, DeploymentStatus::Successful);
}

/// G11.
#[test]
fn each_group_has_its_own_pace() {
    let two = |job: &mut Job| {
        let mut other = job.task_groups[0].clone();
        other.name = Some("api".into());
        other.update = None;
        job.task_groups.push(other);
    };
    let mut world = World::with_nodes(10);
    world.run(system().with(two));
    world.all_run();
    let outcome = world.run(system().with(rolling(2, 0)).with(destructive).with(two));
    let placed = |group: &str| {
        let events = outcome.settlement.plan.placed.iter().filter(|event| event.group == group);
        events.map(|event| event.ids.len()).sum::<usize>()
    };
    assert_eq!((placed("web"), placed("api")), (2, 10));
    assert_eq!(goal(&world).1, 10);
}

/// G12, G13.
#[test]
fn a_roll_out_goes_on_with_what_is_healthy() {
    let mut world = old();
    assert_eq!(moves(&world.run(system().with(rolling(2, 0)).with(destructive))), (2, 2));
    assert_eq!(moves(&world.evaluate()), (0, 0), "two are on their way");
    world.heal(1);
    assert_eq!(moves(&world.evaluate()), (1, 1));
    world.heal(2);
    assert_eq!(moves(&world.evaluate()), (2, 2));
    world.deploy();
    assert_eq!(of_version(&world, 1).len(), 10);
}

/// G14.
#[test]
fn what_failed_is_placed_again_beside_the_roll_out() {
    let mut world = old();
    world.run(system().with(rolling(2, 0)).with(destructive));
    of_version(&world, 1).into_iter().for_each(|alloc| world.judge(alloc, false));
    assert_eq!(moves(&world.evaluate()), (2, 4));
}

/// G15.
#[test]
fn nodes_without_the_job_do_not_wait_for_the_roll_out() {
    let mut world = World::with_nodes(5);
    world.run(system());
    world.all_run();
    let eval = world.register(system().with(rolling(2, 0)).with(destructive));
    (6..=10).for_each(|n| world.node(n, |_| {}));
    assert_eq!((moves(&world.settle(eval)), goal(&world).1), ((2, 7), 10));
}

/// G16.
#[test]
fn a_roll_out_that_began_without_a_deployment_ends_without_one() {
    let mut world = World::with_nodes(4);
    world.run(system());
    world.all_run();
    // In place, so that the version runs everywhere before it has a pace.
    world.run(system().with(|job| job.priority = Some(60)));
    world.run(system().with(rolling(2, 0)).with(|job| job.priority = Some(60)));
    world.set_status(DeploymentStatus::Successful);
    world.node(5, |_| {});
    let outcome = world.work_off();
    assert_eq!((moves(&outcome), outcome.settlement.plan.deployment.is_none()), ((0, 1), true));
}

/// G17, G18, G19, G22.
#[test]
fn canaries_are_a_share_of_the_nodes() {
    for (canary, parallel, expected) in [(30, 2, 2), (30, 10, 3), (25, 10, 3)] {
        let mut world = old();
        let outcome = world.run(system().with(rolling(parallel, canary)).with(destructive));
        assert_eq!(moves(&outcome), (expected, expected), "{canary} of 100, {parallel} at once");
        assert_eq!(goal(&world), (expected as u32, 10));
        assert!(outcome.settlement.plan.placed.iter().all(|event| event.canary));
        assert_eq!(world.deployment().description, "Deployment is running but requires manual promotion");
        world.heal(expected);
        assert!(world.evaluate().settlement.plan.is_empty(), "they wait to be promoted");
    }
}

/// G20.
#[test]
fn failed_canaries_are_tried_again_before_new_ones() {
    let mut world = old();
    world.run(system().with(rolling(3, 30)).with(destructive));
    let canaries = of_version(&world, 1);
    assert_eq!(canaries.len(), 3);
    world.judge(canaries[0], true);
    world.judge(canaries[1], false);
    let failed_on = world.node_of(canaries[1]);
    world.forget(world.node_of(canaries[2]));
    world.node(11, |_| {});
    // Seven old ones, a healthy canary, a failed one, and a node with nothing on it.
    let next = world.pending()[0];
    let outcome = world.settle(next);
    assert_eq!(goal(&world), (3, 10));
    let placed = |canary: bool| {
        let events = outcome.settlement.plan.placed.iter().filter(|event| event.canary == canary);
        events.flat_map(|event| &event.nodes).map(|node| number(*node)).collect::<Vec<_>>()
    };
    assert_eq!(placed(false), [11]);
    assert!(placed(true).contains(&failed_on) && placed(true).len() == 2);
    // What gives way to the new canary, and what went with its node: the canary, and what it had replaced.
    assert_eq!(stops(&outcome), 3);
}

/// G21.
#[test]
fn missing_canaries_are_added() {
    let mut world = old();
    world.run(system().with(rolling(2, 30)).with(destructive));
    let canary = of_version(&world, 1)[0];
    world.judge(canary, false);
    let outcome = world.evaluate();
    assert_eq!(moves(&outcome), (0, 1), "on the node of the failed one");
    assert!(outcome.settlement.plan.placed[0].canary);
    let node = world.node_of(of_version(&world, 1)[0]);
    world.eligible(node, Eligibility::Ineligible);
    world.silence(node);
    // The lost canary, what ended on its node without saying so, and what gives way to another canary.
    assert_eq!(moves(&world.work_off()), (3, 1));
}

/// G23, G24.
#[test]
fn after_the_promotion_the_others_follow() {
    let mut world = old();
    world.run(system().with(rolling(3, 30)).with(destructive));
    world.heal(3);
    assert_eq!(moves(&world.promote()), (3, 3));
    world.deploy();

    let mut world = old();
    world.run(system().with(rolling(10, 30)).with(destructive));
    world.heal(3);
    let closed: Vec<u128> =
        of_version(&world, 0).into_iter().take(2).map(|alloc| world.node_of(alloc)).collect();
    closed.into_iter().for_each(|node| world.eligible(node, Eligibility::Ineligible));
    assert_eq!((moves(&world.promote()), goal(&world).1), ((7, 5), 8));
}

/// G25, G26.
#[test]
fn where_nothing_ran_before_nothing_is_tried_out() {
    let mut world = World::with_nodes(10);
    assert_eq!(moves(&world.run(system().with(rolling(2, 30)))), (0, 10));
    assert_eq!(goal(&world), (0, 10));

    let mut world = World::new();
    world.run(system());
    let eval = world.register(system().with(rolling(2, 30)).with(destructive));
    (1..=10).for_each(|n| world.node(n, |_| {}));
    assert_eq!((moves(&world.settle(eval)), goal(&world)), ((0, 10), (0, 10)));
}

/// G27, G31.
#[test]
fn nodes_that_do_not_suit_are_no_part_of_the_deployment() {
    let windows = |node: &mut Node| _ = node.attributes.insert("kernel.name".into(), "windows".into());
    let linux = |job: &mut Job| job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    let mut world = World::with_nodes(9);
    world.node(10, windows);
    world.run(system());
    world.all_run();
    let outcome = world.run(system().with(rolling(10, 30)).with(destructive).with(linux));
    assert_eq!((moves(&outcome), goal(&world)), ((4, 3), (3, 9)));
    world.heal(3);
    world.promote();
    world.deploy();
    assert_eq!(of_version(&world, 1).len(), 9);
}

/// G28, G29.
#[test]
fn what_is_not_tried_out_stays_as_it_is() {
    let two = |job: &mut Job| {
        let mut other = job.task_groups[0].clone();
        other.name = Some("api".into());
        job.task_groups.push(other);
    };
    let mut world = World::with_nodes(10);
    world.run(system().with(two));
    world.all_run();
    let outcome = world.run(system().with(rolling(2, 30)).with(destructive).with(two));
    assert_eq!(moves(&outcome), (4, 4), "two of each group");
    assert_eq!(of_version(&world, 0).len(), 16);
    let groups = world.deployment().groups.values();
    assert!(
        groups.into_iter().all(|group| group.goal.desired_canaries == 2 && group.placed_canaries.len() == 2)
    );
}

/// G32.
#[test]
fn an_unfit_node_changes_nothing_of_what_succeeded() {
    let mut world = World::with_nodes(2);
    let linux = |job: &mut Job| job.constraints.push(constraint("${attr.kernel.name}", "=", "linux"));
    world.run(system().with(rolling(2, 0)).with(linux));
    world.deploy();
    world.node(3, |node| _ = node.attributes.insert("kernel.name".into(), "windows".into()));
    let outcome = world.work_off();
    assert!(outcome.settlement.plan.is_empty());
}

/// G33, G36.
#[test]
fn a_version_that_ran_begins_no_second_deployment() {
    let mut world = World::with_nodes(3);
    world.run(system().with(rolling(1, 0)));
    world.deploy();
    world.node(4, |_| {});
    let outcome = world.work_off();
    assert_eq!((moves(&outcome), outcome.settlement.plan.deployment), ((0, 1), None));
    world.report(of_version(&world, 0)[0], ClientStatus::Failed);
    let outcome = world.evaluate();
    assert_eq!((moves(&outcome), outcome.settlement.plan.deployment), ((0, 1), None));
}

/// G34.
#[test]
fn stopping_the_job_cancels_its_deployment() {
    let mut world = World::with_nodes(3);
    world.run(system().with(rolling(1, 0)));
    let stop = world.deregister(false);
    assert_eq!(stops(&world.settle(stop)), 3);
    let deployment = world.deployment();
    assert_eq!(deployment.status, DeploymentStatus::Cancelled);
    assert_eq!(deployment.description, "Cancelled because job is stopped");
}

/// As in current Nomad, the version after a failed one has a deployment of its own.
#[test]
fn the_next_version_after_a_failure_is_deployed() {
    let mut world = old();
    world.run(system().with(rolling(1, 0)).with(destructive));
    world.set_status(DeploymentStatus::Failed);
    let failed = world.deployment().id;
    assert_eq!(moves(&world.evaluate()), (0, 0), "a failed deployment goes no further");
    world.run(system().with(rolling(5, 0)).with(destructive).with(destructive));
    assert_ne!(world.deployment().id, failed);
    world.deploy();
    assert_eq!(of_version(&world, 2).len(), 10);
}

/// A node whose agent is of that version.
fn agent(version: &str) -> impl FnOnce(&mut Node) {
    move |node| _ = node.attributes.insert("nomad.version".into(), version.into())
}

/// G37: agents before 1.11 do not report the health of allocations of system jobs, so a deployment would never
/// complete.
#[test]
fn nodes_that_tell_nothing_of_health_keep_a_job_from_being_deployed() {
    for (version, deploys) in [("1.10.0", false), ("1.11.0", true), ("2.0.0", true)] {
        let mut world = World::with_nodes(3);
        world.node(4, agent(version));
        let outcome = world.run(system().with(rolling(2, 0)));
        assert_eq!(moves(&outcome), (0, 4));
        assert_eq!(outcome.settlement.plan.deployment.is_some(), deploys, "{version}");
        assert_eq!(world.wanted()[0].deployment.is_some(), deploys);
    }
    let mut world = World::with_nodes(3);
    world.node(4, agent("1.10.0"));
    world.eligible(4, Eligibility::Ineligible);
    assert!(world.run(system().with(rolling(2, 0))).settlement.plan.deployment.is_some(), "it is not asked");
}

/// Different from Nomad, which would stop after the first round.
#[test]
fn without_a_deployment_what_has_settled_paces_a_system_job() {
    let mut world = World::with_nodes(4);
    world.node(5, agent("1.10.0"));
    world.run(system());
    world.all_run();
    let mut rounds = vec![moves(&world.run(system().with(rolling(2, 0)).with(destructive)))];
    while !world.waiting().is_empty() {
        world.all_run();
        let next = world.skip_to(Trigger::RollingUpdate);
        rounds.push(moves(&world.settle(next)));
    }
    assert_eq!(rounds, [(2, 2), (2, 2), (1, 1)]);
    assert!(world.state.deployments.iter().next().is_none());
}

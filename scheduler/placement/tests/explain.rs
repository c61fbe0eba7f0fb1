//! Decisions repeated, with their explanation.

use crate::support::*;
use model::document::{GroupReasons, Job, NetworkResource, Port, VolumeRequest};
use model::{EvalId, NodeStatus};
use placement::{HINTS_MAX, NEAREST_SHOWN, Reasons, explain};
use state::State;

/// Registers and settles; gives the state that was decided on, and the evaluation.
fn decided(world: &mut World, job: Job) -> (State, EvalId) {
    let eval = world.register(job);
    let before = world.state.clone();
    world.settle(eval);
    (before, eval)
}

/// As the log has it: with the seed and the time of the decision.
fn again(world: &World, before: &State, eval: EvalId) -> Reasons {
    let outcome = &world.eval(eval).outcome;
    assert_eq!(outcome.snapshot, before.index);
    explain(before, before.evals.lookup(eval).unwrap(), outcome.seed, outcome.now)
}

fn reasons(world: &mut World, job: Job) -> GroupReasons {
    let (before, eval) = decided(world, job);
    let found = again(world, &before, eval).groups.remove("web").expect("the group is told of");
    check(&before, eval, world, &found);
    found
}

/// Each hint names something that is not so: none may be given where everything found its place.
fn check(_: &State, _: EvalId, _: &World, found: &GroupReasons) {
    assert!(found.would_fit_if.len() <= HINTS_MAX && found.nearest.len() <= NEAREST_SHOWN);
    assert!(found.failed.is_some() || found.would_fit_if.is_empty());
}

#[test]
fn a_decision_comes_out_as_it_was_logged() {
    for kind in ["service", "batch", "system", "sysbatch"] {
        let mut world = World::with_nodes(6);
        let eval = world.register(job(kind, 4));
        let before = world.state.clone();
        let outcome = world.settle(eval);
        let again = again(&world, &before, eval);
        assert_eq!(again.outcome.settlement.plan, outcome.settlement.plan, "{kind}");
        assert_eq!(again.outcome.explanation, outcome.explanation, "{kind}");
        let other = explain(&before, before.evals.lookup(eval).unwrap(), 12345, world.now);
        assert_ne!(other.outcome.settlement.plan, outcome.settlement.plan, "{kind}: the seed counts");
    }
}

#[test]
fn what_is_placed_is_told_with_its_scores_and_without_hints() {
    let found = reasons(&mut World::with_nodes(3), job("service", 2));
    assert_eq!(found.desired.place, 2);
    assert!(!found.placed.unwrap().score_meta_data.is_empty());
    assert!(found.failed.is_none() && found.nearest.is_empty() && found.would_fit_if.is_empty());
}

/// Nodes have 3900 MHz and 7936 MiB to give.
#[test]
fn the_nearest_node_is_the_one_that_lacks_least_and_the_ask_that_fits_is_exact() {
    let mut world = World::with_nodes(1);
    world.node(2, |node| node.node_resources.as_mut().unwrap().memory.memory_mb = 16_384);
    let large = |job: &mut Job| task(job).resources.as_mut().unwrap().memory_mb = Some(20_000);
    let found = reasons(&mut world, job("service", 1).with(large));
    assert_eq!(found.missing, 1);
    let names: Vec<&str> = found.nearest.iter().map(|miss| miss.node_name.as_str()).collect();
    assert_eq!(names, ["n2", "n1"]);
    let lack = &found.nearest[0].lacks[0];
    assert_eq!((lack.what.as_str(), lack.asked, lack.free, lack.short), ("memory", 20_000, 16_128, 3_872));
    let hints: Vec<&str> = found.would_fit_if.iter().map(String::as_str).collect();
    assert_eq!(hints, ["task \"main\" asked for 16128 MiB of memory instead of 20000"]);
}

#[test]
fn room_is_what_the_plan_itself_leaves() {
    let mut world = World::with_nodes(1);
    let many = |job: &mut Job| job.constraints.clear();
    let found = reasons(&mut world, job("service", 10).with(many));
    // Seven of 500 MHz fit into 3900.
    assert_eq!(found.missing, 3);
    let lack = &found.nearest[0].lacks[0];
    assert_eq!((lack.what.as_str(), lack.asked, lack.free, lack.short), ("cpu", 500, 400, 100));
    let hints: Vec<&str> = found.would_fit_if.iter().map(String::as_str).collect();
    assert_eq!(hints, ["task \"main\" asked for 390 MHz of CPU instead of 500"]);
}

#[test]
fn each_single_change_that_helps_is_found_and_no_other() {
    let mut world = World::with_nodes(2);
    let windows =
        |job: &mut Job| group(job).constraints.push(constraint("${attr.kernel.name}", "=", "windows"));
    let found = reasons(&mut world, job("service", 2).with(windows));
    assert_eq!(
        *found.would_fit_if,
        ["the constraint ${attr.kernel.name} = windows were dropped".to_string()]
    );
    assert_eq!(found.nearest[0].lacks[0].what, "constraint ${attr.kernel.name} = windows");

    let found = reasons(&mut World::with_nodes(2), job("service", 3));
    assert_eq!(*found.would_fit_if, ["the job's constraint distinct_hosts true were dropped".to_string()]);
    assert!(found.nearest[0].lacks[0].what.starts_with("distinct_hosts"), "{:?}", found.nearest);

    let elsewhere = |job: &mut Job| job.datacenters = vec!["dc2".to_string()].into();
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(elsewhere));
    assert_eq!(*found.would_fit_if, ["every datacenter were allowed instead of dc2".to_string()]);

    let docker = |job: &mut Job| task(job).driver = "docker".into();
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(docker));
    let driver = "task \"main\" ran with the driver exec instead of docker".to_string();
    assert_eq!(*found.would_fit_if, [driver]);
    assert_eq!(found.nearest[0].lacks[0].what, "driver docker");
}

#[test]
fn a_pool_and_a_port_that_stand_in_the_way_are_found() {
    let mut world = World::with_nodes(1);
    world.node(2, |node| node.node_pool = "gpu".into());
    let found = reasons(&mut world, job("service", 2));
    let hints: Vec<&str> = found.would_fit_if.iter().map(String::as_str).collect();
    let expected = [
        "the job's constraint distinct_hosts true were dropped",
        "every node pool were allowed instead of \"default\"",
    ];
    assert_eq!(hints, expected);

    let fixed = |job: &mut Job| {
        job.constraints.clear();
        let port = Port { label: "http".into(), value: 8080, ..Port::default() };
        let network = NetworkResource { reserved_ports: vec![port].into(), ..NetworkResource::default() };
        group(job).networks = vec![network].into();
    };
    let found = reasons(&mut World::with_nodes(1), job("service", 2).with(fixed));
    assert_eq!(*found.would_fit_if, ["port \"http\" were any port instead of 8080".to_string()]);
    assert_eq!(found.nearest[0].lacks[0].what, "port \"http\": 8080 is taken");
}

#[test]
fn where_two_things_are_missing_no_single_change_is_named() {
    let both = |job: &mut Job| {
        job.datacenters = vec!["dc2".to_string()].into();
        group(job).constraints.push(constraint("${attr.kernel.name}", "=", "windows"));
    };
    let found = reasons(&mut World::with_nodes(2), job("service", 1).with(both));
    assert!(found.would_fit_if.is_empty() && !found.hints_cut_short);
    assert_eq!(found.nearest[0].lacks.len(), 2);
}

#[test]
fn a_node_that_is_not_ready_says_so() {
    let mut world = World::with_nodes(1);
    world.silence(1);
    assert_eq!(world.state.nodes.hot(world.state.nodes.find(node_id(1)).unwrap()).status, NodeStatus::Down);
    let found = reasons(&mut world, job("service", 1));
    assert_eq!(found.nearest[0].lacks[0].what, "ready: the node is down");
    assert!(found.would_fit_if.is_empty(), "no change of the job brings a node back");
}

/// What the nearest nodes are not compared for in detail is named as the scheduler names it.
#[test]
fn a_node_that_lacks_a_volume_or_cores_says_so() {
    let found = reasons(
        &mut World::with_nodes(1),
        job("service", 1).with(|job| {
            let request = VolumeRequest { kind: "host".into(), source: "data".into(), ..Default::default() };
            group(job).volumes = [("v".to_string(), request)].into_iter().collect();
        }),
    );
    assert_eq!(found.nearest[0].lacks[0].what, "missing compatible host volumes");
    let cores = |job: &mut Job| task(job).resources.get_or_insert_default().cores = Some(2);
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(cores));
    assert_eq!(found.nearest[0].lacks[0].what, "cores");
}

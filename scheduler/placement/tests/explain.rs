//! Decisions repeated, with their explanation.

use crate::support::deploy::*;
use crate::support::*;
use model::document::{
    GroupReasons, Job, NetworkResource, NodeDevice, NodeDeviceResource, Port, RequestedDevice, VolumeRequest,
};
use model::{Eligibility, EvalId, NodeStatus};
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
    explain(before, before.evals.lookup(eval).unwrap(), outcome.seed, outcome.now, &as_it_is)
}

/// Registering adds nothing to a job.
fn as_it_is(_: &mut Job) {}

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
        let other = explain(&before, before.evals.lookup(eval).unwrap(), 12345, world.now, &as_it_is);
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
    assert_eq!(
        *found.would_fit_if,
        [
            "task \"main\" asked for 390 MHz of CPU instead of 500".to_string(),
            "one more node like \"n1\" joined".to_string()
        ]
    );
    assert_eq!(*found.missing_names, ["job.web[7]", "job.web[8]", "job.web[9]"].map(String::from));
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
    assert_eq!(found.nearest[0].lacks[0].what, "constraint ${attr.kernel.name} = windows does not hold");

    let found = reasons(&mut World::with_nodes(2), job("service", 3));
    let hints = ["the job's constraint distinct_hosts true were dropped", "one more node like \"n1\" joined"];
    assert_eq!(*found.would_fit_if, hints.map(String::from));
    assert!(found.nearest[0].lacks[0].what.starts_with("distinct_hosts"), "{:?}", found.nearest);

    let elsewhere = |job: &mut Job| job.datacenters = vec!["dc2".to_string()].into();
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(elsewhere));
    assert_eq!(*found.would_fit_if, ["every datacenter were allowed instead of dc2".to_string()]);

    let plain = |job: &mut Job| task(job).driver = "raw_exec".into();
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(plain));
    let driver = "task \"main\" ran with the driver exec instead of raw_exec".to_string();
    assert_eq!(*found.would_fit_if, [driver]);
    assert_eq!(found.nearest[0].lacks[0].what, "it has no healthy driver raw_exec");
}

/// An image cannot be run by a driver of programs, and what registering adds comes back however often it is dropped.
#[test]
fn what_nobody_can_do_is_no_hint() {
    let docker = |job: &mut Job| task(job).driver = "docker".into();
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(docker));
    assert!(found.would_fit_if.is_empty() && found.tried > 0, "{:?}", found.would_fit_if);

    let implied = constraint("${attr.vault.version}", "semver", ">= 0.6.1");
    let mut world = World::with_nodes(1);
    let (before, eval) =
        decided(&mut world, job("service", 1).with(|job| group(job).constraints.push(implied.clone())));
    let registers = |job: &mut Job| {
        if !group(job).constraints.contains(&implied) {
            group(job).constraints.push(implied.clone());
        }
    };
    let eval = before.evals.lookup(eval).unwrap();
    let hints = |registers: placement::Registers| {
        explain(&before, eval, 7, world.now, registers).groups["web"].would_fit_if.to_vec()
    };
    assert_eq!(hints(&as_it_is), ["the constraint ${attr.vault.version} semver >= 0.6.1 were dropped"]);
    assert!(hints(&registers).is_empty());
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
        "one more node like \"n1\" joined",
    ];
    assert_eq!(hints, expected);

    let fixed = |job: &mut Job| {
        job.constraints.clear();
        let port = Port { label: "http".into(), value: 8080, ..Port::default() };
        let network = NetworkResource { reserved_ports: vec![port].into(), ..NetworkResource::default() };
        group(job).networks = vec![network].into();
    };
    let found = reasons(&mut World::with_nodes(1), job("service", 2).with(fixed));
    let hints = ["port \"http\" were any port instead of 8080", "one more node like \"n1\" joined"];
    assert_eq!(*found.would_fit_if, hints.map(String::from));
    assert_eq!(found.nearest[0].lacks[0].what, "port \"http\": 8080 is taken");
}

#[test]
fn where_two_things_are_missing_no_single_change_is_named() {
    let both = |job: &mut Job| {
        job.datacenters = vec!["dc2".to_string()].into();
        group(job).constraints.push(constraint("${attr.kernel.name}", "=", "windows"));
    };
    let found = reasons(&mut World::with_nodes(2), job("service", 1).with(both));
    assert!(found.would_fit_if.is_empty() && !found.hints_cut_short && found.tried > 0);
    assert_eq!(found.nearest[0].lacks.len(), 2);
}

#[test]
fn a_node_that_is_not_ready_says_so() {
    let mut world = World::with_nodes(1);
    world.silence(1);
    assert_eq!(world.state.nodes.hot(world.state.nodes.find(node_id(1)).unwrap()).status, NodeStatus::Down);
    let found = reasons(&mut world, job("service", 1));
    assert_eq!(found.nearest[0].lacks[0].what, "it is down, not ready");
    let hints = ["node \"n1\" were ready instead of down", "one more node like \"n1\" joined"];
    assert_eq!(*found.would_fit_if, hints.map(String::from));
}

#[test]
fn a_node_that_takes_no_work_is_said_to_be_so() {
    let mut world = World::with_nodes(1);
    world.eligible(1, Eligibility::Ineligible);
    let found = reasons(&mut world, job("service", 1));
    assert_eq!(found.nearest[0].lacks[0].what, "it is not eligible for scheduling");
    let hints = ["node \"n1\" were eligible for scheduling", "one more node like \"n1\" joined"];
    assert_eq!(*found.would_fit_if, hints.map(String::from));
}

#[test]
fn a_cluster_without_nodes_is_no_matter_of_the_job() {
    let found = reasons(&mut World::new(), job("service", 2));
    assert_eq!((found.nodes, found.missing), (0, 2));
    assert!(found.would_fit_if.is_empty() && found.nearest.is_empty());
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
    assert_eq!(found.nearest[0].lacks[0].what, "it has no host volume \"data\"");
    assert_eq!(*found.would_fit_if, ["node \"n1\" had the host volume \"data\"".to_string()]);
    let cores = |job: &mut Job| task(job).resources.get_or_insert_default().cores = Some(2);
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(cores));
    assert_eq!(found.nearest[0].lacks[0].what, "cores");
    let hint = "task \"main\" asked for 500 MHz of CPU instead of 2 cores".to_string();
    assert_eq!(*found.would_fit_if, [hint]);
}

#[test]
fn devices_and_host_networks_are_tried_too() {
    let cards = |job: &mut Job| {
        let request = RequestedDevice { name: "gpu".into(), count: Some(3), ..RequestedDevice::default() };
        task(job).resources.as_mut().unwrap().devices = vec![request].into();
    };
    let mut world = World::new();
    world.node(1, |node| {
        let instance = |id: &str| NodeDevice { id: id.into(), healthy: true, ..NodeDevice::default() };
        let device = NodeDeviceResource {
            vendor: "v".into(),
            kind: "gpu".into(),
            name: "n".into(),
            instances: vec![instance("a"), instance("b")].into(),
            ..NodeDeviceResource::default()
        };
        node.node_resources.as_mut().unwrap().devices = vec![device].into();
    });
    let found = reasons(&mut world, job("service", 1).with(cards));
    let hints = [
        "task \"main\" asked for 2 devices \"gpu\" instead of 3",
        "task \"main\" asked for no device \"gpu\"",
    ];
    assert_eq!(*found.would_fit_if, hints.map(String::from));

    let private = |job: &mut Job| {
        let port = Port { label: "http".into(), host_network: "private".into(), ..Port::default() };
        let network = NetworkResource { dynamic_ports: vec![port].into(), ..NetworkResource::default() };
        group(job).networks = vec![network].into();
    };
    let found = reasons(&mut World::with_nodes(1), job("service", 1).with(private));
    let hint = "port \"http\" were on the default host network instead of \"private\"".to_string();
    assert_eq!(*found.would_fit_if, [hint]);
}

#[test]
fn nodes_whose_property_is_used_up_are_among_the_nearest() {
    let mut world = World::new();
    for (n, rack) in [(1, "r1"), (2, "r1")] {
        world.node(n, |node| _ = node.meta.insert("rack".into(), rack.to_string()));
    }
    let apart = |job: &mut Job| {
        job.constraints.clear();
        job.constraints.push(constraint("${meta.rack}", "distinct_property", ""));
    };
    let found = reasons(&mut world, job("service", 2).with(apart));
    assert_eq!((found.missing, found.nearest.len()), (1, 2));
    for miss in &found.nearest {
        assert_eq!(miss.lacks[0].what, "distinct_property: ${meta.rack}=r1 used by 1 allocs");
    }
}

/// While canaries are tried out, what is lost is replaced with the version before.
#[test]
fn what_a_canary_pass_cannot_place_is_explained_with_the_version_it_would_have_had() {
    let sized = |memory| {
        move |job: &mut Job| {
            job.constraints.clear();
            task(job).resources.as_mut().unwrap().memory_mb = Some(memory);
        }
    };
    let mut world = World::with_nodes(2);
    world.run(job("service", 2).with(sized(5_000)));
    world.all_run();
    world.run(job("service", 2).with(sized(100)).with(rolling(1, 1)));
    let node = host(&world, 0);
    world.silence(node);
    let eval = world.pending()[0];
    let before = world.state.clone();
    world.settle(eval);
    let found = again(&world, &before, eval).groups.remove("web").unwrap();
    assert_eq!((found.missing, found.older_version), (1, Some(0)));
    let other = found.nearest.iter().find(|miss| miss.lacks.iter().all(|lack| lack.asked > 0)).unwrap();
    assert_eq!((other.lacks[0].what.as_str(), other.lacks[0].asked), ("memory", 5_000));
    assert!(found.would_fit_if[0].ends_with("MiB of memory instead of 5000"), "{:?}", found.would_fit_if);
}

#[test]
fn room_that_ends_with_what_is_being_stopped_is_told_apart() {
    let large = |job: &mut Job| task(job).resources.as_mut().unwrap().memory_mb = Some(5_000);
    let mut world = World::with_nodes(1);
    world.run(job("service", 1).with(large));
    world.all_run();
    let running = world.named(0);
    world.tell_to_end(running);
    let found = reasons(&mut world, job("service", 1).with(large).with(destructive));
    let lack = &found.nearest[0].lacks;
    let memory = lack.iter().find(|lack| lack.what == "memory").unwrap();
    assert_eq!((memory.asked, memory.free, memory.stopping), (5_000, 2_936, 5_000));
}

/// Asked about one node: all that stands in the way there, also when the job found other places.
#[test]
fn one_node_is_looked_at_for_each_group() {
    let mut world = World::with_nodes(3);
    world.node(2, |node| node.node_resources.as_mut().unwrap().memory.memory_mb = 300);
    reasons(&mut world, job("service", 1));
    let state = &world.state;
    let web = state.jobs.find(&key()).unwrap();
    let look = |node: u8| placement::against(state, web, state.nodes.find(node_id(node.into())).unwrap());
    let [(group, lacks)] = &look(2)[..] else { panic!("one group") };
    assert_eq!(group, "web");
    assert!(lacks.iter().any(|lack| lack.what == "memory" && lack.short > 0), "{lacks:?}");
    let free = [1, 3].map(look).into_iter().filter(|groups| groups[0].1.is_empty()).count();
    assert_eq!(free, 1, "the other has the one that distinct_hosts allows");
}

//! Choosing nodes: feasibility, room, ports and scores (cases H, I and J).

use crate::support::*;
use model::document::{
    Job, Namespace, NetworkResource, NodeNetworkAddress, NodeNetworkResource, Port, Resources, Secret,
    TaskLifecycle,
};
use model::{Actor, Command, Eligibility};

/// Without the constraint that keeps allocations apart.
fn together(count: i64) -> Job {
    job("service", count).with(|job| job.constraints.clear())
}

fn resources(job: &mut Job) -> &mut Resources {
    task(job).resources.get_or_insert_default()
}

fn ports(fixed: &[i64], dynamic: &[&str]) -> impl Fn(&mut Job) {
    let port = |label: &str, value| Port { label: label.into(), value, ..Port::default() };
    let network = NetworkResource {
        reserved_ports: fixed.iter().map(|number| port(&format!("p{number}"), *number)).collect(),
        dynamic_ports: dynamic.iter().map(|label| port(label, 0)).collect(),
        ..NetworkResource::default()
    };
    move |job| group(job).networks.push(network.clone())
}

fn settle(world: &mut World, job: Job) -> placement::Outcome {
    let eval = world.register(job);
    world.settle(eval)
}

/// H23.
#[test]
fn one_to_a_host_and_no_more() {
    let mut world = World::with_nodes(2);
    let outcome = settle(&mut world, job("service", 3));
    assert_eq!(nodes(&outcome), [1, 2]);
    let metric = failed(&outcome);
    assert_eq!((metric.constraint_filtered["distinct_hosts"], metric.nodes_filtered), (2, 2));
    assert_eq!((metric.nodes_evaluated, metric.nodes_in_pool, metric.nodes_available["dc1"]), (2, 2, 2));
}

/// H24.
#[test]
fn a_group_keeps_apart_from_itself_only() {
    let mut world = World::with_nodes(2);
    let outcome = settle(
        &mut world,
        together(2).with(|job| {
            group(job).constraints.push(constraint("", "distinct_hosts", ""));
            let mut other = job.task_groups[0].clone();
            other.name = Some("api".into());
            other.constraints.clear();
            job.task_groups.push(other);
        }),
    );
    assert!(is_placed_in_full(&outcome));
    let web = outcome.settlement.plan.placed.iter().find(|event| event.group == "web").unwrap();
    assert_ne!(web.nodes[0], web.nodes[1]);
    let mut world = World::with_nodes(2);
    let outcome = settle(
        &mut world,
        job("service", 1).with(|job| {
            let mut other = job.task_groups[0].clone();
            other.name = Some("api".into());
            job.task_groups.push(other);
        }),
    );
    assert_eq!(nodes(&outcome), [1, 2], "the job's constraint reaches over groups");
}

/// H26.
#[test]
fn a_namesake_in_another_namespace_may_share_the_host() {
    let mut world = World::with_nodes(1);
    let other = Namespace { name: "other".into(), ..Namespace::default() };
    world.command(Actor::ANONYMOUS, Command::UpsertNamespace(Box::new(other)));
    settle(&mut world, job("service", 1));
    let outcome = settle(&mut world, job("service", 1).with(|job| job.namespace = Some("other".into())));
    assert_eq!(nodes(&outcome), [1]);
}

/// H27.
#[test]
fn a_stop_frees_the_host_within_its_own_plan_only() {
    let mut world = World::with_nodes(1);
    world.register(job("service", 1));
    world.work_off();
    world.all_run();
    let old = world.named(0);
    let outcome = settle(&mut world, job("service", 1).with(destructive));
    assert_eq!((nodes(&outcome), counters(&outcome)), (vec![1], "destructive 1".to_string()));
    settle(&mut world, job("service", 0));
    let outcome = settle(&mut world, job("service", 1));
    assert!(!is_placed_in_full(&outcome), "both still run there");
    world.report(old, model::ClientStatus::Complete);
}

fn racks(world: &mut World, racks: &[&str]) {
    for (n, rack) in racks.iter().enumerate() {
        world.node(n as u128 + 1, |node| {
            if !rack.is_empty() {
                node.meta.insert("rack".into(), rack.to_string());
            }
        });
    }
}

/// H28-H30, H32, H34.
#[test]
fn a_property_has_at_most_so_many_per_value() {
    let distinct = |count: &str| constraint("${meta.rack}", "distinct_property", count);
    let mut world = World::new();
    racks(&mut world, &["r1", "r2", "r3", "r1", ""]);
    let outcome = settle(&mut world, together(4).with(|job| job.constraints.push(distinct(""))));
    assert_eq!(placed(&outcome).len(), 3);
    let metric = failed(&outcome);
    assert_eq!(metric.constraint_filtered["distinct_property: ${meta.rack}=r1 used by 1 allocs"], 2);
    assert_eq!(metric.constraint_filtered["missing property \"${meta.rack}\""], 1);
    world.all_run();
    let outcome = settle(&mut world, together(4).with(|job| job.constraints.push(distinct("2"))));
    assert_eq!(counters(&outcome), "place 1, in-place 3");

    let mut world = World::new();
    racks(&mut world, &["r1", "r1", "r2"]);
    let outcome = settle(&mut world, together(10).with(|job| job.constraints.push(distinct("2"))));
    assert_eq!(placed(&outcome).len(), 4);
    world.all_run();
    let changed = together(4).with(|job| job.constraints.push(distinct("2"))).with(destructive);
    assert_eq!(counters(&settle(&mut world, changed)), "destructive 4");
}

/// H31.
#[test]
fn a_property_of_a_group_counts_for_it_alone_and_one_of_the_job_for_all() {
    let distinct = || constraint("${meta.rack}", "distinct_property", "");
    let two = |job: &mut Job| {
        let mut other = job.task_groups[0].clone();
        other.name = Some("api".into());
        job.task_groups.push(other);
    };
    let of_group = |job: &mut Job| group(job).constraints.push(distinct());
    let of_job = |job: &mut Job| job.constraints.push(distinct());
    for (job, expected) in
        [(together(2).with(of_group).with(two), 4), (together(2).with(of_job).with(two), 2)]
    {
        let mut world = World::new();
        racks(&mut world, &["r1", "r2"]);
        assert_eq!(nodes(&settle(&mut world, job)).len(), expected);
    }
}

/// H35.
#[test]
fn a_unique_property_keeps_hosts_apart() {
    let mut world = World::with_nodes(3);
    let outcome = settle(
        &mut world,
        together(3).with(|job| {
            job.constraints.push(constraint("${node.unique.id}", "distinct_property", ""));
        }),
    );
    assert_eq!(nodes(&outcome), [1, 2, 3]);
}

/// H36, H66, H68: the reason of the first of a class is the reason of all.
#[test]
fn a_missing_driver_filters_and_unique_attributes_are_asked_of_each_node() {
    let mut world = World::with_nodes(2);
    let outcome = settle(&mut world, together(1).with(|job| task(job).driver = "docker".into()));
    assert_eq!(failed(&outcome).constraint_filtered["missing drivers"], 2);
    let unique = |value: &str| constraint("${attr.unique.hostname}", "=", value);
    let mut world = World::new();
    for n in 1..=3 {
        world.node(n, |node| _ = node.attributes.insert("unique.hostname".into(), format!("h{n}")));
    }
    let outcome = settle(&mut world, together(1).with(|job| job.constraints.push(unique("h2"))));
    assert_eq!(nodes(&outcome), [2]);
    let metric = outcome.explanation.groups["web"].placed.clone().unwrap();
    assert_eq!(metric.constraint_filtered["${attr.unique.hostname} = h2"], 2);
}

/// H50-H53.
#[test]
fn networks_are_asked_for_by_mode_and_alias() {
    let address = |alias: &str, address: &str| NodeNetworkAddress {
        alias: alias.into(),
        address: address.into(),
        ..NodeNetworkAddress::default()
    };
    let world = || {
        let mut world = World::new();
        world.node(1, |node| node.node_resources.as_mut().unwrap().networks.clear());
        world.node(2, |_| {});
        world.node(3, |node| {
            let networks = &mut node.node_resources.as_mut().unwrap().node_networks;
            networks.push(NodeNetworkResource {
                mode: "host".into(),
                addresses: vec![address("default", "10.0.0.3"), address("public", "192.0.2.3")].into(),
                ..NodeNetworkResource::default()
            });
            node.meta.insert("net".into(), "public".into());
        });
        world
    };
    let named = |network: &'static str| {
        move |job: &mut Job| {
            ports(&[], &["http"])(job);
            group(job).networks[0].dynamic_ports[0].host_network = network.into();
        }
    };
    let outcome = settle(&mut world(), together(9).with(ports(&[80], &[])));
    assert_eq!((nodes(&outcome), failed(&outcome).constraint_filtered["missing network"]), (vec![2, 3], 1));
    let outcome = settle(&mut world(), together(1).with(named("public")));
    assert_eq!(nodes(&outcome), [3]);
    let outcome = settle(&mut world(), together(1).with(named("private")));
    let filtered = failed(&outcome).constraint_filtered;
    assert_eq!(filtered["missing host network \"private\" for port \"http\""], 2);
    let outcome = settle(&mut world(), job("service", 2).with(named("${meta.net}")));
    let filtered = failed(&outcome).constraint_filtered;
    assert_eq!(filtered["invalid host network \"${meta.net}\" template for port \"http\""], 1);
    let none = |job: &mut Job| {
        group(job).networks.push(NetworkResource { mode: "none".into(), ..NetworkResource::default() });
    };
    assert!(is_placed_in_full(&settle(&mut world(), job("service", 3).with(none))));
}

/// H71, H72.
#[test]
fn pools_datacenters_and_readiness_make_the_candidates() {
    let mut world = World::with_nodes(3);
    world.node(4, |node| node.node_pool = "gpu".into());
    world.node(5, |node| node.datacenter = "dc2".into());
    world.eligible(1, Eligibility::Ineligible);
    world.silence(2);
    assert_eq!(nodes(&settle(&mut world, job("service", 5))), [3]);
    let everywhere = job("service", 5).with(|job| {
        job.id = Some("other".into());
        job.node_pool = Some("all".into());
        job.datacenters = vec!["dc*".to_string()].into();
    });
    let outcome = settle(&mut world, everywhere);
    assert_eq!(nodes(&outcome), [3, 4, 5]);
    assert_eq!(failed(&outcome).nodes_available["dc2"], 1);
}

/// I46, E27: the fullest node that fits, best scores first.
#[test]
fn work_goes_where_it_fills_most() {
    let mut world = World::with_nodes(7);
    world.register(together(1).with(|job| job.id = Some("first".into())));
    world.work_off();
    let home = world.wanted()[0].node_id;
    let outcome = settle(&mut world, together(1));
    assert_eq!(nodes(&outcome), [number(home)], "another job's neighbour is welcome");
    let metric = outcome.explanation.groups["web"].placed.clone().unwrap();
    assert_eq!((metric.nodes_evaluated, metric.score_meta_data.len()), (7, 5));
    assert_eq!(metric.score_meta_data[0].node_id, home.to_string());
    assert!(metric.score_meta_data.is_sorted_by(|a, b| a.norm_score >= b.norm_score));
}

/// I16: allocations of one group repel each other.
#[test]
fn a_group_spreads_where_packing_does_not_outweigh_it() {
    let mut world = World::with_nodes(4);
    assert_eq!(nodes(&settle(&mut world, together(4))), [1, 2, 3, 4]);
}

/// J10, J11, J12.
#[test]
fn what_is_short_is_named() {
    for (change, dimension) in [
        ((|job| resources(job).cpu = Some(5000)) as fn(&mut Job), "cpu"),
        (|job| resources(job).memory_mb = Some(8000), "memory"),
        (|job| group(job).ephemeral_disk.get_or_insert_default().size_mb = Some(200_000), "disk"),
        (
            |job| {
                resources(job).cpu = Some(5000);
                resources(job).memory_mb = Some(8000);
            },
            "cpu",
        ),
    ] {
        let mut world = World::with_nodes(1);
        let metric = failed(&settle(&mut world, together(1).with(change)));
        assert_eq!(metric.dimension_exhausted[dimension], 1);
        assert_eq!((metric.nodes_exhausted, metric.nodes_filtered), (1, 0));
    }
    let mut world = World::new();
    world.node(1, |node| node.node_max_allocs = 3);
    let outcome = settle(&mut world, together(4));
    assert_eq!(placed(&outcome).len(), 3);
    assert_eq!(failed(&outcome).dimension_exhausted["max allocation exceeded"], 1);
}

/// J01, J02 against a node.
#[test]
fn tasks_that_do_not_run_together_share_their_room() {
    let phases = |mhz: i64| {
        together(1).with(|job| {
            resources(job).cpu = Some(mhz);
            for (name, sidecar) in [("init", false), ("side", true)] {
                let mut other = task(job).clone();
                other.name = name.into();
                other.lifecycle = Some(TaskLifecycle { hook: "prestart".into(), sidecar });
                group(job).tasks.push(other);
            }
        })
    };
    let mut world = World::with_nodes(1);
    assert!(is_placed_in_full(&settle(&mut world, phases(1900))));
    let mut world = World::with_nodes(1);
    assert!(!is_placed_in_full(&settle(&mut world, phases(2100))));
}

/// J13, J14.
#[test]
fn a_static_port_is_given_once_per_node() {
    let mut world = World::new();
    world.node(1, |_| {});
    world.node(2, |_| {});
    world.node(3, |node| {
        node.reserved_resources.as_mut().unwrap().networks.reserved_host_ports = "22,8000-8100".into();
    });
    let outcome = settle(&mut world, together(3).with(ports(&[8080], &["a"])));
    assert_eq!(nodes(&outcome), [1, 2]);
    let metric = failed(&outcome);
    assert_eq!(metric.dimension_exhausted["network: reserved port collision p8080=8080"], 3);
    assert_eq!(world.alloc(world.named(0)).template.ports.len(), 2);
    let other = together(1).with(ports(&[8080], &[])).with(|job| job.id = Some("other".into()));
    assert!(!is_placed_in_full(&settle(&mut world, other)), "another job has it there");
    world.all_run();
    let replaced = settle(&mut world, together(2).with(ports(&[8080], &["a"])).with(destructive));
    assert_eq!(counters(&replaced), "destructive 2", "the successor takes the port over");
}

/// J15, J17.
#[test]
fn dynamic_ports_run_out() {
    let mut world = World::new();
    world.node(1, |node| {
        let resources = node.node_resources.as_mut().unwrap();
        (resources.min_dynamic_port, resources.max_dynamic_port) = (20_000, 20_004);
    });
    let outcome = settle(
        &mut world,
        together(3).with(ports(&[20_002], &["a", "b"])).with(|job| {
            group(job).networks[0].reserved_ports[0].ignore_collision = true;
        }),
    );
    assert_eq!(placed(&outcome).len(), 2);
    let metric = failed(&outcome);
    assert_eq!(metric.dimension_exhausted["network: dynamic port selection failed"], 1);
    let mut numbers: Vec<u16> = outcome.settlement.plan.placed[0].ports.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, [20_000, 20_001, 20_002, 20_002, 20_003, 20_004]);
}

/// I15.
#[test]
fn room_is_taken_until_a_node_says_that_it_is_free() {
    let half = |id: &str, count: i64| {
        together(count).with(|job| {
            job.id = Some(id.into());
            resources(job).cpu = Some(1900);
        })
    };
    let mut world = World::with_nodes(1);
    settle(&mut world, half("first", 1));
    let outcome = settle(&mut world, half("second", 2));
    assert_eq!((placed(&outcome), is_placed_in_full(&outcome)), (vec![0], false), "one beside what is there");
    let first = outcome.settlement.plan.placed[0].ids[0];
    let outcome = settle(&mut world, half("second", 1).with(destructive));
    assert!(is_placed_in_full(&outcome), "what the plan stops makes room");
    world.report(first, model::ClientStatus::Complete);
    settle(&mut world, half("second", 0));
    assert!(!is_placed_in_full(&settle(&mut world, half("third", 1))), "what is told to end runs on");
    world.report(outcome.settlement.plan.placed[0].ids[0], model::ClientStatus::Complete);
    assert!(is_placed_in_full(&settle(&mut world, half("fourth", 1))));
}

/// J06.
#[test]
fn what_a_task_may_use_at_most_is_not_compared_with_what_is_free() {
    let mut world = World::new();
    world.node(1, |node| node.node_resources.as_mut().unwrap().memory.memory_mb = 256 + 1024);
    let rules = model::SchedulerRules { memory_oversubscription: true, ..Default::default() };
    world.submit(model::Command::SetScheduler { rules, only_at: None });
    let outcome = settle(&mut world, together(5).with(|job| resources(job).memory_max_mb = Some(512)));
    assert_eq!(placed(&outcome).len(), 4);
    assert_eq!(failed(&outcome).dimension_exhausted["memory"], 1);
    let task = &world.wanted()[0].template.resources.tasks["main"];
    assert_eq!(task.memory.memory_max_mb, 512);
}

/// H39.
#[test]
fn a_task_with_secrets_goes_where_their_provider_is() {
    let with_secret = |job: &mut Job| {
        let secret = Secret { name: "s".into(), provider: "safe".into(), ..Secret::default() };
        task(job).secrets = vec![secret].into();
    };
    let outcome = settle(&mut World::with_nodes(2), together(1).with(with_secret));
    assert_eq!(failed(&outcome).constraint_filtered["missing secrets provider"], 2);
    let mut world = World::with_nodes(2);
    world.node(2, |node| _ = node.attributes.insert("plugins.secrets.safe.version".into(), "1".into()));
    assert_eq!(nodes(&settle(&mut world, together(1).with(with_secret))), [2]);
}

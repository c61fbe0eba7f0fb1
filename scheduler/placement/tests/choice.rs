//! Which of many nodes: spreads, affinities, the settings of operators, and looking at a part of the nodes only.

use std::collections::BTreeMap;

use crate::support::deploy::*;
use crate::support::*;
use model::document::{Affinity, NodePool, NodePoolSchedulerConfiguration, Spread, SpreadTarget};
use model::{Command, SchedulerRules};

fn spread(shares: &[(&str, u8)]) -> Spread {
    let target = |(value, percent): &(&str, u8)| SpreadTarget { value: value.to_string(), percent: *percent };
    let attribute = "${node.datacenter}".to_string();
    Spread { attribute, weight: Some(100), spread_target: shares.iter().map(target).collect() }
}

/// Nodes 1 to 10 are in dc1, 11 to 20 in dc2.
fn two_datacenters() -> World {
    let mut world = World::new();
    for n in 1..=20 {
        world.node(n, |node| node.datacenter = if n <= 10 { "dc1" } else { "dc2" }.to_string());
    }
    world
}

fn by_datacenter(world: &World) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for alloc in world.wanted() {
        *counts.entry(if world.node_of(alloc.id) <= 10 { "dc1" } else { "dc2" }).or_default() += 1;
    }
    counts
}

fn anywhere(count: i64) -> model::document::Job {
    job("service", count).with(|job| job.datacenters = vec!["*".to_string()].into())
}

/// I39, I40.
#[test]
fn allocations_are_spread_by_shares_or_evenly() {
    for (shares, expected) in [(&[("dc1", 80), ("dc2", 20)][..], [8, 2]), (&[], [5, 5])] {
        let mut world = two_datacenters();
        world.register(anywhere(10).with(|job| group(job).spreads = vec![spread(shares)].into()));
        world.work_off();
        assert_eq!(by_datacenter(&world), BTreeMap::from([("dc1", expected[0]), ("dc2", expected[1])]));
    }
}

/// I24.
#[test]
fn affinities_of_job_group_and_task_count_together() {
    let affinity = |value: &str, weight| Affinity {
        l_target: "${node.unique.name}".into(),
        r_target: value.into(),
        operand: "=".into(),
        weight: Some(weight),
    };
    let mut world = World::with_nodes(5);
    world.register(job("service", 1).with(|job| {
        job.affinities = vec![affinity("n2", 40)].into();
        group(job).affinities = vec![affinity("n3", 50)].into();
        task(job).affinities = vec![affinity("n2", 30)].into();
    }));
    let outcome = world.work_off();
    assert_eq!(nodes(&outcome), [2]);
    let scores = &world.wanted()[0].metrics.score_meta_data;
    assert!((scores[0].scores["node-affinity"] - 70.0 / 120.0).abs() < 1e-12);
    assert!((scores[1].scores["node-affinity"] - 50.0 / 120.0).abs() < 1e-12);
}

/// I14.
#[test]
fn a_pool_may_spread_where_the_cluster_packs() {
    let mut world = World::new();
    let pool = NodePool {
        name: "wide".to_string(),
        scheduler_configuration: Some(NodePoolSchedulerConfiguration {
            scheduler_algorithm: "spread".to_string(),
            memory_oversubscription_enabled: None,
        }),
        ..NodePool::default()
    };
    world.submit(Command::UpsertNodePool(Box::new(pool)));
    (1..=4)
        .for_each(|n| world.node(n, |node| node.node_pool = if n <= 2 { "default" } else { "wide" }.into()));
    for (number, pool, expected) in [(1, "default", 1), (2, "default", 1), (3, "wide", 3), (4, "wide", 4)] {
        let eval = world.register(job("service", 1).with(|job| {
            job.id = Some(format!("job-{number}"));
            job.node_pool = Some(pool.to_string());
        }));
        assert_eq!(nodes(&world.settle(eval)), [expected]);
    }
}

fn sampled(node_limit: u32) -> World {
    let mut world = World::with_nodes(100);
    let rules = SchedulerRules { sampled: true, node_limit, ..SchedulerRules::default() };
    world.submit(Command::SetScheduler { rules, only_at: None });
    world.submit(Command::SetSampling { sampled: true });
    world
}

/// I01-I03, I41, I46.
#[test]
fn sampling_looks_at_as_many_nodes_as_the_reference() {
    let seen = |world: &World| {
        let metrics = &world.wanted()[0].metrics;
        (metrics.nodes_evaluated, metrics.score_meta_data.len())
    };
    let mut batch = sampled(0);
    batch.register(job("batch", 1));
    batch.work_off();
    assert_eq!(seen(&batch), (2, 2));
    let mut service = sampled(0);
    service.register(job("service", 1));
    service.work_off();
    assert_eq!(seen(&service), (7, 5));
    let mut narrow = sampled(1);
    narrow.register(job("service", 10).with(|job| group(job).spreads = vec![spread(&[])].into()));
    narrow.work_off();
    assert_eq!(narrow.wanted().len(), 10);
}

/// I42: what one group places in an older version says nothing about where the next group's newer version goes.
#[test]
fn spreads_of_an_older_version_leave_those_of_the_wanted_one_alone() {
    let to = |dc: &str| {
        let spreads = vec![spread(&[(dc, 100)])];
        move |job: &mut model::document::Job| {
            let mut api = job.task_groups[0].clone();
            api.name = Some("api".into());
            job.task_groups.push(api);
            job.task_groups.iter_mut().for_each(|group| group.spreads = spreads.clone().into());
            job.constraints.clear();
        }
    };
    let scores = |loses_one: bool| {
        let mut world = two_datacenters();
        world.run(anywhere(2).with(to("dc1")));
        world.all_run();
        let eval = world.register(anywhere(2).with(rolling(1, 1)).with(destructive).with(to("dc2")));
        let wanted = world.wanted();
        let old =
            wanted.iter().find(|alloc| &*alloc.group == "api").map(|alloc| number(alloc.node_id)).unwrap();
        if loses_one {
            world.forget(old);
        }
        let outcome = world.settle(eval);
        let versions: Vec<(String, u64)> =
            outcome.settlement.plan.placed.iter().map(|event| (event.group.clone(), event.version)).collect();
        assert_eq!(versions.contains(&("api".to_string(), 0)), loses_one, "{versions:?}");
        let web = outcome.settlement.plan.placed.iter().find(|event| event.group == "web").unwrap();
        let metric: model::document::AllocationMetric = web.metrics.read();
        (web.nodes.clone(), metric.score_meta_data[0].scores["allocation-spread"])
    };
    assert_eq!(scores(true), scores(false));
}

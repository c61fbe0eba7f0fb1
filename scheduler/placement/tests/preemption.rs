//! Preemption through whole passes (cases I and G). Which allocations of one node are preempted is tested beside the
//! code.

use crate::support::*;
use model::document::{
    AllocationMetric, Job, MigrateStrategy, NetworkResource, NodeDevice, NodeDeviceResource, Port,
    RequestedDevice,
};
use model::{AllocId, ClientStatus, Command, Desired, Preempting, SchedulerRules, Trigger};
use placement::Outcome;
use state::alloc::Alloc;

/// A job that fills a node each time, besides what the node keeps for itself.
fn big(id: &str, kind: &str, priority: i64, count: i64) -> Job {
    job(kind, count).with(|job| {
        (job.id, job.name) = (Some(id.to_string()), Some(id.to_string()));
        job.priority = Some(priority);
        task(job).resources.as_mut().unwrap().cpu = Some(3900);
    })
}

/// Jobs of these types may take the place of others.
fn allow(world: &mut World, kinds: &[&str]) {
    let may = |kind: &str| kinds.contains(&kind);
    let preempting = Preempting {
        service: may("service"),
        batch: may("batch"),
        system: may("system"),
        sysbatch: may("sysbatch"),
    };
    let rules = SchedulerRules { preempting, ..SchedulerRules::default() };
    world.submit(Command::SetScheduler { rules, only_at: None });
}

/// A node each for a running job `low` of priority 20.
fn full(nodes: u128) -> World {
    let mut world = World::with_nodes(nodes);
    let eval = world.register(big("low", "service", 20, nodes as i64));
    world.settle(eval);
    world.all_run();
    world
}

fn run(world: &mut World, job: Job) -> Outcome {
    let eval = world.register(job);
    world.settle(eval)
}

fn preempted(outcome: &Outcome) -> usize {
    outcome.settlement.plan.preempted.iter().map(|event| event.allocs.len()).sum()
}

fn metric(world: &World, outcome: &Outcome) -> AllocationMetric {
    let id: AllocId = outcome.settlement.plan.placed[0].ids[0];
    (*world.alloc(id).metrics).clone()
}

fn evicted(world: &World) -> Vec<&Alloc> {
    world
        .state
        .allocs
        .iter()
        .map(|(_, alloc)| alloc)
        .filter(|alloc| alloc.desired == Desired::Evict)
        .collect()
}

/// I47.
#[test]
fn the_second_look_makes_room_where_it_is_allowed() {
    let mut world = full(3);
    allow(&mut world, &[]);
    let outcome = run(&mut world, big("high", "service", 70, 1));
    assert_eq!((preempted(&outcome), failed(&outcome).nodes_exhausted), (0, 3), "it is off");
    allow(&mut world, &["service"]);
    let eval = world.unblocked().first().copied();
    assert_eq!(eval, None, "a setting makes no room by itself");
    let outcome = run(&mut world, big("higher", "service", 70, 1));
    assert_eq!(preempted(&outcome), 1);
    let metric = metric(&world, &outcome);
    assert_eq!((metric.nodes_evaluated, metric.nodes_exhausted), (3, 0), "the second look counts anew");
    let scores = &metric.score_meta_data[0].scores;
    assert!(scores["preemption"] > 0.9999 && scores["preemption"] < 1.0, "{scores:?}");
    assert!(scores["binpack"] > 0.6, "the node is weighed with those who go: {scores:?}");
    let victim = evicted(&world)[0];
    assert_eq!(victim.preempted_by, Some(outcome.settlement.plan.placed[0].ids[0]));
    let lost = world.pending();
    let triggers: Vec<Trigger> = lost.iter().map(|id| world.eval(*id).facts.trigger).collect();
    assert_eq!(triggers, [Trigger::Preemption]);
}

/// I66.
#[test]
fn a_node_with_room_is_taken_first() {
    let mut world = full(3);
    world.node(9, |_| ());
    let outcome = run(&mut world, big("high", "service", 70, 2));
    assert!(nodes(&outcome).contains(&9));
    assert_eq!(preempted(&outcome), 1, "only the second one needs somebody's place");
}

/// I67, G62.
#[test]
fn each_type_of_job_has_its_own_switch() {
    for (kind, expected) in [("service", 0), ("batch", 1), ("system", 3), ("sysbatch", 0)] {
        let mut world = full(3);
        allow(&mut world, &["batch", "system"]);
        let outcome = run(&mut world, big("high", kind, 70, 1));
        assert_eq!((preempted(&outcome), placed(&outcome).len()), (expected, expected), "{kind}");
        assert_eq!(is_placed_in_full(&outcome), expected > 0, "{kind}");
    }
}

/// G61.
#[test]
fn a_system_job_makes_room_for_itself_on_every_node() {
    let mut world = full(2);
    world.node(9, |_| ());
    let outcome = run(&mut world, big("high", "system", 70, 1));
    assert_eq!((nodes(&outcome), preempted(&outcome)), (vec![1, 2, 9], 2));
    let mut hosts: Vec<u128> = evicted(&world).iter().map(|alloc| number(alloc.node_id)).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, [1, 2]);
}

#[test]
fn a_priority_that_is_hardly_higher_takes_nobodys_place() {
    let mut world = full(1);
    let outcome = run(&mut world, big("high", "service", 29, 1));
    assert_eq!((preempted(&outcome), placed(&outcome).len()), (0, 0));
    let outcome = run(&mut world, big("higher", "service", 30, 1));
    assert_eq!((preempted(&outcome), placed(&outcome).len()), (1, 1));
}

/// Several placements of one pass: no allocation is preempted twice, and groups past their `max_parallel` are spared.
#[test]
fn a_pass_takes_no_place_twice() {
    let mut world = full(4);
    let outcome = run(&mut world, big("high", "service", 70, 5).with(|job| job.constraints.clear()));
    assert_eq!((preempted(&outcome), placed(&outcome).len()), (4, 4));
    assert_eq!(failed(&outcome).nodes_exhausted, 4, "the fifth finds nobody left to go");
    let by: Vec<AllocId> = outcome.settlement.plan.preempted.iter().map(|event| event.by).collect();
    assert_eq!(by, outcome.settlement.plan.placed[0].ids);
}

/// Two small jobs of four to a node; one of them may lose one at a time.
#[test]
fn groups_that_gave_enough_are_spared_wherever_they_are() {
    let small = |id: &str, max_parallel: i64| {
        big(id, "service", 20, 2).with(|job| {
            job.constraints.clear();
            task(job).resources.as_mut().unwrap().cpu = Some(1900);
            group(job).migrate =
                Some(MigrateStrategy { max_parallel: Some(max_parallel), ..MigrateStrategy::default() });
        })
    };
    let mut world = World::with_nodes(2);
    for job in [small("one", 1), small("many", 8)] {
        let spread = job.with(|job| job.constraints = vec![constraint("", "distinct_hosts", "true")].into());
        run(&mut world, spread);
    }
    world.all_run();
    let wants =
        big("high", "service", 70, 2).with(|job| task(job).resources.as_mut().unwrap().cpu = Some(1900));
    run(&mut world, wants);
    let jobs: Vec<&str> =
        evicted(&world).iter().map(|alloc| alloc.version.job.id.as_deref().unwrap()).collect();
    let of_one = jobs.iter().filter(|job| **job == "one").count();
    assert_eq!(jobs.len(), 2);
    assert!(of_one <= 1, "{jobs:?}");
}

#[test]
fn whoever_holds_a_port_or_a_device_makes_room_for_it() {
    let port = |job: &mut Job| {
        let port = Port { label: "http".into(), value: 8080, ..Port::default() };
        let network = NetworkResource { reserved_ports: vec![port].into(), ..NetworkResource::default() };
        group(job).networks = vec![network].into();
    };
    let card = |job: &mut Job| {
        let request = RequestedDevice { name: "gpu".into(), count: Some(1), ..RequestedDevice::default() };
        task(job).resources.as_mut().unwrap().devices = vec![request].into();
    };
    let wants: [&dyn Fn(&mut Job); 2] = [&port, &card];
    for want in wants {
        let small = |id: &str, priority| {
            big(id, "service", priority, 1).with(|job| {
                task(job).resources.as_mut().unwrap().cpu = Some(100);
                want(job);
            })
        };
        let mut world = World::new();
        world.node(1, |node| {
            let instance = NodeDevice { id: "a".into(), healthy: true, ..NodeDevice::default() };
            let device = NodeDeviceResource {
                vendor: "v".into(),
                kind: "gpu".into(),
                name: "n".into(),
                instances: vec![instance].into(),
                ..NodeDeviceResource::default()
            };
            node.node_resources.as_mut().unwrap().devices = vec![device].into();
        });
        let bystander = big("bystander", "service", 10, 1)
            .with(|job| task(job).resources.as_mut().unwrap().cpu = Some(100));
        run(&mut world, bystander);
        run(&mut world, small("holder", 20));
        world.all_run();
        let outcome = run(&mut world, small("high", 70));
        assert_eq!(placed(&outcome).len(), 1);
        let jobs: Vec<&str> =
            evicted(&world).iter().map(|alloc| alloc.version.job.id.as_deref().unwrap()).collect();
        assert_eq!(jobs, ["holder"], "the bystander does not help");
    }
}

#[test]
fn who_has_ended_by_then_does_not_go() {
    let mut world = full(1);
    let victim = world.wanted()[0].id;
    let eval = world.register(big("high", "service", 70, 1));
    let outcome = world.plan(eval);
    world.report(victim, ClientStatus::Complete);
    let decision = world.submit(Command::SettleEval(Box::new(outcome.settlement)));
    assert!(decision.verdict.unwrap().full);
    assert_eq!(evicted(&world).len(), 0);
}

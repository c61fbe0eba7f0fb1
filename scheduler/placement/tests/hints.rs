//! Hints are true: what each one says is done as an operator would do it, and then everything finds a place.

use std::collections::BTreeMap;

use crate::support::*;
use base::Rng;
use model::document::{Job, NetworkResource, Node, Port};
use model::{Command, Eligibility, NodeId, NodeStatus, Preempting, SchedulerRules};
use placement::{explain, schedule};

/// Cases of each run; `SOJOURN_HINTS=10000` tries so many.
const CASES: u64 = 300;

/// What hints are about here. Each has to be met with.
const KINDS: [&str; 11] = [
    "memory",
    "cpu",
    "disk",
    "constraint",
    "job constraint",
    "datacenter",
    "driver",
    "port",
    "ready",
    "eligible",
    "one more node",
];

#[test]
fn no_hint_is_wrong() {
    let cases = std::env::var("SOJOURN_HINTS").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..cases {
        let mut rng = Rng::stream(seed, "a case of hints");
        let world = some_world(&mut rng);
        let wanted = some_job(&mut rng);
        let mut asked = copy(&world);
        let eval = asked.register(wanted.clone());
        let reasons = explain(&asked.state, asked.eval(eval), seed, asked.now, &|_| {});
        for hint in reasons.groups.values().flat_map(|group| group.would_fit_if.iter()) {
            let (mut other, mut job) = (copy(&world), wanted.clone());
            let kind = carry_out(hint, seed, &mut other, &mut job);
            let eval = other.register(job);
            let outcome = schedule(&other.state, other.eval(eval), seed, other.now);
            let web = &outcome.explanation.groups["web"];
            assert!(web.failed.is_none(), "seed {seed}: not so: if {hint}: {:?}", web.failed);
            *met.entry(kind).or_default() += 1;
        }
    }
    let unmet: Vec<&&str> = KINDS.iter().filter(|kind| !met.contains_key(**kind)).collect();
    assert!(unmet.is_empty(), "no case has a hint about {unmet:?}: {met:?}");
}

fn copy(world: &World) -> World {
    World { state: world.state.clone(), now: world.now, ..World::new() }
}

/// One to four nodes, some of which do not take work, with some work on them.
fn some_world(rng: &mut Rng) -> World {
    let mut world = World::new();
    if rng.below(2) == 0 {
        world.submit(Command::SetScheduler { rules: SchedulerRules::default(), only_at: None });
    }
    let count = 1 + u128::from(rng.below(4));
    for number in 1..=count {
        let (memory, elsewhere) = (2_048 << rng.below(3), rng.below(4) == 0);
        world.node(number, |node| {
            node.node_resources.as_mut().unwrap().memory.memory_mb = memory;
            if elsewhere {
                node.datacenter = "dc2".to_string();
            }
        });
    }
    for number in 0..rng.below(3) {
        let mut other = job("service", 1 + rng.below(3) as i64);
        (other.id, other.name) = (Some(format!("other-{number}")), Some(format!("other-{number}")));
        other.priority = Some(if rng.below(2) == 0 { 10 } else { 50 });
        other.constraints.clear();
        let resources = task(&mut other).resources.as_mut().unwrap();
        resources.memory_mb = Some(256 << rng.below(4));
        resources.cpu = Some(200 << rng.below(4));
        let eval = world.register(other);
        world.settle(eval);
    }
    for number in 1..=count {
        match rng.below(6) {
            0 => world.silence(number),
            1 => world.eligible(number, Eligibility::Ineligible),
            _ => {}
        }
    }
    world
}

/// A job that asks for much, or for what is not there.
fn some_job(rng: &mut Rng) -> Job {
    let mut job = job("service", 1 + rng.below(4) as i64);
    if rng.below(2) == 0 {
        job.constraints.clear();
    }
    let resources = task(&mut job).resources.as_mut().unwrap();
    resources.memory_mb = Some(256 << rng.below(7));
    resources.cpu = Some(100 << rng.below(7));
    if rng.below(8) == 0 {
        group(&mut job).ephemeral_disk.as_mut().unwrap().size_mb = Some(200 * 1024);
    }
    if rng.below(8) == 0 {
        task(&mut job).driver = "raw_exec".to_string();
    }
    if rng.below(5) == 0 {
        group(&mut job).constraints.push(constraint("${attr.kernel.name}", "=", "windows"));
    }
    if rng.below(5) == 0 {
        job.datacenters = vec!["dc2".to_string()].into();
    }
    if rng.below(4) == 0 {
        let port = Port { label: "http".to_string(), value: 8080, ..Port::default() };
        let network = NetworkResource { reserved_ports: vec![port].into(), ..NetworkResource::default() };
        group(&mut job).networks.push(network);
    }
    job
}

/// Does what a hint says, and gives what it was about. One that is not understood fails the test.
fn carry_out(hint: &str, seed: u64, world: &mut World, job: &mut Job) -> &'static str {
    if let Some(request) = hint.strip_prefix("task \"main\" asked for ") {
        let most = request.split(' ').next().unwrap().parse().unwrap();
        let resources = task(job).resources.as_mut().unwrap();
        return match request.split_once(' ').unwrap().1 {
            rest if rest.starts_with("MiB of memory") => {
                resources.memory_mb = Some(most);
                "memory"
            }
            rest if rest.starts_with("MHz of CPU") => {
                resources.cpu = Some(most);
                "cpu"
            }
            rest => panic!("{rest}"),
        };
    }
    if let Some(request) = hint.strip_prefix("the group asked for ") {
        let most = request.split(' ').next().unwrap().parse().unwrap();
        group(job).ephemeral_disk.as_mut().unwrap().size_mb = Some(most);
        return "disk";
    }
    if hint.starts_with("the job's constraint ") {
        job.constraints.clear();
        return "job constraint";
    }
    if hint.starts_with("the constraint ") {
        group(job).constraints.clear();
        return "constraint";
    }
    if hint.starts_with("every datacenter were allowed") {
        job.datacenters = vec!["*".to_string()].into();
        return "datacenter";
    }
    if hint.starts_with("every node pool were allowed") {
        job.node_pool = Some("all".to_string());
        return "node pool";
    }
    if let Some(driver) = hint.strip_prefix("task \"main\" ran with the driver ") {
        task(job).driver = driver.split(' ').next().unwrap().to_string();
        return "driver";
    }
    if hint.starts_with("port \"http\" were any port") {
        let network = &mut group(job).networks[0];
        let mut port = network.reserved_ports.remove(0);
        port.value = 0;
        network.dynamic_ports.push(port);
        return "port";
    }
    if hint.starts_with("service jobs were allowed to take the place of others") {
        let preempting = Preempting { service: true, ..SchedulerRules::default().preempting };
        let rules = SchedulerRules { preempting, ..SchedulerRules::default() };
        world.submit(Command::SetScheduler { rules, only_at: None });
        return "preemption";
    }
    of_node(hint, seed, world)
}

fn of_node(hint: &str, seed: u64, world: &mut World) -> &'static str {
    let name = hint.split('"').nth(1).unwrap_or_else(|| panic!("{hint}"));
    let number: u128 = name.trim_start_matches('n').parse().unwrap_or_else(|_| panic!("{hint}"));
    if hint.contains(" were ready instead of ") {
        // What was lost with it is not looked at before it is there again, as on the fork.
        world.set_node(number, NodeStatus::Ready);
        return "ready";
    }
    if hint.ends_with(" were eligible for scheduling") {
        world.eligible(number, Eligibility::Eligible);
        return "eligible";
    }
    assert!(hint.starts_with("one more node like ") && hint.ends_with(" joined"), "{hint}");
    let row = world.state.nodes.find(node_id(number)).unwrap();
    let node = NodeId(Rng::stream(seed, "a node that could join").uuid());
    let like = Node::clone(&world.state.nodes.cold(row).document);
    let eligible = Eligibility::Eligible.to_string();
    // A state keeps no secrets.
    let secret_id = "secret".to_string();
    let document = Node { id: node.to_string(), secret_id, scheduling_eligibility: eligible, ..like };
    world.submit(Command::RegisterNode { document: Box::new(document) });
    let claimed = NodeStatus::Ready;
    world.command(model::Actor::Node(node), Command::UpdateNodeStatus { node, claimed });
    "one more node"
}

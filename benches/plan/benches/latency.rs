//! `cargo bench -p plan-bench --bench latency`: the whole of an evaluation's times, not only their mean.
//!
//! Each line is one kind of evaluation on one cluster, decided over and over while one node leaves and another comes back
//! between two decisions; `matrix` says what a decision is, and what cold and warm are.
//!
//! ```sh
//! cargo bench -p plan-bench --bench latency -- 2000     # decisions of each kind; 500 by default
//! ```

use std::time::Duration;

use model::document::{Job, NodeDevice, NodeDeviceResource};
use model::{Command, JobKey};
use plan_bench::evaluations::{Evaluation, preload, preload_with, racks, service, spread};
use plan_bench::{is_trial, node, submit};
use serde_json::{Value, json};
use state::State;

const DECISIONS: usize = 500;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let trial = is_trial();
    let asked = words.iter().find_map(|word| word.parse().ok());
    let decisions = if trial { 3 } else { asked.unwrap_or(DECISIONS) };
    println!("{:<58} {:>9} {:>9} {:>9} {:>12}", "", "p50", "p99", "longest", "placements/s");
    let sizes: &[(usize, usize)] = match trial {
        true => &[(500, 1_000)],
        false => {
            &[(10_000, 0), (10_000, 100_000), (10_000, 1_000_000), (100_000, 100_000), (100_000, 1_000_000)]
        }
    };
    for (nodes, allocs) in sizes {
        let mut cluster = racks(*nodes, 50);
        preload(&mut cluster, *allocs);
        let bench = Bench { cluster, what: format!("{nodes} nodes, {allocs} allocations"), decisions };
        bench.run("count 1", 1, json!({}));
        bench.run("count 10", 10, json!({}));
        if *allocs <= 100_000 {
            bench.run("count 1,200 spread", 1_200, spread());
            let large = if trial { 100 } else { 10_000 };
            bench.run(&format!("count {large}"), large, json!({}));
        }
        if (*nodes, *allocs) == sizes[sizes.len().min(2) - 1] {
            bench.kinds();
        }
    }
    let nodes = if trial { 500 } else { 10_000 };
    let bench = |cluster, what: &str| Bench { cluster, what: format!("{nodes} nodes, {what}"), decisions };
    bench(with_cards(nodes), "4 cards each").run("count 100, a card each", 100, cards());
    let everywhere = Job { kind: Some("system".to_string()), ..service("web", 1, json!({})) };
    bench(racks(nodes, 50), "0 allocations").decide("system, every node", everywhere, nodes - 1);
    full(nodes, bench);
    ended(nodes, if trial { 1_000 } else { 50_000 }, bench);
}

/// A card for the task.
fn cards() -> Value {
    let resources = json!({"CPU": 100, "MemoryMB": 64, "Devices": [{"Name": "gpu", "Count": 1}]});
    json!({"Tasks": [{"Name": "task", "Driver": "mock_driver", "Resources": resources}]})
}

/// Nodes with four graphics cards.
fn with_cards(nodes: usize) -> State {
    let mut cluster = racks(nodes, 50);
    for number in 0..nodes {
        let mut document = node(number);
        let instances: Vec<NodeDevice> = (0..4)
            .map(|id| NodeDevice { id: format!("{number}-{id}"), healthy: true, ..NodeDevice::default() })
            .collect();
        let (vendor, kind, name) = ("nvidia".to_string(), "gpu".to_string(), "1080ti".to_string());
        let devices = NodeDeviceResource {
            vendor,
            kind,
            name,
            instances: instances.into(),
            ..NodeDeviceResource::default()
        };
        document.node_resources.get_or_insert_default().devices = vec![devices].into();
        submit(&mut cluster, &Command::RegisterNode { document: Box::new(document) });
    }
    cluster
}

/// Every node is filled to 95 % by eight allocations of a lesser job.
fn full(nodes: usize, bench: impl Fn(State, &str) -> Bench) {
    let sized = |cpu: u32, memory: u32| {
        let resources = json!({"CPU": cpu, "MemoryMB": memory});
        json!({"Tasks": [{"Name": "task", "Driver": "mock_driver", "Resources": resources}]})
    };
    let mut cluster = racks(nodes, 50);
    preload_with(&mut cluster, nodes * 8, |name| Job {
        priority: Some(20),
        ..service(name, 1_000, sized(3_800, 3_880))
    });
    for count in [1, 100] {
        let high = Job { priority: Some(70), ..service("web", count, sized(8_000, 8_000)) };
        bench(cluster.clone(), "95 % full").decide(&format!("count {count}, in others' place"), high, count);
    }
}

/// A batch job that lives on after all its allocations have ended: they say that there is nothing to place.
fn ended(nodes: usize, allocs: usize, bench: impl Fn(State, &str) -> Bench) {
    let mut cluster = racks(nodes, 50);
    let job = Job { kind: Some("batch".to_string()), ..service("web", allocs, json!({})) };
    let (decision, _) = submit(&mut cluster, &plan_bench::register(job));
    let eval = cluster.evals.lookup(decision.reply().evals[0]).expect("the evaluation was just created");
    let settlement = placement::schedule(&cluster, eval, 1, cluster.time).settlement;
    submit(&mut cluster, &Command::SettleEval(Box::new(settlement)));
    let events = cluster.allocs.iter().map(|(_, alloc)| plan_bench::ended(alloc)).collect();
    let batch = plan_bench::batch(&cluster, cluster.time, 16, events);
    cluster.apply(&batch).expect("allocations may end");
    let again = Command::EvaluateJob { key: JobKey::new("default", "web"), force_reschedule: false };
    let bench = bench(cluster.clone(), &format!("{allocs} ended allocations"));
    bench.time("of the job that is evaluated", Evaluation::after(&cluster, &again, 0));
}

struct Bench {
    cluster: State,
    what: String,
    decisions: usize,
}

impl Bench {
    /// What jobs may ask for besides room.
    fn kinds(&self) {
        let affinity = json!({"LTarget": "${meta.rack}", "RTarget": "r7", "Operand": "=", "Weight": 50});
        self.run("count 100, affinity", 100, json!({"Affinities": [affinity]}));
        let hosts = json!({"Operand": "distinct_hosts"});
        self.run("count 100, distinct_hosts", 100, json!({"Constraints": [hosts]}));
        let property = json!({"LTarget": "${meta.rack}", "RTarget": "3", "Operand": "distinct_property"});
        self.run("count 100, distinct_property", 100, json!({"Constraints": [property]}));
        let ports = json!({
            "ReservedPorts": [
                {"Label": "a", "Value": 8_080}, {"Label": "b", "Value": 8_081}, {"Label": "c", "Value": 8_082},
            ],
            "DynamicPorts": [{"Label": "d"}, {"Label": "e"}],
        });
        self.run("count 100, 3 static and 2 dynamic ports", 100, json!({"Networks": [ports]}));
        let huge =
            json!({"Name": "task", "Driver": "mock_driver", "Resources": {"CPU": 100_000, "MemoryMB": 64}});
        self.decide("count 10, no node has room", service("web", 10, json!({"Tasks": [huge]})), 0);
    }

    fn run(&self, name: &str, count: usize, with: Value) {
        self.decide(name, service("web", count, with), count);
    }

    fn decide(&self, name: &str, job: Job, expected: usize) {
        self.time(name, Evaluation::new(&self.cluster, job, expected));
    }

    fn time(&self, name: &str, mut evaluation: Evaluation) {
        for (start, warm) in [("cold", false), ("warm", true)] {
            // What takes long is decided less often.
            let first = (0..3).map(|_| evaluation.decide(warm)).min().unwrap_or_default();
            let affordable = Duration::from_secs(10).as_nanos() / first.as_nanos().max(1);
            let decisions = self.decisions.min(affordable as usize).max(3);
            let mut spent: Vec<Duration> = (0..decisions).map(|_| evaluation.decide(warm)).collect();
            spent.sort();
            let at = |part: usize| spent[(spent.len() * part).div_ceil(100).max(1) - 1];
            let micros = |span: Duration| format!("{:.0} us", span.as_secs_f64() * 1e6);
            let rate = evaluation.expected as f64 / at(50).as_secs_f64();
            println!(
                "{:<58} {:>9} {:>9} {:>9} {:>12.0}",
                format!("{}: {name}, {start}", self.what),
                micros(at(50)),
                micros(at(99)),
                micros(at(100)),
                rate
            );
        }
    }
}

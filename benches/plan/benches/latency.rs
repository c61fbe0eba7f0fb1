//! `cargo bench -p plan-bench --bench latency`: the whole of an evaluation's times, not only their mean.
//!
//! Each line is one kind of evaluation on one cluster, decided over and over while one node leaves and another comes back
//! between two decisions; `matrix` says what a decision is, and what cold and warm are.
//!
//! ```sh
//! cargo bench -p plan-bench --bench latency -- 2000     # decisions of each kind; 500 unless told
//! ```

use std::time::Duration;

use model::document::Job;
use plan_bench::evaluations::{Evaluation, preload, racks, service, spread};
use serde_json::{Value, json};
use state::State;

const DECISIONS: usize = 500;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` and `cargo bench -- --test` only see that it runs.
    let trial = words.iter().any(|word| word == "--test");
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
        let everywhere = Job { kind: Some("system".to_string()), ..service("web", 1, json!({})) };
        self.decide("system, every node", everywhere, self.cluster.nodes.len() - 1);
    }

    fn run(&self, name: &str, count: usize, with: Value) {
        self.decide(name, service("web", count, with), count);
    }

    fn decide(&self, name: &str, job: Job, expected: usize) {
        let mut evaluation = Evaluation::new(&self.cluster, job, expected);
        for (start, warm) in [("cold", false), ("warm", true)] {
            // What takes long is decided less often.
            let first = (0..3).map(|_| evaluation.decide(warm)).min().unwrap_or_default();
            let affordable = Duration::from_secs(10).as_nanos() / first.as_nanos().max(1);
            let decisions = self.decisions.min(affordable as usize).max(3);
            let mut spent: Vec<Duration> = (0..decisions).map(|_| evaluation.decide(warm)).collect();
            spent.sort();
            let at = |part: usize| spent[(spent.len() * part).div_ceil(100).max(1) - 1];
            let micros = |span: Duration| format!("{:.0} us", span.as_secs_f64() * 1e6);
            let rate = expected as f64 / at(50).as_secs_f64();
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

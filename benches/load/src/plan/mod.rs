//! The scheduler alone: no server, no log, no network. Jobs come one after the other; each is registered, evaluated and
//! its plan folded into the state, by the same rules as in a server. What is timed is the evaluation.

mod packing;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::bail;
use base::{Rng, Time};
use model::Command;
use placement::Memory;
use serde::Serialize;
use serde_json::{Value, json};
use state::State;

use crate::latency::{Latencies, LatencySummary};
use crate::world::{racks, register, service, spread, submit};
pub use packing::PackingReport;

const RACKS: usize = 25;

/// Packing is measured on so many nodes at most: more change nothing but the time it takes.
const PACKED_NODES_MAX: usize = 500;

/// Of one node: its processors hold so many tasks of 100 MHz.
const TASKS_PER_NODE: usize = 320;

#[derive(Clone, Debug)]
pub struct PlanOptions {
    pub nodes: usize,
    /// Jobs of each shape at most.
    pub jobs: usize,
    /// For each shape at most.
    pub time: Duration,
    /// Empty for all.
    pub shapes: Vec<String>,
    /// Traces by which packing is measured; 0 for not at all.
    pub traces: u64,
    pub seed: u64,
}

/// What jobs ask for.
struct Shape {
    name: &'static str,
    count: usize,
    with: fn() -> Value,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "small", count: 1, with: small },
    Shape { name: "group", count: 100, with: || json!({}) },
    Shape { name: "large", count: 5_000, with: || json!({}) },
    Shape { name: "spread", count: 100, with: spread },
    Shape { name: "affinity", count: 10, with: affinity },
    Shape { name: "ports", count: 10, with: ports },
];

fn small() -> Value {
    let kernel = json!({"LTarget": "${attr.kernel.name}", "RTarget": "linux", "Operand": "="});
    let rack = json!({"LTarget": "${meta.rack}", "RTarget": "^r[0-9]?[02468]$", "Operand": "regexp"});
    json!({"Constraints": [kernel, rack]})
}

fn affinity() -> Value {
    let affinity = json!({"LTarget": "${meta.rack}", "RTarget": "r7", "Operand": "=", "Weight": 50});
    json!({"Affinities": [affinity]})
}

fn ports() -> Value {
    json!({"Networks": [{"DynamicPorts": [{"Label": "http"}, {"Label": "admin"}]}]})
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlanReport {
    pub nodes: usize,
    pub seed: u64,
    pub shapes: Vec<ShapeReport>,
    pub packing: Vec<PackingReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ShapeReport {
    pub shape: String,
    pub count: usize,
    pub evaluations: u64,
    pub placements: u64,
    /// By evaluations alone.
    pub placements_per_second: f64,
    /// With the jobs registered and the plans folded too.
    pub committed_per_second: f64,
    #[serde(rename = "EvaluationMs")]
    pub evaluation: Option<LatencySummary>,
}

impl PlanOptions {
    /// # Errors
    /// What is out of bounds, by the name of its flag.
    pub fn check(&self) -> anyhow::Result<()> {
        if !(1..=100_000).contains(&self.nodes) {
            bail!("-nodes: expected 1 to 100000, not {}", self.nodes);
        }
        if !(1..=1_000_000).contains(&self.jobs) {
            bail!("-jobs: expected 1 to 1000000, not {}", self.jobs);
        }
        if !(Duration::from_millis(10)..=Duration::from_secs(3_600)).contains(&self.time) {
            bail!("-time: expected 10ms to 1h, not {:?}", self.time);
        }
        if self.traces > 1_000 {
            bail!("-traces: expected 0 to 1000, not {}", self.traces);
        }
        let names = SHAPES.map(|shape| shape.name);
        match self.shapes.iter().find(|shape| !names.contains(&shape.as_str())) {
            Some(shape) => bail!("-shape: expected one of {}, not \"{shape}\"", names.join(", ")),
            None => Ok(()),
        }
    }
}

/// Measures every shape that is asked for, and packing.
///
/// # Errors
/// When the options are out of bounds, or a job finds no room.
pub fn run(options: &PlanOptions, say: impl Fn(&str)) -> anyhow::Result<PlanReport> {
    options.check()?;
    let cluster = racks(options.nodes, RACKS);
    let mut shapes = Vec::new();
    for shape in SHAPES.iter().filter(|shape| options.takes(shape.name)) {
        say(&format!("jobs of {} allocations: {}", shape.count, shape.name));
        shapes.push(shape.measure(cluster.clone(), options)?);
    }
    let mut packing = Vec::new();
    if options.traces > 0 {
        for sampled in [false, true] {
            say("packing");
            let nodes = options.nodes.min(PACKED_NODES_MAX);
            packing.push(packing::measure(nodes, sampled, options.traces, options.seed));
        }
    }
    Ok(PlanReport { nodes: options.nodes, seed: options.seed, shapes, packing })
}

impl PlanOptions {
    fn takes(&self, shape: &str) -> bool {
        self.shapes.is_empty() || self.shapes.iter().any(|taken| taken == shape)
    }
}

impl Shape {
    fn measure(&self, mut state: State, options: &PlanOptions) -> anyhow::Result<ShapeReport> {
        // Nodes fill to a half at most, of those racks that suit.
        let room = options.nodes * TASKS_PER_NODE / 4 / self.count;
        if room == 0 {
            bail!(
                "-nodes: a job of {} allocations needs more than {}; or leave -shape {} out",
                self.count,
                options.nodes,
                self.name
            );
        }
        let (mut memory, mut chance) = (Memory::default(), Rng::stream(options.seed, self.name));
        let (mut latencies, mut evaluating) = (Latencies::default(), Duration::ZERO);
        let (mut evaluations, mut placements) = (0, 0);
        let began = Instant::now();
        while evaluations < options.jobs.min(room) && (evaluations == 0 || began.elapsed() < options.time) {
            let job = service(&format!("job-{evaluations}"), self.count, (self.with)());
            let (decision, _) = submit(&mut state, &register(job));
            let eval =
                state.evals.lookup(decision.reply().evals[0]).expect("the evaluation was just created");
            let (seed, now) = (chance.next(), Time(state.time.0 + 1));
            let start = Instant::now();
            let outcome = placement::schedule_with(&mut memory, &state, eval, seed, now);
            let spent = start.elapsed();
            latencies.record(spent);
            evaluating += spent;
            let placed: usize = outcome.settlement.plan.placed.iter().map(|group| group.ids.len()).sum();
            if placed < self.count {
                bail!("a job of shape {} found room for {placed} of {} allocations", self.name, self.count);
            }
            submit(&mut state, &Command::SettleEval(Box::new(outcome.settlement)));
            evaluations += 1;
            placements += placed;
        }
        Ok(ShapeReport {
            shape: self.name.to_string(),
            count: self.count,
            evaluations: evaluations as u64,
            placements: placements as u64,
            placements_per_second: placements as f64 / evaluating.as_secs_f64(),
            committed_per_second: placements as f64 / began.elapsed().as_secs_f64(),
            evaluation: latencies.summary(),
        })
    }
}

impl PlanReport {
    /// For people.
    pub fn table(&self) -> String {
        let mut text = format!("{} nodes in {RACKS} racks; seed {}\n\n", self.nodes, self.seed);
        let _ = writeln!(
            text,
            "{:<10} {:>6} {:>11} {:>11} {:>13} {:>13} {:>10} {:>10} {:>10}",
            "shape",
            "count",
            "evaluations",
            "placements",
            "placements/s",
            "committed/s",
            "p50",
            "p99",
            "longest"
        );
        for shape in &self.shapes {
            let micros = |at: fn(&LatencySummary) -> f64| {
                shape.evaluation.as_ref().map_or(String::new(), |all| format!("{:.0} us", at(all) * 1e3))
            };
            let _ = writeln!(
                text,
                "{:<10} {:>6} {:>11} {:>11} {:>13.0} {:>13.0} {:>10} {:>10} {:>10}",
                shape.shape,
                shape.count,
                shape.evaluations,
                shape.placements,
                shape.placements_per_second,
                shape.committed_per_second,
                micros(|all| all.p50),
                micros(|all| all.p99),
                micros(|all| all.max),
            );
        }
        for (at, packing) in self.packing.iter().enumerate() {
            if at == 0 {
                let head = format!("{} nodes, in use at a load of", packing.nodes);
                let _ = writeln!(
                    text,
                    "\n{head:<32} {:>7} {:>7} {:>7} {:>26}",
                    "25 %", "50 %", "75 %", "load at the first failure"
                );
            }
            let name = if packing.sampled { "sampled as Nomad does" } else { "all are looked at" };
            let [mean, least, best] = packing.failure.map(|load| load * 100.0);
            let failure = format!("{mean:.1} % ({least:.1}-{best:.1})");
            let [quarter, half, most] = packing.in_use;
            let _ = writeln!(text, "{name:<32} {quarter:>7.0} {half:>7.0} {most:>7.0} {failure:>26}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> PlanOptions {
        let (time, shapes) = (Duration::from_secs(3_600), Vec::new());
        PlanOptions { nodes: 100, jobs: 3, time, shapes, traces: 1, seed: 1 }
    }

    #[test]
    fn every_shape_places_all_it_asks_for_and_a_seed_packs_the_same_again() {
        let first = run(&options(), |_| ()).unwrap();
        assert_eq!(first.shapes.len(), SHAPES.len());
        for shape in &first.shapes {
            assert_eq!(shape.placements, shape.evaluations * shape.count as u64, "{}", shape.shape);
            assert_eq!(shape.evaluation.unwrap().count, shape.evaluations);
        }
        let again = run(&PlanOptions { shapes: vec!["small".to_string()], ..options() }, |_| ()).unwrap();
        assert_eq!(again.shapes.len(), 1);
        assert_eq!(again.packing[0].in_use, first.packing[0].in_use);
        let [quarter, half, most] = first.packing[0].in_use;
        assert!(quarter <= half && half <= most && most <= 100.0, "{:?}", first.packing);
        assert!(first.table().contains("\nsmall "), "{}", first.table());
    }

    #[test]
    fn what_is_out_of_bounds_is_named_by_its_flag() {
        let message = |options: PlanOptions| run(&options, |_| ()).unwrap_err().to_string();
        assert_eq!(message(PlanOptions { nodes: 0, ..options() }), "-nodes: expected 1 to 100000, not 0");
        assert_eq!(
            message(PlanOptions { shapes: vec!["round".to_string()], ..options() }),
            "-shape: expected one of small, group, large, spread, affinity, ports, not \"round\""
        );
    }
}

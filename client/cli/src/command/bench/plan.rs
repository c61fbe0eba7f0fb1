use std::time::Duration;

use load::plan::{PlanOptions, run as measure};

use super::span;
use crate::call::{Call, Command, JSON, Outcome, Run};
use crate::flags::Flag;
use crate::output::{json, write_err, write_out};

const NODES: Flag<usize> = Flag::number("nodes", "N", "Nodes, up to 100000. Default: 1000.");
const JOBS: Flag<usize> = Flag::number("jobs", "N", "Jobs of each shape at most. Default: 10000.");
const TIME: Flag<base::Duration> =
    Flag::parsed("time", "SPAN", "a span like 5s", "For each shape at most. Default: 5s.");
const SHAPE: Flag<Vec<String>> = Flag::values(
    "shape",
    "NAME",
    "Only this one; may be repeated: small, group, large, spread, affinity, ports. Default: all.",
);
const TRACES: Flag<u64> =
    Flag::number("traces", "N", "Seeded traces by which packing is measured; 0 for not at all. Default: 1.");
const SEED: Flag<u64> = Flag::number("seed", "N", "Of ids and traces. Default: 1.");

pub(super) static COMMAND: Command = Command {
    name: "bench plan",
    aliases: &[],
    arguments: "",
    summary: "Measure the scheduler in this process: placements a second, times of evaluations, and how well nodes are filled.",
    details: "No server is called. Jobs of each shape come one after the other; each is registered, evaluated and its plan folded\n\
              into the state. See docs/bench.md.",
    flags: &[&[&NODES, &JOBS, &TIME, &SHAPE, &TRACES, &SEED, &JSON]],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let args = &call.args;
    let options = PlanOptions {
        nodes: args.parsed(&NODES)?.unwrap_or(1_000),
        jobs: args.parsed(&JOBS)?.unwrap_or(10_000),
        time: span(&call, &TIME)?.unwrap_or(Duration::from_secs(5)),
        shapes: args.values(&SHAPE).to_vec(),
        traces: args.parsed(&TRACES)?.unwrap_or(1),
        seed: args.parsed(&SEED)?.unwrap_or(1),
    };
    let report = measure(&options, |what| write_err(format!("==> {what}")))?;
    if args.switch(&JSON) {
        write_out(json(&report));
    } else {
        write_out(report.table());
    }
    Ok(0)
}

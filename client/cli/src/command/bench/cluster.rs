use std::time::Duration;

use load::{ALLOCS_MAX, ClusterOptions, Load, Ramp, Wait};

use super::span;
use crate::call::{ADDRESS, Call, Command, Failure, JSON, NAMESPACE, Outcome, Run, TOKEN};
use crate::flags::{Flag, FlagList};
use crate::output::{json, write_err, write_out};

const JOBS_DEFAULT: u32 = 1_000_000;

const NODES: Flag<u32> = Flag::number("nodes", "N", "Simulated nodes, up to 100000. Default: 100.");
const LIVE: Flag<bool> = Flag::switch(
    "live",
    "Nodes also fetch their allocations and report that they run. Otherwise they only send heartbeats.",
);
const NODE_CPU: Flag<u32> = Flag::number("node-cpu", "MHZ", "Of each node. A job takes 20. Default: 64000.");
const NODE_MEMORY: Flag<u32> =
    Flag::number("node-memory", "MIB", "Of each node. A job takes 32. Default: 131072.");
const BEAT_EVERY: Flag<base::Duration> = Flag::parsed(
    "beat-every",
    "SPAN",
    "a span like 1s",
    "The interval of heartbeats. Default: as the server grants it.",
);
const FAIL: Flag<u32> =
    Flag::number("fail", "N", "So many nodes fall silent in the middle of the time. Default: 0.");
const RPC: Flag<String> =
    Flag::value("rpc", "HOST:PORT", "The node RPC of a server. Default: that of the leader.");
const RPC_CONNECTIONS: Flag<u32> = Flag::number(
    "rpc-connections",
    "N",
    "Connections that the nodes share; live ones have at least one for 400. Default: 8.",
);
const RATE: Flag<f64> =
    Flag::number("rate", "N", "An open loop: jobs a second, however those before are doing.");
const RAMP: Flag<f64> = Flag::number(
    "ramp",
    "FACTOR",
    "With -rate: multiply it by this after each step, until p99 to placed is beyond -limit.",
);
const LIMIT: Flag<base::Duration> =
    Flag::parsed("limit", "SPAN", "a span like 1s", "For p99 to placed, with -ramp. Default: 1s.");
const CONNECTIONS: Flag<u32> =
    Flag::number("connections", "N", "Over which an open loop submits. Default: 64.");
const CLIENTS: Flag<u32> = Flag::number(
    "clients",
    "N",
    "A closed loop: each of so many submits one job after the other. The default, with 64.",
);
const WAIT: Flag<String> = Flag::value(
    "wait",
    "WHAT",
    "In a closed loop, until the job is accepted, placed or running. Default: accepted.",
);
const JOBS: Flag<u32> = Flag::number(
    "jobs",
    "N",
    "Jobs at most; 0 for nodes and subscribers alone. Default: 1000000, of 20000000 allocations at most.",
);
const COUNT: Flag<u32> = Flag::number("count", "N", "Allocations of each job. Default: 1.");
const TYPE: Flag<String> = Flag::value("type", "TYPE", "Of the jobs: service or batch. Default: service.");
const TIME: Flag<base::Duration> = Flag::parsed(
    "time",
    "SPAN",
    "a span like 30s",
    "How long jobs are submitted, in each step. Default: 30s.",
);
const SETTLE: Flag<base::Duration> = Flag::parsed(
    "settle",
    "SPAN",
    "a span like 30s",
    "How long to wait for jobs that are not placed yet. Default: 30s.",
);
const SUBSCRIBERS: Flag<u32> =
    Flag::number("subscribers", "N", "Readers of the whole event stream besides. Default: 0.");
const PID: Flag<u32> =
    Flag::number("pid", "PID", "The server's process on this host: its processor time and memory.");
const CALIBRATE: Flag<bool> =
    Flag::switch("calibrate", "Also time a loop that is always the same, by which different hosts compare.");
const SEED: Flag<u64> = Flag::number("seed", "N", "Of the arrivals of an open loop. Default: 1.");

const FLAGS: FlagList = &[
    &NODES,
    &LIVE,
    &NODE_CPU,
    &NODE_MEMORY,
    &BEAT_EVERY,
    &FAIL,
    &RPC,
    &RPC_CONNECTIONS,
    &RATE,
    &RAMP,
    &LIMIT,
    &CONNECTIONS,
    &CLIENTS,
    &WAIT,
    &JOBS,
    &COUNT,
    &TYPE,
    &TIME,
    &SETTLE,
    &SUBSCRIBERS,
    &PID,
    &CALIBRATE,
    &SEED,
    &JSON,
];

pub(super) static COMMAND: Command = Command {
    name: "bench cluster",
    aliases: &[],
    arguments: "",
    summary: "Put load on a server that speaks Nomad's API, and measure what comes of it.",
    details: "Registers simulated nodes over the node RPC, submits jobs that run on them alone, finds out from the event stream\n\
              when they are placed, and takes all of it away again, also after Ctrl-C. Latencies count from when a job was meant\n\
              to be submitted. docs/bench.md says how to compare servers, and what misleads.\n\
              Example: bench cluster -nodes 100 -rate 100 -ramp 1.25 -pid 4242\n\
              Example: bench cluster -nodes 100 -live -clients 1 -wait placed -time 10s\n\
              Exit code 1 if something could not be taken away, or a job was not accepted or placed.",
    flags: &[FLAGS, &[&ADDRESS, &TOKEN, &NAMESPACE]],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let options = options(&call)?;
    let ramps = matches!(options.load, Load::Open { ramp: Some(_), .. });
    let interrupt = async {
        // Without a handler the program would end here and leave everything.
        let _ = tokio::signal::ctrl_c().await;
        write_err("==> interrupted; once more to leave everything as it is");
        tokio::spawn(async {
            let _ = tokio::signal::ctrl_c().await;
            std::process::exit(1);
        });
    };
    let report = load::cluster::run(options, interrupt, |what| write_err(format!("==> {what}"))).await?;
    if call.args.switch(&JSON) {
        write_out(json(&report));
    } else {
        write_out(report.table());
    }
    // The last step of a ramp is meant to be too much.
    let complete = ramps || report.steps.iter().all(|step| step.errors == 0 && step.unplaced == 0);
    Ok(u8::from(!complete || report.interrupted || !report.leftovers.is_empty()))
}

fn options(call: &Call) -> Result<ClusterOptions, Failure> {
    let args = &call.args;
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random name for the run: {error}"))?;
    let count = args.parsed(&COUNT)?.unwrap_or(1);
    let options = ClusterOptions {
        address: call.address().to_string(),
        token: call.token().to_string(),
        namespace: call.namespace().to_string(),
        rpc: args.value(&RPC).map(str::to_string),
        run: random.iter().map(|byte| format!("{byte:02x}")).collect(),
        nodes: args.parsed(&NODES)?.unwrap_or(100),
        live: args.switch(&LIVE),
        node_mhz: args.parsed(&NODE_CPU)?.unwrap_or(64_000),
        node_mib: args.parsed(&NODE_MEMORY)?.unwrap_or(131_072),
        beat_every: span(call, &BEAT_EVERY)?,
        failing: args.parsed(&FAIL)?.unwrap_or(0),
        rpc_connections: args.parsed(&RPC_CONNECTIONS)?.unwrap_or(8),
        load: load(call)?,
        jobs: args.parsed(&JOBS)?.unwrap_or(JOBS_DEFAULT.min(ALLOCS_MAX / count.max(1))),
        count,
        batch: match args.value(&TYPE).unwrap_or("service") {
            "service" => false,
            "batch" => true,
            other => return Err(call.usage(&format!("-type: expected service or batch, not \"{other}\""))),
        },
        time: span(call, &TIME)?.unwrap_or(Duration::from_secs(30)),
        settle: span(call, &SETTLE)?.unwrap_or(Duration::from_secs(30)),
        subscribers: args.parsed(&SUBSCRIBERS)?.unwrap_or(0),
        pid: args.parsed(&PID)?,
        calibrate: args.switch(&CALIBRATE),
        seed: args.parsed(&SEED)?.unwrap_or(1),
    };
    options.check()?;
    Ok(options)
}

/// An open loop where there is a rate, else a closed one.
fn load(call: &Call) -> Result<Load, Failure> {
    let args = &call.args;
    let ramp = args.parsed(&RAMP)?.map(|factor| {
        let limit = span(call, &LIMIT)?.unwrap_or(Duration::from_secs(1));
        Ok::<_, Failure>(Ramp { factor, limit })
    });
    let ramp = ramp.transpose()?;
    let misplaced = |flags: &[&dyn crate::flags::AnyFlag], needs: &str| {
        let given = flags.iter().find(|flag| args.last(**flag).is_some());
        given.map_or(Ok(()), |flag| {
            Err(call.usage(&format!("-{}: expected with {needs} only", flag.spec().name)))
        })
    };
    if ramp.is_none() {
        misplaced(&[&LIMIT], "-ramp")?;
    }
    if args.parsed(&JOBS)? == Some(0) {
        misplaced(&[&RATE, &CLIENTS, &WAIT, &RAMP, &CONNECTIONS], "jobs, and -jobs is 0,")?;
        return Ok(Load::None);
    }
    if let Some(rate) = args.parsed(&RATE)? {
        misplaced(&[&CLIENTS, &WAIT], "a closed loop, without -rate,")?;
        let connections = args.parsed(&CONNECTIONS)?.unwrap_or(64);
        return Ok(Load::Open { rate, connections, ramp });
    }
    misplaced(&[&RAMP, &CONNECTIONS], "-rate")?;
    let wait = match args.value(&WAIT).unwrap_or("accepted") {
        "accepted" => Wait::Accepted,
        "placed" => Wait::Placed,
        "running" => Wait::Running,
        other => {
            return Err(call.usage(&format!("-wait: expected accepted, placed or running, not \"{other}\"")));
        }
    };
    Ok(Load::Closed { clients: args.parsed(&CLIENTS)?.unwrap_or(64), wait })
}

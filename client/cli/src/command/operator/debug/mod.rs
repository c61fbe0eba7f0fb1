//! A bundle of what an agent, its servers and its nodes say, for those who look into a problem elsewhere.

mod bundle;
mod capture;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE, now};
use crate::flags::{Completion, Flag, FlagList};
use crate::output::write_out;
use bundle::Bundle;
use capture::{Capture, Plan};

const DURATION: Flag<base::Duration> =
    Flag::parsed("duration", "DURATION", "a duration, like 2m", "How long to capture. Default: 5m.");
const INTERVAL: Flag<base::Duration> =
    Flag::parsed("interval", "DURATION", "a duration, like 30s", "How often to read objects. Default: 30s.");
const EVENT_INDEX: Flag<u64> = Flag::number("event-index", "N", "Where the captured events begin.");
const EVENT_TOPIC: Flag<String> =
    Flag::value("event-topic", "TOPICS", "Events to capture, like Job:web,Node or all. Default: none.");
const LOG_LEVEL: Flag<String> = Flag::value("log-level", "LEVEL", "What of the logs. Default: trace.");
const LOG_INCLUDE_LOCATION: Flag<bool> =
    Flag::switch("log-include-location", "Include the source location of each line. Default: true.");
const LOG_FILE_EXPORT: Flag<bool> =
    Flag::switch("log-file-export", "Also include the log files that the agents have written.");
const MAX_NODES: Flag<usize> = Flag::number("max-nodes", "N", "Most nodes; 0 for all. Default: 10.");
const NODE_CLASS: Flag<String> = Flag::value("node-class", "CLASS", "Only nodes of this class.");
const NODE_ID: Flag<String> =
    Flag::value("node-id", "NODES", "Ids or prefixes of nodes, or all, or none. Default: all.")
        .completed_by(Completion::Ids("nodes"));
const SERVER_ID: Flag<String> =
    Flag::value("server-id", "SERVERS", "Names of servers, or leader, all or none. Default: all.");
const STALE: Flag<bool> = Flag::switch("stale", "Allow any server to answer, also without a leader.");
const OUTPUT: Flag<String> =
    Flag::value("output", "DIR", "Leave the bundle in this directory, and make no archive.")
        .completed_by(Completion::Files);

/// Flags of Nomad that mean nothing here: they are rejected by name, so that nobody waits for what they ask.
macro_rules! refused {
    ($($name:literal $why:ident),* $(,)?) => {
        const REFUSED: FlagList = &[$(&Flag::<String>::value($name, "TEXT", "")),*];
        const REASONS: &[&str] = &[$($why),*];
    };
}

const PPROF: &str = "agents are no Go programs and have no profiles: use perf";
const JOURNAL: &str =
    "the agents' unit is not known here: use 'monitor export -service-name UNIT -logs-since'";
const CONSUL: &str = "Consul is not captured: use 'consul debug'";
const VAULT: &str = "Vault is not captured: use 'vault debug'";

refused!(
    "pprof-duration" PPROF,
    "pprof-interval" PPROF,
    "log-lookback" JOURNAL,
    "consul-http-addr" CONSUL,
    "consul-auth" CONSUL,
    "consul-token" CONSUL,
    "consul-token-file" CONSUL,
    "consul-client-cert" CONSUL,
    "consul-client-key" CONSUL,
    "consul-ca-cert" CONSUL,
    "consul-ca-path" CONSUL,
    "vault-address" VAULT,
    "vault-token" VAULT,
    "vault-ca-cert" VAULT,
    "vault-ca-path" VAULT,
    "vault-client-cert" VAULT,
    "vault-client-key" VAULT,
);

pub(super) static COMMAND: Command = Command {
    name: "operator debug",
    aliases: &["debug"],
    arguments: "",
    summary: "Write a bundle of what the cluster says of itself.",
    details: "Logs of servers and nodes are followed for -duration, and objects and metrics are read every -interval. Secrets\n\
              are left out of what is read; logs are as the agents wrote them. Ctrl-C ends it early. The bundle is\n\
              PROGRAM-debug-TIME.tar.gz; each answer that failed stands in it as its error.",
    flags: &[
        &[
            &DURATION,
            &INTERVAL,
            &EVENT_INDEX,
            &EVENT_TOPIC,
            &LOG_LEVEL,
            &LOG_INCLUDE_LOCATION,
            &LOG_FILE_EXPORT,
            &MAX_NODES,
            &NODE_CLASS,
            &NODE_ID,
            &SERVER_ID,
            &STALE,
            &OUTPUT,
            &VERBOSE,
        ],
        REFUSED,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

const DURATION_DEFAULT: Duration = Duration::from_secs(5 * 60);
const INTERVAL_DEFAULT: Duration = Duration::from_secs(30);
const MAX_NODES_DEFAULT: usize = 10;

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    refuse(&call)?;
    let client = call.client()?;
    let plan = plan(&call, &client).await?;
    let name = format!("{}-debug-{}", call.program, moment());
    let output = call.args.value(&OUTPUT).filter(|folder| !folder.is_empty());
    let folder = output.map(|folder| Path::new(folder).join(&name));
    if folder.as_ref().is_some_and(|folder| folder.exists()) {
        return Err(anyhow::anyhow!("Error writing bundle: {name} is there already").into());
    }
    let workplace = tempfile::tempdir().context("Error writing bundle: no temporary directory")?;
    let root = folder.clone().unwrap_or_else(|| workplace.path().join(&name));
    let bundle = Bundle::create(&root)?;
    write_out(format!(
        "Starting debugger...\n\n    Servers: ({}) {:?}\n    Clients: ({}) {:?}\n   Interval: {}\n   Duration: {}\n\n",
        plan.servers.len(),
        plan.servers,
        plan.nodes.len(),
        plan.nodes,
        base::Duration::from(plan.interval),
        base::Duration::from(plan.duration),
    ));
    let capture =
        Capture { client: &client, bundle: &bundle, plan: &plan, verbose: call.args.switch(&VERBOSE) };
    tokio::select! {
        () = capture.run() => {}
        _ = tokio::signal::ctrl_c() => write_out("Interrupted: what was captured so far is in the bundle\n"),
    }
    bundle.finish()?;
    let made = match folder {
        Some(folder) => folder,
        None => archived(&root, &name)?,
    };
    let failed = bundle.failures();
    if failed > 0 {
        write_out(format!("{failed} answers failed: index.json names them\n"));
    }
    write_out(format!("Created debug bundle: {}\n", made.display()));
    Ok(0)
}

fn archived(root: &Path, name: &str) -> Result<PathBuf, Failure> {
    let archive = PathBuf::from(format!("{name}.tar.gz"));
    bundle::archive(root, name, &archive)
        .with_context(|| format!("Error writing bundle to {}", archive.display()))?;
    Ok(archive)
}

fn refuse(call: &Call) -> Result<(), Failure> {
    for (flag, reason) in REFUSED.iter().zip(REASONS) {
        if call.args.last(*flag).is_some() {
            return Err(call.usage(&format!("-{}: {reason}", flag.spec().name)));
        }
    }
    Ok(())
}

async fn plan(call: &Call, client: &Client) -> Result<Plan, Failure> {
    let span = |given: Option<base::Duration>, usual| given.map_or(usual, base::Duration::to_std);
    let duration = span(call.args.parsed(&DURATION)?, DURATION_DEFAULT);
    let interval = span(call.args.parsed(&INTERVAL)?, INTERVAL_DEFAULT);
    if duration.is_zero() || interval.is_zero() {
        return Err(call.usage("-duration and -interval must be more than 0"));
    }
    if interval > duration {
        return Err(call.usage("-interval must not be longer than -duration"));
    }
    let level = call.args.value(&LOG_LEVEL).unwrap_or("trace").to_ascii_lowercase();
    if !["trace", "debug", "info", "warn", "error"].contains(&level.as_str()) {
        return Err(call.usage(&format!("-log-level is trace, debug, info, warn or error, not \"{level}\"")));
    }
    let topics = match call.args.value(&EVENT_TOPIC).unwrap_or("none") {
        "none" | "" => Vec::new(),
        "all" => vec!["*".to_string()],
        topics => topics.split(',').map(|topic| topic.trim().to_string()).collect(),
    };
    Ok(Plan {
        duration,
        interval,
        event_index: call.args.parsed(&EVENT_INDEX)?.unwrap_or(0),
        topics,
        log_level: level,
        log_location: call.args.given_switch(&LOG_INCLUDE_LOCATION).unwrap_or(true),
        log_files: call.args.switch(&LOG_FILE_EXPORT),
        stale: call.args.switch(&STALE),
        servers: servers(call, client).await?,
        nodes: nodes(call, client).await?,
    })
}

async fn servers(call: &Call, client: &Client) -> Result<Vec<String>, Failure> {
    let given = call.args.value(&SERVER_ID).unwrap_or("all");
    let answer = client.members().await.doing("querying servers")?;
    let (region, mut members) = (answer.server_region, answer.members.0);
    // Those of other regions are captured there.
    members.retain(|member| member.tags.get("region").is_none_or(|other| *other == region));
    match given {
        "none" | "" => Ok(Vec::new()),
        "all" => Ok(members.into_iter().map(|member| member.name).collect()),
        names => {
            let names: Vec<String> = names.split(',').map(|name| name.trim().to_string()).collect();
            let is_known =
                |name: &String| name == "leader" || members.iter().any(|member| member.name == *name);
            match names.iter().find(|name| !is_known(name)) {
                Some(name) => Err(call.usage(&format!("-server-id: there is no server \"{name}\""))),
                None => Ok(names),
            }
        }
    }
}

async fn nodes(call: &Call, client: &Client) -> Result<Vec<String>, Failure> {
    let given = call.args.value(&NODE_ID).unwrap_or("all");
    if matches!(given, "none" | "") {
        return Ok(Vec::new());
    }
    let found = client.nodes(Query::new()).await.doing("querying nodes")?.value;
    let prefixes: Vec<&str> = given.split(',').map(str::trim).collect();
    if given != "all"
        && let Some(prefix) =
            prefixes.iter().find(|prefix| found.iter().all(|node| !node.id.starts_with(**prefix)))
    {
        return Err(call.usage(&format!("-node-id: there is no node \"{prefix}\"")));
    }
    let class = call.args.value(&NODE_CLASS).unwrap_or_default();
    let is_asked = |id: &str| given == "all" || prefixes.iter().any(|prefix| id.starts_with(prefix));
    let found = found.into_iter().filter(|node| class.is_empty() || node.node_class == class);
    let ids = found.map(|node| node.id).filter(|id| is_asked(id));
    let most = match call.args.parsed(&MAX_NODES)?.unwrap_or(MAX_NODES_DEFAULT) {
        0 => usize::MAX,
        most => most,
    };
    Ok(ids.take(most).collect())
}

/// `2026-01-02-030405Z`, as Nomad names its bundles.
fn moment() -> String {
    let stamp = jiff::Timestamp::from_nanosecond(i128::from(now().0)).unwrap_or_default();
    stamp.strftime("%Y-%m-%d-%H%M%SZ").to_string()
}

use sdk::{Client, Frames, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::{Completion, Flag};
use crate::output::write_out;
use crate::resolve;

const LOG_LEVEL: Flag<String> = Flag::value(
    "log-level",
    "LEVEL",
    "Show this level and more severe ones: trace, debug, info, warn or error.",
);
const LOG_INCLUDE_LOCATION: Flag<bool> =
    Flag::switch("log-include-location", "Include the source location of each line.");
const NODE_ID: Flag<String> =
    Flag::value("node-id", "NODE", "The agent of this node.").completed_by(Completion::Ids("nodes"));
const SERVER_ID: Flag<String> =
    Flag::value("server-id", "SERVER", "The agent of this server: its name, or leader.");
const JSON: Flag<bool> = Flag::switch("json", "Print the lines as JSON.");
const LOGS_SINCE: Flag<base::Duration> = Flag::parsed(
    "logs-since",
    "DURATION",
    "a duration, like 72h",
    "With -service-name: how far to go back. Default: 72h.",
);
const SERVICE_NAME: Flag<String> =
    Flag::value("service-name", "NAME", "The systemd unit that the agent runs as.");
const ON_DISK: Flag<bool> = Flag::switch("on-disk", "Read the agent's own log file.");
const FOLLOW: Flag<bool> = Flag::switch("follow", "With -service-name: follow the log.");

pub(super) static COMMAND: Command = Command {
    name: "monitor",
    aliases: &[],
    arguments: "",
    summary: "Follow the log of an agent.",
    details: "The agent at -address, or the agent of a node or server.",
    flags: &[&[&LOG_LEVEL, &LOG_INCLUDE_LOCATION, &NODE_ID, &SERVER_ID, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

pub(super) static EXPORT: Command = Command {
    name: "monitor export",
    aliases: &[],
    arguments: "",
    summary: "Print what an agent has already logged.",
    details: "From its log file with -on-disk, or from the system journal with -service-name.",
    flags: &[&[&NODE_ID, &SERVER_ID, &LOGS_SINCE, &SERVICE_NAME, &ON_DISK, &FOLLOW], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(export(call))),
};

async fn export(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let since: Option<base::Duration> = call.args.parsed(&LOGS_SINCE)?;
    let text = |flag| call.args.value(flag).unwrap_or_default();
    let (on_disk, service) = (call.args.switch(&ON_DISK), !text(&SERVICE_NAME).is_empty());
    if on_disk == service {
        return Err(call.usage("One of -service-name or -on-disk must be given"));
    }
    let query = Query::new()
        .with("logs_since", since.map(|since| since.to_string()).unwrap_or_default())
        .with("service_name", text(&SERVICE_NAME))
        .flag("on_disk", on_disk)
        .flag("follow", call.args.switch(&FOLLOW))
        .with("server_id", text(&SERVER_ID))
        .with("node_id", node(&call, &client).await?);
    let frames = client.monitor_export(query).await.doing("starting monitor export")?;
    tokio::select! {
        ended = print(frames) => ended,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let text = |flag| call.args.value(flag).unwrap_or_default();
    let query = Query::new()
        .with("log_level", text(&LOG_LEVEL))
        .flag("log_json", call.args.switch(&JSON))
        .flag("log_include_location", call.args.switch(&LOG_INCLUDE_LOCATION))
        .with("server_id", text(&SERVER_ID))
        .with("node_id", node(&call, &client).await?);
    tokio::select! {
        ended = follow(&client, query) => ended,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn node(call: &Call, client: &Client) -> Result<String, Failure> {
    match call.args.value(&NODE_ID).filter(|id| !id.is_empty()) {
        Some(id) => Ok(resolve::node(client, &call.style(), id).await?.id),
        None => Ok(String::new()),
    }
}

async fn follow(client: &Client, query: Query) -> Outcome {
    print(client.monitor(query).await.doing("starting monitor")?).await
}

async fn print(mut frames: Frames) -> Outcome {
    while let Some(frame) = frames.next().await.doing("monitoring logs")? {
        write_out(&frame.data.0);
    }
    Ok(0)
}

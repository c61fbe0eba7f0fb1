use sdk::{Client, Frames, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::{switch, value};
use crate::output::write_out;
use crate::resolve;

pub static COMMAND: Command = Command {
    name: "monitor",
    aliases: &[],
    arguments: "",
    summary: "Follow the log of an agent.",
    details: "The agent that is asked, or the one of a node or server.",
    flags: &[
        &[
            value("log-level", "LEVEL", "Show this level and worse: trace, debug, info, warn or error."),
            switch("log-include-location", "Say where in the program each line comes from."),
            value("node-id", "NODE", "The agent of this node."),
            value("server-id", "SERVER", "The agent of this server: its name, or leader."),
            switch("json", "Print the lines as JSON."),
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

pub static EXPORT: Command = Command {
    name: "monitor export",
    aliases: &[],
    arguments: "",
    summary: "Print what an agent has logged before.",
    details: "From its log file with -on-disk, or from the journal of the system with -service-name.",
    flags: &[
        &[
            value("node-id", "NODE", "The agent of this node."),
            value("server-id", "SERVER", "The agent of this server: its name, or leader."),
            value("logs-since", "DURATION", "With -service-name: how far to look back; 72h unless given."),
            value("service-name", "NAME", "The unit of the system that the agent runs as."),
            switch("on-disk", "Read the agent's own log file."),
            switch("follow", "With -service-name: stay and print what comes."),
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(export(call))),
};

async fn export(call: Call) -> Outcome {
    call.no_arguments()?;
    let client = call.client()?;
    let since: Option<base::Duration> = call.args.parsed("logs-since", "a duration, like 72h")?;
    let text = |name| call.args.value(name).unwrap_or_default();
    let (on_disk, service) = (call.args.switch("on-disk"), !text("service-name").is_empty());
    if on_disk == service {
        return Err(call.usage("One of -service-name or -on-disk must be given"));
    }
    let query = Query::new()
        .with("logs_since", since.map(|since| since.to_string()).unwrap_or_default())
        .with("service_name", text("service-name"))
        .flag("on_disk", on_disk)
        .flag("follow", call.args.switch("follow"))
        .with("server_id", text("server-id"))
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
    let text = |name| call.args.value(name).unwrap_or_default();
    let query = Query::new()
        .with("log_level", text("log-level"))
        .flag("log_json", call.args.switch("json"))
        .flag("log_include_location", call.args.switch("log-include-location"))
        .with("server_id", text("server-id"))
        .with("node_id", node(&call, &client).await?);
    tokio::select! {
        ended = follow(&client, query) => ended,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn node(call: &Call, client: &Client) -> Result<String, Failure> {
    match call.args.value("node-id").filter(|id| !id.is_empty()) {
        Some(id) => Ok(resolve::node(client, &call.look(), id).await?.id),
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

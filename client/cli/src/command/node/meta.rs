use model::document::Map;
use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::{Completion, Flag};
use crate::output::{OutputStyle, fields, write_out};
use crate::resolve;

const NODE_ID: Flag<String> =
    Flag::value("node-id", "NODE", "The node. Default: the node of the agent at -address.")
        .completed_by(Completion::Ids("nodes"));
const UNSET: Flag<String> = Flag::value("unset", "KEY,...", "Keys to remove, separated by commas.");

pub(super) static APPLY: Command = Command {
    name: "node meta apply",
    aliases: &[],
    arguments: "<key>=<value>...",
    summary: "Change the dynamic metadata of a node.",
    details: "",
    flags: &[&[&NODE_ID, &UNSET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

pub(super) static READ: Command = Command {
    name: "node meta read",
    aliases: &[],
    arguments: "",
    summary: "Show the metadata of a node.",
    details: "",
    flags: &[&[&NODE_ID], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(read(call))),
};

async fn apply(call: Call) -> Outcome {
    let changes = changes(&call)?;
    let client = call.client()?;
    let id = node(&call, &client).await?;
    client.set_node_meta(&id, changes).await.doing("applying dynamic node metadata")?;
    Ok(0)
}

fn changes(call: &Call) -> Result<Map<String, Option<String>>, Failure> {
    let mut changes = Map::default();
    for word in &call.args.words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(call.usage(&format!("\"{word}\" is no key=value")));
        };
        changes.insert(key.to_string(), Some(value.to_string()));
    }
    let unset = call.args.value(&UNSET).unwrap_or_default();
    for key in unset.split(',').map(str::trim).filter(|key| !key.is_empty()) {
        changes.insert(key.to_string(), None);
    }
    if changes.is_empty() {
        return Err(call.usage("Must specify -unset or key=value arguments"));
    }
    Ok(changes)
}

async fn read(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let id = node(&call, &client).await?;
    let meta = client.node_meta(&id).await.doing("reading dynamic node metadata")?;
    if let Some(format) = format {
        return format.print(&meta);
    }
    let dynamic = meta.dynamic.iter();
    let dynamic = dynamic.map(|(key, value)| (key.clone(), value.clone().unwrap_or("<unset>".to_string())));
    let text = section(&style, "All Meta", pairs(&meta.meta))
        + "\n"
        + &section(&style, "Dynamic Meta", dynamic.collect())
        + "\n"
        + &section(&style, "Static Meta", pairs(&meta.fixed));
    write_out(text);
    Ok(0)
}

fn pairs(map: &Map<String, String>) -> Vec<(String, String)> {
    map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn section(style: &OutputStyle, title: &str, entries: Vec<(String, String)>) -> String {
    style.section(title, &fields(&entries)).trim_start_matches('\n').to_string()
}

/// The id of the given node; empty for the agent's own node.
async fn node(call: &Call, client: &Client) -> Result<String, Failure> {
    match call.args.value(&NODE_ID).filter(|id| !id.is_empty()) {
        Some(id) => Ok(resolve::node(client, &call.style(), id).await?.id),
        None => Ok(String::new()),
    }
}

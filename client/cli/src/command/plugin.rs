//! Storage plugins, as nodes report them.

use serde_json::Value;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::output::{Table, fields, write_out};

const TYPE: Flag<String> = Flag::value("type", "TYPE", "The type of the plugins: csi.");

static STATUS: Command = Command {
    name: "plugin status",
    aliases: &[],
    arguments: "[<plugin id>]",
    summary: "Show storage plugins, or one.",
    details: "Plugins are tasks with a csi_plugin block; how many of them are healthy their nodes say.",
    flags: &[&[&TYPE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

pub(super) const COMMANDS: &[&Command] = &[&STATUS];

async fn status(call: Call) -> Outcome {
    let (given, format) = (call.optional_argument()?, call.object_format()?);
    if let Some(other) = call.args.value(&TYPE).filter(|kind| *kind != "csi") {
        return Err(anyhow::anyhow!("invalid -type \"{other}\": expected csi").into());
    }
    let client = call.client()?;
    let plugins = client.csi_plugins().await.doing("querying plugins")?.value;
    let Some(given) = given else {
        if let Some(format) = format {
            return format.print(&plugins);
        }
        let mut table =
            Table::new(["ID", "Provider", "Controllers Healthy/Expected", "Nodes Healthy/Expected"]);
        for plugin in &plugins {
            table.row([
                plugin.id.clone(),
                plugin.provider.clone(),
                format!("{}/{}", plugin.controllers_healthy, plugin.controllers_expected),
                format!("{}/{}", plugin.nodes_healthy, plugin.nodes_expected),
            ]);
        }
        write_out(if plugins.is_empty() { "No CSI plugins\n".to_string() } else { table.render() });
        return Ok(0);
    };
    let mut fitting = plugins.iter().filter(|plugin| plugin.id.starts_with(given));
    let exact = plugins.iter().find(|plugin| plugin.id == given);
    let id = match (exact, fitting.next(), fitting.next()) {
        (Some(exact), ..) => &exact.id,
        (None, Some(only), None) => &only.id,
        (None, None, _) => {
            return Err(anyhow::anyhow!("No plugin(s) with prefix or ID \"{given}\" found").into());
        }
        (None, Some(_), Some(_)) => {
            return Err(anyhow::anyhow!("Prefix \"{given}\" matched multiple plugins").into());
        }
    };
    let plugin = client.csi_plugin(id).await.doing("querying plugin")?;
    if let Some(format) = format {
        return format.print(&plugin);
    }
    write_out(block(&plugin)?);
    Ok(0)
}

fn block(plugin: &Value) -> Result<String, Failure> {
    let text = |key: &str| plugin[key].as_str().unwrap_or_default().to_string();
    let number = |key: &str| plugin[key].as_i64().unwrap_or_default();
    let mut shown = fields(&[
        ("ID", text("ID")),
        ("Provider", text("Provider")),
        ("Version", text("Version")),
        ("Controllers Healthy", number("ControllersHealthy").to_string()),
        ("Controllers Expected", number("ControllersExpected").to_string()),
        ("Nodes Healthy", number("NodesHealthy").to_string()),
        ("Nodes Expected", number("NodesExpected").to_string()),
    ]);
    let mut table = Table::new(["ID", "Node ID", "Task Group", "Job ID", "Status"]);
    let allocs = plugin["Allocations"].as_array().map(Vec::as_slice).unwrap_or_default();
    for alloc in allocs {
        table.row(
            ["ID", "NodeID", "TaskGroup", "JobID", "ClientStatus"]
                .map(|key| alloc[key].as_str().unwrap_or_default().to_string()),
        );
    }
    let allocs = if allocs.is_empty() { "No allocations placed\n".to_string() } else { table.render() };
    shown.push_str(&format!("\nAllocations\n{allocs}"));
    Ok(shown)
}

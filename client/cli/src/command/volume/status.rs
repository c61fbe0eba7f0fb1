use api::HostVolumeStub;
use model::document::HostVolume;
use sdk::{Client, Query};
use serde_json::Value;

use super::csi_status;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::output::{Table, fields, write_out};

const TYPE: Flag<String> = Flag::value("type", "TYPE", "csi or host. Default: both.");
const NODE: Flag<String> = Flag::value("node", "ID", "Only volumes on this node.");
const NODE_POOL: Flag<String> = Flag::value("node-pool", "NAME", "Only volumes in this node pool.");

pub(super) static COMMAND: Command = Command {
    name: "volume status",
    aliases: &[],
    arguments: "[<volume id>]",
    summary: "Show volumes, or one.",
    details: "Volumes that were made on nodes, and those of storage plugins. Those of a node's configuration are shown by \
              `node status -verbose`.",
    flags: &[&[&TYPE, &NODE, &NODE_POOL], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

async fn status(call: Call) -> Outcome {
    match call.args.value(&TYPE).unwrap_or_default() {
        "host" => status_of_host(call).await,
        "csi" => csi_status::status(&call.client()?, call.optional_argument()?, call.object_format()?).await,
        "" => status_of_all(call).await,
        other => Err(anyhow::anyhow!("invalid -type \"{other}\": expected csi or host").into()),
    }
}

/// What is given is looked for among volumes of plugins first.
async fn status_of_all(call: Call) -> Outcome {
    let client = call.client()?;
    let given = call.optional_argument()?.unwrap_or_default();
    let of_plugins = client.csi_volumes(Query::new().prefix(given)).await.doing("querying volumes")?.value;
    if of_plugins.is_empty() {
        return status_of_host(call).await;
    }
    let format = call.object_format()?;
    if !given.is_empty() || format.is_some() {
        return csi_status::status(&client, call.optional_argument()?, format).await;
    }
    let on_nodes = client.host_volumes(Query::new()).await.doing("querying volumes")?.value;
    write_out(format!("Container Storage Interface\n{}", csi_status::table(&of_plugins)));
    if !on_nodes.is_empty() {
        write_out(format!("\nDynamic Host Volumes\n{}", table(&on_nodes)));
    }
    Ok(0)
}

async fn status_of_host(call: Call) -> Outcome {
    let (given, format) = (call.optional_argument()?, call.object_format()?);
    let client = call.client()?;
    let Some(given) = given else {
        let query = Query::new()
            .with("node_id", call.args.value(&NODE).unwrap_or_default())
            .with("node_pool", call.args.value(&NODE_POOL).unwrap_or_default());
        let volumes = client.host_volumes(query).await.doing("querying volumes")?.value;
        if let Some(format) = format {
            return format.print(&volumes);
        }
        write_out(if volumes.is_empty() { "No volumes found\n".to_string() } else { table(&volumes) });
        return Ok(0);
    };
    let volume = chosen(&client, given).await?;
    if let Some(format) = format {
        return format.print(&volume);
    }
    write_out(block(&volume)?);
    Ok(0)
}

/// The volume of this id, or the only one whose id begins so.
async fn chosen(client: &Client, given: &str) -> Result<Value, Failure> {
    let found = client.host_volumes(Query::new().prefix(given)).await.doing("querying volumes")?.value;
    match found.as_slice() {
        [] => Err(anyhow::anyhow!("No volume(s) with prefix or ID \"{given}\" found").into()),
        [one] => client.host_volume(&one.id).await.doing("querying volume"),
        several => {
            let table = table(several);
            Err(Failure::Code(1, format!("Prefix matched multiple volumes\n\n{}", table.trim_end())))
        }
    }
}

fn table(volumes: &[HostVolumeStub]) -> String {
    let mut table = Table::new(["ID", "Name", "Namespace", "Plugin ID", "Node ID", "Node Pool", "State"]);
    for volume in volumes {
        table.row([
            volume.id.clone(),
            volume.name.clone(),
            volume.namespace.clone(),
            volume.plugin_id.clone(),
            volume.node_id.clone(),
            volume.node_pool.clone(),
            volume.state.clone(),
        ]);
    }
    table.render()
}

fn block(shown: &Value) -> Result<String, Failure> {
    let volume: HostVolume =
        serde_json::from_value(shown.clone()).map_err(|error| anyhow::anyhow!("the answer: {error}"))?;
    let mut text = fields(&[
        ("ID", volume.id.clone()),
        ("Name", volume.name.clone()),
        ("Namespace", volume.namespace.clone()),
        ("Plugin ID", volume.plugin_id.clone()),
        ("Node ID", volume.node_id.clone()),
        ("Node Pool", volume.node_pool.clone()),
        ("Capacity", volume.capacity_bytes.to_string()),
        ("State", volume.state.clone()),
        ("Host Path", volume.host_path.clone()),
    ]);
    let mut capabilities = Table::new(["Access Mode", "Attachment Mode"]);
    for own in volume.requested_capabilities.iter() {
        capabilities.row([own.access_mode.clone(), own.attachment_mode.clone()]);
    }
    text.push_str(&format!("\nCapabilities\n{}", capabilities.render()));
    let users = shown["Allocations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = Table::new(["ID", "Job ID", "Task Group", "Status"]);
    for user in users {
        table.row(
            ["ID", "JobID", "TaskGroup", "ClientStatus"]
                .map(|key| user[key].as_str().unwrap_or_default().to_string()),
        );
    }
    let users = if users.is_empty() { "No allocations placed\n".to_string() } else { table.render() };
    text.push_str(&format!("\nAllocations\n{users}"));
    Ok(text)
}

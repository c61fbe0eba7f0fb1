use api::CSIVolumeListStub;
use model::document::CSIVolume;
use sdk::{Client, Query};
use serde_json::Value;

use crate::call::{Doing, Failure, Outcome};
use crate::object_format::ObjectFormat;
use crate::output::{Table, fields, write_out};

/// Volumes of storage plugins, or one.
pub(super) async fn status(client: &Client, given: Option<&str>, format: Option<ObjectFormat>) -> Outcome {
    let query = Query::new().prefix(given.unwrap_or_default());
    let found = client.csi_volumes(query).await.doing("querying volumes")?.value;
    let Some(given) = given else {
        if let Some(format) = format {
            return format.print(&found);
        }
        write_out(if found.is_empty() { "No CSI volumes\n".to_string() } else { table(&found) });
        return Ok(0);
    };
    let exact = found.iter().find(|volume| volume.id == given);
    let id = match (exact, found.as_slice()) {
        (Some(exact), _) => &exact.id,
        (None, [one]) => &one.id,
        (None, []) => return Err(anyhow::anyhow!("No volume(s) with prefix or ID \"{given}\" found").into()),
        (None, several) => {
            let table = table(several);
            return Err(Failure::Code(1, format!("Prefix matched multiple volumes\n\n{}", table.trim_end())));
        }
    };
    let volume = client.csi_volume(id).await.doing("querying volume")?;
    if let Some(format) = format {
        return format.print(&volume);
    }
    write_out(block(&volume)?);
    Ok(0)
}

pub(super) fn table(volumes: &[CSIVolumeListStub]) -> String {
    let mut table = Table::new(["ID", "Name", "Namespace", "Plugin ID", "Schedulable", "Access Mode"]);
    for volume in volumes {
        let mode = if volume.access_mode.is_empty() { "<none>" } else { &volume.access_mode };
        table.row([
            volume.id.clone(),
            volume.name.clone(),
            volume.namespace.clone(),
            volume.plugin_id.clone(),
            volume.schedulable.to_string(),
            mode.to_string(),
        ]);
    }
    table.render()
}

fn block(shown: &Value) -> Result<String, Failure> {
    let volume: CSIVolume =
        serde_json::from_value(shown.clone()).map_err(|error| anyhow::anyhow!("the answer: {error}"))?;
    let text = |key: &str| shown[key].as_str().unwrap_or_default().to_string();
    let number = |key: &str| shown[key].as_i64().unwrap_or_default();
    let or_none = |text: &str| if text.is_empty() { "<none>".to_string() } else { text.to_string() };
    let mut block = fields(&[
        ("ID", volume.id.clone()),
        ("Name", volume.name.clone()),
        ("Namespace", volume.namespace.clone()),
        ("External ID", volume.external_id.clone()),
        ("Plugin ID", volume.plugin_id.clone()),
        ("Provider", text("Provider")),
        ("Version", text("ProviderVersion")),
        ("Capacity", volume.capacity.to_string()),
        ("Schedulable", (shown["Schedulable"] == true).to_string()),
        ("Controllers Healthy", number("ControllersHealthy").to_string()),
        ("Controllers Expected", number("ControllersExpected").to_string()),
        ("Nodes Healthy", number("NodesHealthy").to_string()),
        ("Nodes Expected", number("NodesExpected").to_string()),
        ("Access Mode", or_none(&volume.access_mode)),
        ("Attachment Mode", or_none(&volume.attachment_mode)),
    ]);
    let mut capabilities = Table::new(["Access Mode", "Attachment Mode"]);
    for own in volume.requested_capabilities.iter() {
        capabilities.row([own.access_mode.clone(), own.attachment_mode.clone()]);
    }
    block.push_str(&format!("\nCapabilities\n{}", capabilities.render()));
    let users = shown["Allocations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = Table::new(["ID", "Node ID", "Job ID", "Task Group", "Status"]);
    for user in users {
        table.row(
            ["ID", "NodeID", "JobID", "TaskGroup", "ClientStatus"]
                .map(|key| user[key].as_str().unwrap_or_default().to_string()),
        );
    }
    let users = if users.is_empty() { "No allocations placed\n".to_string() } else { table.render() };
    block.push_str(&format!("\nAllocations\n{users}"));
    Ok(block)
}

use std::collections::BTreeMap;

use api::CSISnapshot;
use model::document::Map;
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::{OutputStyle, Table, write_out};

pub(super) const SECRET: Flag<Vec<String>> =
    Flag::values("secret", "KEY=VALUE", "A secret for the plugin. May be given several times.");
const PARAMETER: Flag<Vec<String>> =
    Flag::values("parameter", "KEY=VALUE", "A parameter for the plugin. May be given several times.");
const PLUGIN: Flag<String> = Flag::value("plugin", "ID", "The plugin whose snapshots are listed.");
const PER_PAGE: Flag<u32> = Flag::number("per-page", "N", "Most snapshots in one list. Default: 30.");
const PAGE_TOKEN: Flag<String> = Flag::value("page-token", "TOKEN", "Where the list goes on.");

pub(super) static CREATE: Command = Command {
    name: "volume snapshot create",
    aliases: &[],
    arguments: "<volume id> <snapshot name>",
    summary: "Have a storage plugin keep a volume as it is.",
    details: "",
    flags: &[&[&PARAMETER, &SECRET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(create(call))),
};

pub(super) static DELETE: Command = Command {
    name: "volume snapshot delete",
    aliases: &[],
    arguments: "<plugin id> <snapshot id>",
    summary: "Have a storage plugin delete a snapshot.",
    details: "",
    flags: &[&[&SECRET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub(super) static LIST: Command = Command {
    name: "volume snapshot list",
    aliases: &[],
    arguments: "",
    summary: "List the snapshots that a storage plugin knows.",
    details: "",
    flags: &[&[&PLUGIN, &PER_PAGE, &PAGE_TOKEN, &SECRET], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

async fn create(call: Call) -> Outcome {
    let (volume, name) = call.two_arguments()?;
    let snapshot = CSISnapshot {
        source_volume_id: volume.to_string(),
        name: name.to_string(),
        secrets: Map(pairs("secret", call.args.values(&SECRET))?),
        parameters: Map(pairs("parameter", call.args.values(&PARAMETER))?),
        ..CSISnapshot::default()
    };
    let made = call.client()?.create_csi_snapshot(&snapshot).await.doing("snapshotting volume")?;
    write_out(table(&call.style(), &made));
    Ok(0)
}

async fn delete(call: Call) -> Outcome {
    let (plugin, snapshot) = call.two_arguments()?;
    let secrets = call.args.values(&SECRET);
    pairs("secret", secrets)?;
    call.client()?.delete_csi_snapshot(plugin, snapshot, secrets).await.doing("deleting snapshot")?;
    write_out(format!("Deleted snapshot {snapshot}\n"));
    Ok(0)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let plugin =
        call.args.value(&PLUGIN).ok_or_else(|| call.usage("-plugin: expected the id of a plugin"))?;
    let secrets = call.args.values(&SECRET);
    pairs("secret", secrets)?;
    let query = Query::new()
        .with("plugin_id", plugin)
        .with("per_page", call.args.parsed(&PER_PAGE)?.unwrap_or(30))
        .with("next_token", call.args.value(&PAGE_TOKEN).unwrap_or_default());
    let listed = call.client()?.csi_snapshots(query, secrets).await.doing("listing snapshots")?;
    write_out(if listed.snapshots.is_empty() {
        "No snapshots found\n".to_string()
    } else {
        table(&call.style(), &listed.snapshots)
    });
    if !listed.next_token.is_empty() {
        write_out(format!(
            "\nResults have been paginated. To get the next page run:\n\nvolume snapshot list -plugin {plugin} -page-token {}\n",
            listed.next_token
        ));
    }
    Ok(0)
}

/// # Errors
/// One of them is no `key=value`.
pub(super) fn pairs(flag: &str, given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        let wrong = || Failure::from(anyhow::anyhow!("invalid -{flag}: expected key=value"));
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        Ok((key.to_string(), value.to_string()))
    };
    given.iter().map(pair).collect()
}

fn table(style: &OutputStyle, snapshots: &[CSISnapshot]) -> String {
    let mut table = Table::new(["Snapshot ID", "Volume ID", "Size", "Create Time", "Ready?"]);
    for snapshot in snapshots {
        table.row([
            snapshot.id.clone(),
            snapshot.external_source_volume_id.clone(),
            snapshot.size_bytes.to_string(),
            style.time(snapshot.create_time.saturating_mul(1_000_000_000)),
            snapshot.is_ready.to_string(),
        ]);
    }
    table.render()
}

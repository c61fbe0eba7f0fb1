use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use api::HistoryStorage;
use journal::store::{HISTORY_SUFFIX, HistoryFile, KEPT_SUFFIX, verify_file};
use sdk::Client;
use serde_json::{Value, json};
use server::history_file;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout::storage::{self, Verified};
use crate::output::{self, write_out};

/// A file that is not complete.
const UNFINISHED: &str = "export.tmp";

const FROM: Flag<u64> =
    Flag::number("from", "INDEX", "First index to export: the oldest there is by default.");
const TO: Flag<u64> = Flag::number("to", "INDEX", "Last index to export: the newest there is by default.");

pub(super) static STATUS: Command = Command {
    name: "operator history status",
    aliases: &[],
    arguments: "",
    summary: "Show how much history a server has, and where.",
    details: "Each server keeps its own: the one at -address answers.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

pub(super) static VERIFY: Command = Command {
    name: "operator history verify",
    aliases: &[],
    arguments: "[<folder>]",
    summary: "Read all history of a server, or of a folder, and check that it is whole.",
    details: "Has the server at -address read its log and its archive, one file at a time, and compare them with their checksums \
              and the chain that runs through all entries. With <folder>, reads an archive or an export without any \
              server. Of kept facts, which are older, it compares checksums and order: that they stood in the log was checked when \
              they were copied, and only another copy of the log shows it now. Exits with 1 when something is damaged or \
              missing.",
    flags: &[&[&VERBOSE, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(verify(call))),
};

pub(super) static EXPORT: Command = Command {
    name: "operator history export",
    aliases: &[],
    arguments: "<folder>",
    summary: "Write history to a folder, as compressed files.",
    details: "The folder must be new or empty. What the server has is copied file by file, from the one with -from to the one \
              with -to, so that there may be more at both ends; without -from also what is kept of older facts. Each file is verified before it gets its name. \
              `operator history verify <folder>` checks them later.",
    flags: &[&[&FROM, &TO, &VERBOSE, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(export(call))),
};

async fn status(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let found = call.client()?.history_storage().await.doing("querying history")?;
    if let Some(format) = format {
        return format.print(&found);
    }
    write_out(storage::status(&call.style(), &found));
    Ok(0)
}

async fn verify(call: Call) -> Outcome {
    let found = match call.optional_argument()? {
        Some(folder) => in_folder(Path::new(folder))?,
        None => on_server(&call.client()?).await?,
    };
    show(&call, &found);
    Ok(u8::from(!found.is_whole()))
}

fn show(call: &Call, found: &Verified) {
    write_out(match call.args.switch(&JSON) {
        true => output::json(&described(found)),
        false => storage::verified(&call.style(), found),
    });
}

/// From the oldest file of a server to the newest.
async fn on_server(client: &Client) -> Result<Verified, Failure> {
    let storage = client.history_storage().await.doing("querying history")?;
    let mut found = Verified::default();
    kept_on_server(client, &storage, &mut found).await?;
    let mut at = storage.oldest_index;
    while at <= storage.newest_index {
        match client.verify_history_file(at).await {
            Ok(file) => {
                at = file.last_index + 1;
                found.add(file);
            }
            // Where the next file begins, nobody knows then.
            Err(sdk::Error::Status { code: 500, text }) => {
                found.problems.push(text);
                break;
            }
            Err(error) => return Err(error).doing("verifying history"),
        }
    }
    Ok(found)
}

/// Each file of kept facts, from the oldest to the newest.
async fn kept_on_server(
    client: &Client,
    storage: &HistoryStorage,
    found: &mut Verified,
) -> Result<(), Failure> {
    let Some(kept) = &storage.kept else { return Ok(()) };
    found.problems.extend(kept.damaged.iter().map(|name| format!("{name} is damaged, and not read")));
    let mut at = 1;
    loop {
        match client.verify_kept_file(at).await {
            Ok(file) => {
                at = file.last_index + 1;
                found.kept.push(file);
            }
            Err(error) if error.status() == Some(404) => return Ok(()),
            Err(sdk::Error::Status { code: 500, text }) => {
                found.problems.push(text);
                return Ok(());
            }
            Err(error) => return Err(error).doing("verifying kept facts"),
        }
    }
}

fn in_folder(folder: &Path) -> anyhow::Result<Verified> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).with_context(|| format!("Error verifying history: read {shown}"))?;
    let names: Result<Vec<OsString>, _> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let names = names.with_context(|| format!("Error verifying history: read {shown}"))?;
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let is_file = |name: &String| name.ends_with(HISTORY_SUFFIX) || name.ends_with(KEPT_SUFFIX);
    let mut names: Vec<String> = names.filter(is_file).collect();
    if names.is_empty() {
        bail!(
            "Error verifying history: no file in {shown} ends with {HISTORY_SUFFIX}: expected an archive or an export"
        );
    }
    // They begin with the first index.
    names.sort_unstable();
    let mut found = Verified::default();
    for name in names {
        match verified(folder, &name) {
            Ok(file) if name.ends_with(KEPT_SUFFIX) => found.kept.push(history_file(file)),
            Ok(file) => found.add(history_file(file)),
            Err(error) => found.problems.push(format!("{error:#}")),
        }
    }
    Ok(found)
}

fn verified(folder: &Path, name: &str) -> anyhow::Result<HistoryFile> {
    let file = fs::File::open(folder.join(name)).with_context(|| format!("open {name}"))?;
    Ok(verify_file(name, Arc::new(file))?)
}

async fn export(call: Call) -> Outcome {
    let folder = Path::new(call.one_argument()?);
    let shown = folder.display();
    let client = call.client()?;
    let storage = client.history_storage().await.doing("querying history")?;
    let from = call.args.parsed(&FROM)?.unwrap_or(storage.oldest_index);
    let to = call.args.parsed(&TO)?.unwrap_or(storage.newest_index);
    if from < storage.oldest_index || to > storage.newest_index || from > to {
        return Err(anyhow!(
            "Error exporting history: -from {from} -to {to}: expected indexes from {} to {}, the first not above the last",
            storage.oldest_index,
            storage.newest_index
        )
        .into());
    }
    fs::create_dir_all(folder).with_context(|| format!("Error exporting history: create {shown}"))?;
    let mut there = fs::read_dir(folder).with_context(|| format!("Error exporting history: read {shown}"))?;
    if there.next().is_some() {
        return Err(anyhow!("Error exporting history: {shown} is not empty").into());
    }
    let mut found = Verified::default();
    if call.args.parsed(&FROM)?.is_none() {
        let mut kept = storage.kept.as_ref().map_or(0, |kept| kept.files);
        let mut at = 1;
        while kept > 0 {
            let response = client.export_kept_file(at).await.doing("exporting kept facts")?;
            let file = download(response, folder).await;
            let file = file.with_context(|| format!("Error exporting kept facts to {shown}"))?;
            (at, kept) = (file.last.0 + 1, kept - 1);
            found.kept.push(history_file(file));
        }
    }
    let mut at = from;
    while at <= to {
        let response = client.export_history_file(at).await.doing("exporting history")?;
        let file = download(response, folder).await;
        let file = file.with_context(|| format!("Error exporting history to {shown}"))?;
        at = file.last.0 + 1;
        found.add(history_file(file));
    }
    fs::File::open(folder).and_then(|folder| folder.sync_all()).context("Error exporting history: sync")?;
    show(&call, &found);
    Ok(u8::from(!found.is_whole()))
}

/// Writes a file, verifies it, and gives it its name.
async fn download(mut response: sdk::Response, folder: &Path) -> anyhow::Result<HistoryFile> {
    let draft = folder.join(UNFINISHED);
    let mut file = File::create(&draft).await?;
    while let Some(piece) = response.chunk().await.context("the file broke off")? {
        file.write_all(&piece).await?;
    }
    file.sync_all().await?;
    let found = verified(folder, UNFINISHED)?;
    tokio::fs::rename(&draft, folder.join(&found.name)).await?;
    Ok(found)
}

fn described(found: &Verified) -> Value {
    json!({"Files": found.files, "Kept": found.kept, "Problems": found.problems, "Whole": found.is_whole()})
}

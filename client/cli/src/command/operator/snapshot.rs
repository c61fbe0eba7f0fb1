use std::path::{Path, PathBuf};

use anyhow::Context;
use base::Time;
use serde_json::{Value, json};
use server::snapshot_file::{Decoder, Kept, Read};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, now};
use crate::flags::Flag;
use crate::layout;
use crate::output::{self, write_out};

/// Read and written at a time.
const PIECE: usize = 256 * 1024;

const STALE: Flag<bool> = Flag::switch("stale", "Allow any server to answer, also without a leader.");
const REDACT: Flag<bool> = Flag::switch("redact", "Leave secrets out. Not supported.");
const JSON: Flag<bool> = Flag::switch("json", "Print it as JSON.");

pub(super) static SAVE: Command = Command {
    name: "operator snapshot save",
    aliases: &[],
    arguments: "[<file>]",
    summary: "Save the state of the cluster to a file.",
    details: "The file is verified before it gets its name. Default name: sojourn-state-TIME.snap.",
    flags: &[&[&STALE, &REDACT], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(save(call))),
};

pub(super) static INSPECT: Command = Command {
    name: "operator snapshot inspect",
    aliases: &[],
    arguments: "<file>",
    summary: "Verify a snapshot file and show what is in it.",
    details: "Needs no agent.",
    flags: &[&[&JSON]],
    run: Run::Task(|call| Box::pin(inspect(call))),
};

pub(super) static RESTORE: Command = Command {
    name: "operator snapshot restore",
    aliases: &[],
    arguments: "<file>",
    summary: "Replace the state of the cluster by that of a snapshot file.",
    details: "The file is verified before it is sent, and again by the server.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(restore(call))),
};

async fn save(call: Call) -> Outcome {
    let name = match call.optional_argument()? {
        Some(name) => PathBuf::from(name),
        None => PathBuf::from(format!("sojourn-state-{}.snap", file_time(now()))),
    };
    if call.args.switch(&REDACT) {
        return Err(anyhow::anyhow!("leaving secrets out of a snapshot (-redact) is not supported").into());
    }
    let shown = name.display().to_string();
    if name.exists() {
        return Err(anyhow::anyhow!("Error writing snapshot: {shown} is there already").into());
    }
    let response = call.client()?.save_snapshot(call.args.switch(&STALE)).await.doing("getting snapshot")?;
    let draft = name.with_extension("unverified");
    let written = download(response, &draft).await;
    if written.is_err() {
        // A partial file is useless.
        let _ = tokio::fs::remove_file(&draft).await;
    }
    written.with_context(|| format!("Error writing snapshot to {shown}"))?;
    tokio::fs::rename(&draft, &name).await.with_context(|| format!("Error writing snapshot to {shown}"))?;
    write_out(format!("State file written to {shown}\n"));
    Ok(0)
}

/// Writes the response to a file, and verifies it while doing so.
async fn download(mut response: sdk::Response, path: &Path) -> anyhow::Result<()> {
    let mut file = File::create_new(path).await?;
    let mut decoder = Decoder::new(Kept::Description);
    while let Some(piece) = response.chunk().await.context("the snapshot broke off")? {
        decoder.push(&piece)?;
        file.write_all(&piece).await?;
    }
    decoder.finish()?;
    file.sync_all().await?;
    Ok(())
}

async fn inspect(call: Call) -> Outcome {
    let file = checked(call.one_argument()?).await?;
    write_out(if call.args.switch(&JSON) {
        output::json(&described(&file))
    } else {
        layout::operator::snapshot(&call.style(), &file)
    });
    Ok(0)
}

async fn restore(call: Call) -> Outcome {
    let name = call.one_argument()?;
    checked(name).await?;
    let file = File::open(name).await.with_context(|| format!("Error opening snapshot file {name}"))?;
    call.client()?.restore_snapshot(file).await.doing("restoring snapshot")?;
    write_out("Snapshot Restored\n");
    Ok(0)
}

async fn checked(name: &str) -> Result<Read, Failure> {
    let read = read(name).await;
    Ok(read.with_context(|| format!("Error reading snapshot file {name}"))?)
}

async fn read(name: &str) -> anyhow::Result<Read> {
    let mut file = File::open(name).await?;
    let (mut decoder, mut piece) = (Decoder::new(Kept::Description), vec![0; PIECE]);
    loop {
        match file.read(&mut piece).await? {
            0 => return Ok(decoder.finish()?),
            length => decoder.push(&piece[..length])?,
        }
    }
}

fn described(file: &Read) -> Value {
    let meta = &file.meta;
    let contents = meta
        .contents
        .iter()
        .map(|content| json!({"Type": content.kind, "Count": content.count, "Size": content.bytes}));
    json!({
        "Meta": {
            "ID": meta.id(),
            "Size": file.bytes,
            "Index": meta.index.0,
            "Term": meta.term.0,
            "Version": meta.release,
            "Cluster": meta.cluster.to_string(),
            "Created": model::document::Timestamp::from(meta.created).to_string(),
        },
        "Stats": contents.collect::<Vec<_>>(),
    })
}

/// `20260102-030405-1767323045`: sorts by time and differs from the next one.
fn file_time(now: Time) -> String {
    let stamp = jiff::Timestamp::from_nanosecond(i128::from(now.0)).unwrap_or_default();
    format!("{}-{}", stamp.strftime("%Y%m%d-%H%M%S"), stamp.as_second())
}

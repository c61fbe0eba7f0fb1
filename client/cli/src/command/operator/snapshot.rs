use std::path::{Path, PathBuf};

use anyhow::Context;
use base::Time;
use model::Image;
use serde_json::{Value, json};
use server::snapshot_file::{Decoder, Encoded, Kept, Meta, Read, encode};
use state::{Imager, State};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, now};
use crate::flags::Flag;
use crate::layout;
use crate::output::{self, write_out};
use crate::tables::{self, TABLE};

/// Read and written at a time.
const PIECE: usize = 256 * 1024;

const STALE: Flag<bool> = Flag::switch("stale", "Allow any server to answer, also without a leader.");
const REDACT: Flag<bool> =
    Flag::switch("redact", "Leave out the private halves of root keys, as snapshot redact does.");
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

pub(super) static STATE: Command = Command {
    name: "operator snapshot state",
    aliases: &[],
    arguments: "<file>",
    summary: "Print the state in a snapshot file as JSON, table by table.",
    details: "The file is verified. The output can be large. Secrets are sealed, and left out. Needs no agent.",
    flags: &[&[&TABLE]],
    run: Run::Task(|call| Box::pin(state(call))),
};

pub(super) static REDACT_FILE: Command = Command {
    name: "operator snapshot redact",
    aliases: &[],
    arguments: "<file>",
    summary: "Take the private halves of root keys out of a snapshot file.",
    details: "No key is in the clear in a snapshot: the private half of a root key is sealed for each server of the cluster, with a key\n\
              that never leaves that server. Without it identities cannot be signed, and secrets of tokens are never opened again;\n\
              the keys of variables are in no snapshot. A cluster that has its root keys can restore the file all the same. The file is\n\
              replaced by what is left, once that is verified. Needs no agent.",
    flags: &[],
    run: Run::Task(|call| Box::pin(redact(call))),
};

async fn save(call: Call) -> Outcome {
    let name = match call.optional_argument()? {
        Some(name) => PathBuf::from(name),
        None => PathBuf::from(format!("sojourn-state-{}.snap", file_time(now()))),
    };
    let shown = name.display().to_string();
    if name.exists() {
        return Err(anyhow::anyhow!("Error writing snapshot: {shown} is there already").into());
    }
    let response = call.client()?.save_snapshot(call.args.switch(&STALE)).await.doing("getting snapshot")?;
    let draft = name.with_extension("unverified");
    let mut written = download(response, &draft).await;
    if written.is_ok() && call.args.switch(&REDACT) {
        written = redacted(&draft).await.map(drop);
    }
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

async fn state(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let (_, state) =
        stored(Path::new(name)).await.with_context(|| format!("Error reading snapshot file {name}"))?;
    tables::print(&state, call.args.values(&TABLE))?;
    Ok(0)
}

async fn redact(call: Call) -> Outcome {
    let name = call.one_argument()?;
    let sealed = redacted(Path::new(name)).await;
    let sealed = sealed.with_context(|| format!("Error redacting snapshot file {name}"))?;
    write_out(match sealed {
        0 => format!("Snapshot {name} holds no key material: nothing was changed\n"),
        1 => format!("Snapshot redacted: 1 sealed copy of a root key was taken out of {name}\n"),
        many => format!("Snapshot redacted: {many} sealed copies of root keys were taken out of {name}\n"),
    });
    Ok(0)
}

/// Replaces a file by one without private halves of root keys, and returns how many it had.
async fn redacted(path: &Path) -> anyhow::Result<usize> {
    let (meta, state) = stored(path).await?;
    // As long as a server that has just come has not said that it has it.
    if let Some((server, _)) = state.erasure.holders().iter().find(|(_, holder)| holder.sealed.is_some()) {
        anyhow::bail!(
            "it was made while server {server} was being given the keys of variables, which are in it, sealed for that \
             server: save another one"
        );
    }
    let (left, sealed) = state.without_private_keys();
    if sealed == 0 {
        return Ok(0);
    }
    let image = Imager::default().image(&left);
    let draft = path.with_extension("redacting");
    let written = write(&draft, &encode(&meta, &image)?).await;
    let verified = match written {
        Ok(()) => stored(&draft).await.and_then(|(_, found)| {
            anyhow::ensure!(found.without_private_keys().1 == 0, "what was written is not what it has to be");
            Ok(())
        }),
        Err(error) => Err(error),
    };
    if verified.is_err() {
        // A partial file is useless.
        let _ = tokio::fs::remove_file(&draft).await;
    }
    verified?;
    tokio::fs::rename(&draft, path).await?;
    Ok(sealed)
}

async fn write(path: &Path, encoded: &Encoded) -> anyhow::Result<()> {
    let mut file = File::create_new(path).await?;
    for part in &encoded.parts {
        file.write_all(part).await?;
    }
    file.sync_all().await?;
    Ok(())
}

/// What is in a file.
async fn stored(path: &Path) -> anyhow::Result<(Meta, State)> {
    let Read { meta, index, chunks, .. } = read(path, Kept::Everything).await?;
    Ok((meta, state::restore(&Image { index, chunks })?))
}

async fn checked(name: &str) -> Result<Read, Failure> {
    let read = read(Path::new(name), Kept::Description).await;
    Ok(read.with_context(|| format!("Error reading snapshot file {name}"))?)
}

async fn read(path: &Path, kept: Kept) -> anyhow::Result<Read> {
    let mut file = File::open(path).await?;
    let (mut decoder, mut piece) = (Decoder::new(kept), vec![0; PIECE]);
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

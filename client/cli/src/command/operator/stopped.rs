//! What a server that does not run left in its data directory. It is read where it lies, and nothing of it changes.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use base::Index;
use history::Line;
use journal::EncodedBatch;
use journal::store::{Entry, Payload, Reader, StoreError};
use model::document::Timestamp;
use serde_json::{Value, json};
use state::State;

use crate::call::{Call, Command, Outcome, Run};
use crate::flags::Flag;
use crate::output::{self, write_err, write_out};
use crate::tables::{self, TABLE};

/// Log read at once, in bytes.
const READ_BYTES: usize = 1 << 20;

const PRETTY: Flag<bool> = Flag::switch("pretty", "Indent it: an entry then takes several lines.");
const LAST_INDEX: Flag<i64> = Flag::number(
    "last-index",
    "N",
    "The last index to fold. Zero or less counts back from the newest. Default: everything in the log.",
);

pub(super) static LOGS: Command = Command {
    name: "operator raft logs",
    aliases: &[],
    arguments: "<data_dir>",
    summary: "Print the log of a stopped server, a line of JSON for each entry.",
    details: "An entry is a batch of facts with their index, time and actors, as log prints them; or it is blank, as each new leader\n\
              begins; or it says who the members are. <data_dir> is data_dir of the agent's configuration. Nothing in it is\n\
              changed. What the log no longer holds is in the archive, if there is one, and in no output of this command.",
    flags: &[&[&PRETTY]],
    run: Run::Process(logs),
};

pub(super) static STATE: Command = Command {
    name: "operator raft state",
    aliases: &[],
    arguments: "<data_dir>",
    summary: "Print the state of a stopped server as JSON, table by table.",
    details: "It is folded of the newest image beside the log and of what follows it. What was appended and is not known to be\n\
              committed is folded too, and said on standard error: -last-index leaves it out. The output can be large. Secrets\n\
              are sealed, and left out. <data_dir> is data_dir of the agent's configuration. Nothing in it is changed.",
    flags: &[&[&LAST_INDEX, &TABLE]],
    run: Run::Process(state),
};

fn logs(call: Call) -> Outcome {
    let log = open(call.one_argument()?)?;
    let pretty = call.args.switch(&PRETTY);
    each_entry(&log, log.first(), |entry| {
        let value = described(&entry)?;
        write_out(if pretty { output::json(&value) } else { format!("{value}\n") });
        Ok(())
    })?;
    Ok(0)
}

fn state(call: Call) -> Outcome {
    let log = open(call.one_argument()?)?;
    let newest = log.last().map(|last| log.batch_at(last.index)).unwrap_or_default();
    let upto = match call.args.parsed(&LAST_INDEX)? {
        Some(index) if index > 0 => Index(index.unsigned_abs()),
        Some(back) => Index(newest.0.saturating_sub(back.unsigned_abs())),
        None => newest,
    };
    let state = folded(&log, upto)?;
    if state.index == Index::ZERO {
        return Err(anyhow!("Error reading the log: there is no state in it yet").into());
    }
    let committed = log.committed().map(|last| log.batch_at(last.index)).unwrap_or_default();
    if state.index > committed {
        write_err(format!("Not known to be committed: what comes after index {committed}"));
    }
    tables::print(&state, call.args.values(&TABLE))?;
    Ok(0)
}

/// The log in a server's data directory.
fn open(data_dir: &str) -> anyhow::Result<Reader> {
    let path = server::log_dir(Path::new(data_dir));
    let shown = path.display();
    if !path.is_dir() {
        bail!("Error reading the log: there is no directory {shown}: expected a server's data_dir");
    }
    match Reader::open(&path) {
        Ok(log) => Ok(log),
        Err(error @ StoreError::InUse { .. }) => {
            Err(error).context("Error reading the log: the server has to be stopped first")
        }
        Err(error) => Err(error).with_context(|| format!("Error reading the log in {shown}")),
    }
}

/// Reads from entry `first` to the end.
fn each_entry(
    log: &Reader,
    first: u64,
    mut take: impl FnMut(Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(last) = log.last() else { return Ok(()) };
    let mut next = first;
    while next <= last.index {
        let entries = log.entries(next..last.index + 1, READ_BYTES);
        let entries = entries.with_context(|| format!("Error reading the log at entry {next}"))?;
        for entry in entries {
            next = entry.index + 1;
            take(entry)?;
        }
    }
    Ok(())
}

fn described(entry: &Entry) -> anyhow::Result<Value> {
    let (number, term) = (entry.index, entry.term);
    Ok(match &entry.payload {
        Payload::Blank => json!({"Entry": number, "Term": term, "Kind": "blank"}),
        Payload::Membership(bytes) => {
            let members = server::logged_members(bytes);
            let members = members.with_context(|| format!("Error reading the members in entry {number}"))?;
            let member = |member: &server::LoggedMember| json!({"ID": member.node.to_string(), "Address": member.address, "Voter": member.voter});
            let members: Vec<Value> = members.iter().map(member).collect();
            json!({"Entry": number, "Term": term, "Kind": "members", "Members": members})
        }
        Payload::Batch(batch) => {
            let (index, time) = (batch.index().0, Timestamp::from(batch.time()).to_string());
            let events = lines(batch).with_context(|| format!("Error reading batch {index}"))?;
            json!({"Entry": number, "Term": term, "Kind": "batch", "Index": index, "Time": time, "Events": events})
        }
    })
}

fn lines(batch: &EncodedBatch) -> anyhow::Result<Vec<Value>> {
    let lines = Line::all(batch)?;
    Ok(lines.iter().map(|line| json!(server::history_line(line))).collect())
}

/// The state after the batch `upto`, or after the last one before it that the log has.
fn folded(log: &Reader, upto: Index) -> anyhow::Result<State> {
    let image = log.read_image().context("Error reading the image beside the log")?;
    let (mut state, next) = match image {
        None => (State::default(), log.first()),
        Some((meta, _)) if meta.index > upto => {
            bail!(
                "Error reading the log: index {upto} lies before what is kept, which begins with {}",
                meta.index
            )
        }
        Some((meta, image)) => {
            let state = state::restore(&image).context("Error reading the image beside the log")?;
            (state, meta.last.index + 1)
        }
    };
    each_entry(log, next, |entry| {
        if let Payload::Batch(batch) = entry.payload
            && batch.index() <= upto
        {
            let batch = batch.decode().with_context(|| format!("Error reading batch {}", batch.index()))?;
            state.apply(&batch).with_context(|| format!("Error folding batch {}", batch.index))?;
        }
        Ok(())
    })?;
    Ok(state)
}

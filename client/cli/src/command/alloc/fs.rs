use sdk::{Client, FileRequest, Query};

use super::logs::{GROUP, JOB, newest_running};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::tail::{self, BYTES, LINES, StartAt, TAIL};
use crate::{layout, resolve};

const HUMAN: Flag<bool> = Flag::switch("H", "Print human-readable sizes.");
const STAT: Flag<bool> = Flag::switch("stat", "Print only the file's metadata.");
const FOLLOW: Flag<bool> = Flag::switch("f", "Follow the file until interrupted.");

pub(super) static COMMAND: Command = Command {
    name: "alloc fs",
    aliases: &["fs"],
    arguments: "<allocation> [<path>]",
    summary: "Show the files of an allocation.",
    details: "A directory is listed, a file is printed. The path is relative to the allocation's directory.",
    flags: &[&[&HUMAN, &STAT, &FOLLOW, &TAIL, &LINES, &BYTES, &JOB, &GROUP, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (id, path) = match call.args.words.as_slice() {
        [id] => (id, "/"),
        [id, path] => (id, path.as_str()),
        _ => return Err(call.usage("This command takes one or two arguments: <allocation> [<path>]")),
    };
    if call.args.value(&GROUP).is_some() && !call.args.switch(&JOB) {
        return Err(call.usage("-group needs -job"));
    }
    let (client, style) = (call.client()?, call.style());
    let named = match call.args.switch(&JOB) {
        true => &newest_running(&call, &client, &style, id).await?,
        false => id,
    };
    let stub = resolve::allocation(&client, &style, named).await?;
    let query = Query::new().namespace(&stub.namespace);
    let alloc = client.allocation(&stub.id, query).await.doing("querying allocation")?.value;
    // Of Nomad's command line, the flag switches units off.
    let units = call.args.switch(&HUMAN) != style.is_stock();
    let file = client.stat_file(&alloc.id, path).await.doing("querying file")?;
    if call.args.switch(&STAT) {
        write_out(layout::files::stat(&style, &file, units));
        return Ok(0);
    }
    if file.is_dir {
        let files = client.list_files(&alloc.id, path).await.doing("listing alloc dir")?;
        write_out(layout::files::list(&style, &files, units));
        return Ok(0);
    }
    tokio::select! {
        printed = print(&call, &client, &alloc.id, path) => printed,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn print(call: &Call, client: &Client, id: &str, path: &str) -> Outcome {
    let follow = call.args.switch(&FOLLOW);
    let from = tail::start(call, async |window| last(client, id, path, window).await).await?;
    if !follow && from == StartAt::Start {
        let mut body = client.read_file(id, path).await.doing("reading file")?;
        while let Some(bytes) = body.next().await.doing("reading file")? {
            write_out(&bytes);
        }
        return Ok(0);
    }
    let (from_end, offset) = match from {
        StartAt::Start => (false, 0),
        StartAt::End(offset) => (true, offset),
    };
    let request = FileRequest { path: path.to_string(), follow, offset, from_end };
    let mut frames = client.stream_file(id, &request).await.doing("tailing file")?;
    while let Some(frame) = frames.next().await.doing("tailing file")? {
        write_out(&frame.data.0);
    }
    Ok(0)
}

/// The last bytes of a file, or all if it is shorter.
async fn last(client: &Client, id: &str, path: &str, window: u64) -> Result<Vec<u8>, Failure> {
    let request = FileRequest { path: path.to_string(), follow: false, offset: window, from_end: true };
    let mut frames = client.stream_file(id, &request).await.doing("reading file")?;
    let mut end = Vec::new();
    while let Some(frame) = frames.next().await.doing("reading file")? {
        end.extend(frame.data.0);
    }
    Ok(end)
}

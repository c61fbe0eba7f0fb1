use sdk::{Client, FileRequest, Query};

use super::logs::newest_running;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::{switch, value};
use crate::output::write_out;
use crate::tail::{self, From};
use crate::{layout, resolve};

pub static COMMAND: Command = Command {
    name: "alloc fs",
    aliases: &["fs"],
    arguments: "<allocation> [<path>]",
    summary: "Show the files of an allocation.",
    details: "A directory is listed, a file is printed. The path begins in the allocation's directory.",
    flags: &[
        &[
            switch("H", "Print sizes in units."),
            switch("stat", "Print only what the file is."),
            switch("f", "Stay and print what is added, until interrupted."),
            switch("tail", "Print only the end: 10 lines, or what -n or -c say."),
            value("n", "N", "Lines of the end to print."),
            value("c", "N", "Bytes of the end to print."),
            switch("job", "The argument is a job: its newest running allocation is taken."),
            value("group", "NAME", "With -job: only allocations of this task group."),
        ],
        VERBOSE_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (id, path) = match call.args.words.as_slice() {
        [id] => (id, "/"),
        [id, path] => (id, path.as_str()),
        _ => return Err(call.usage("This command takes one or two arguments: <allocation> [<path>]")),
    };
    if call.args.value("group").is_some() && !call.args.switch("job") {
        return Err(call.usage("-group needs -job"));
    }
    let (client, look) = (call.client()?, call.look());
    let named = match call.args.switch("job") {
        true => &newest_running(&call, &client, &look, id).await?,
        false => id,
    };
    let stub = resolve::allocation(&client, &look, named).await?;
    let query = Query::new().namespace(&stub.namespace);
    let alloc = client.allocation(&stub.id, query).await.doing("querying allocation")?.value;
    let units = call.args.switch("H");
    let file = client.stat_file(&alloc.id, path).await.doing("querying file")?;
    if call.args.switch("stat") {
        write_out(layout::files::stat(&look, &file, units));
        return Ok(0);
    }
    if file.is_dir {
        let files = client.list_files(&alloc.id, path).await.doing("listing alloc dir")?;
        write_out(layout::files::list(&look, &files, units));
        return Ok(0);
    }
    tokio::select! {
        printed = print(&call, &client, &alloc.id, path) => printed,
        _ = tokio::signal::ctrl_c() => Ok(0),
    }
}

async fn print(call: &Call, client: &Client, id: &str, path: &str) -> Outcome {
    let follow = call.args.switch("f");
    let from = tail::start(call, async |window| last(client, id, path, window).await).await?;
    if !follow && from == From::Start {
        let mut body = client.read_file(id, path).await.doing("reading file")?;
        while let Some(bytes) = body.next().await.doing("reading file")? {
            write_out(&bytes);
        }
        return Ok(0);
    }
    let (from_end, offset) = match from {
        From::Start => (false, 0),
        From::End(offset) => (true, offset),
    };
    let request = FileRequest { path: path.to_string(), follow, offset, from_end };
    let mut frames = client.stream_file(id, &request).await.doing("tailing file")?;
    while let Some(frame) = frames.next().await.doing("tailing file")? {
        write_out(&frame.data.0);
    }
    Ok(0)
}

/// This many bytes of the end of a file, or all if it is shorter.
async fn last(client: &Client, id: &str, path: &str, window: u64) -> Result<Vec<u8>, Failure> {
    let request = FileRequest { path: path.to_string(), follow: false, offset: window, from_end: true };
    let mut frames = client.stream_file(id, &request).await.doing("reading file")?;
    let mut end = Vec::new();
    while let Some(frame) = frames.next().await.doing("reading file")? {
        end.extend(frame.data.0);
    }
    Ok(end)
}

use std::fs::File;
use std::io::BufReader;

use ::audit::Link;
use anyhow::Context;

use crate::call::{Call, Command, Outcome, Run};
use crate::layout::plural;
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "audit verify",
    aliases: &[],
    arguments: "<file>...",
    summary: "Check that nobody has changed the audit log.",
    details: "Files are read in the order in which they are given, the oldest first, as one log. Each line is linked to\n\
              the one before it; the first line that does not fit is named, and the exit code is 1. Who can write the\n\
              files can also make a new chain: keep the last hash elsewhere, and compare it.",
    flags: &[],
    run: Run::Process(run),
};

fn run(call: Call) -> Outcome {
    let files = &call.args.words;
    if files.is_empty() {
        return Err(call.usage("This command takes one argument or more: <file>..."));
    }
    let mut last: Option<Link> = None;
    let mut entries = 0;
    for name in files {
        let file = File::open(name).with_context(|| format!("{name} cannot be read"))?;
        let found = ::audit::verify(BufReader::new(file), last.as_ref());
        let found = found.with_context(|| format!("{name} is not as it was written"))?;
        if last.is_none() && found.before != Link::first() {
            write_out(format!("{name} follows {}: what came before it was not given\n", found.before.text()));
        }
        entries += found.entries;
        last = Some(found.last);
    }
    let last = last.unwrap_or_else(Link::first);
    let lines = plural(entries, "line");
    write_out(format!("{lines} in an unbroken chain; the last hash is {}\n", last.text()));
    Ok(0)
}

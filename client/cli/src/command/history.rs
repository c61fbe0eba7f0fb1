use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::output::write_out;
use crate::{layout, resolve};

pub(super) static COMMAND: Command = Command {
    name: "history alloc",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Print every transition of an allocation, with actor and cause.",
    details: "Garbage-collected allocations are found by their full id.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// Length of a full id: it needs no lookup, so garbage-collected allocations are found too.
const WHOLE_ID: usize = 36;

async fn run(call: Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let given = call.one_argument()?;
    let id = if given.len() == WHOLE_ID {
        given.to_string()
    } else {
        resolve::allocation(&client, &style, given).await?.id
    };
    let history = client.allocation_history(&id).await.doing("querying allocation history")?.value;
    if let Some(format) = format {
        return format.print(&history);
    }
    write_out(layout::history::table(&style, &history));
    Ok(0)
}

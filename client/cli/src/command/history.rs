use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::output::write_out;
use crate::{layout, resolve};

pub static COMMAND: Command = Command {
    name: "history alloc",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Print every transition an allocation ever made, with who caused it and why.",
    details: "Allocations that were collected are found by their whole id.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// Characters of a whole id: nothing is left to look up, so what was collected is found too.
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

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::layout;
use crate::output::write_out;

pub(super) static LIST: Command = Command {
    name: "cursor list",
    aliases: &[],
    arguments: "",
    summary: "List the cursors of the event stream.",
    details: "Shows how far the readers of each have come, and how far behind they are.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static STATUS: Command = Command {
    name: "cursor status",
    aliases: &[],
    arguments: "<cursor>",
    summary: "Show a cursor of the event stream.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let cursors = call.client()?.event_cursors(Query::new()).await.doing("retrieving cursors")?.value;
    if let Some(format) = format {
        return format.print(&cursors);
    }
    write_out(match cursors.as_slice() {
        [] => "No cursors found\n".to_string(),
        cursors => layout::cursor::table(&call.style(), cursors),
    });
    Ok(0)
}

async fn status(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let cursor = call.client()?.event_cursor(name).await.doing("retrieving cursor")?;
    if let Some(format) = format {
        return format.print(&cursor);
    }
    write_out(layout::cursor::block(&call.style(), &cursor));
    Ok(0)
}

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::layout;
use crate::output::write_out;

pub(super) static LIST: Command = Command {
    name: "sink list",
    aliases: &[],
    arguments: "",
    summary: "List the sinks of the event stream.",
    details: "Shows whether each sends, and how far behind it is.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static STATUS: Command = Command {
    name: "sink status",
    aliases: &[],
    arguments: "<sink>",
    summary: "Show a sink of the event stream.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let sinks = call.client()?.event_sinks(Query::new()).await.doing("retrieving sinks")?.value;
    if let Some(format) = format {
        return format.print(&sinks);
    }
    write_out(match sinks.as_slice() {
        [] => "No sinks found\n".to_string(),
        sinks => layout::sink::table(sinks),
    });
    Ok(0)
}

async fn status(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let sink = call.client()?.event_sink(name).await.doing("retrieving sink")?;
    if let Some(format) = format {
        return format.print(&sink);
    }
    write_out(layout::sink::block(&call.style(), &sink));
    Ok(0)
}

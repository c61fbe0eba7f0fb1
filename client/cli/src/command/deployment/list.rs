use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout;
use crate::output::write_out;
use crate::watch::{self, WATCH, Waits};

const FILTER: Flag<String> = Flag::value("filter", "EXPR", "Show only what matches this expression.");

pub(super) static COMMAND: Command = Command {
    name: "deployment list",
    aliases: &[],
    arguments: "",
    summary: "List deployments.",
    details: "",
    flags: &[&[&FILTER, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, list))),
};

async fn list(call: &Call) -> Outcome {
    call.no_arguments()?;
    all(call).await
}

pub(super) async fn all(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let query = Query::new().with("filter", call.args.value(&FILTER).unwrap_or_default());
    let deployments = client.deployments(query).await.doing("retrieving deployments")?.value;
    if let Some(format) = format {
        return format.print(&deployments);
    }
    write_out(match deployments.as_slice() {
        [] => "No deployments found\n".to_string(),
        deployments => layout::deployment::table(&style, deployments),
    });
    Ok(0)
}

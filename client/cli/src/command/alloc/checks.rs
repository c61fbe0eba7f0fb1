use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::output::write_out;
use crate::{layout, resolve};

pub(super) static COMMAND: Command = Command {
    name: "alloc checks",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Show the checks of an allocation's services.",
    details: "Only checks of services registered in the cluster itself.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let alloc = resolve::allocation(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&alloc.namespace);
    let checks = client.allocation_checks(&alloc.id, query).await;
    let checks = checks.doing("querying allocation checks")?;
    if let Some(format) = format {
        return format.print(&checks);
    }
    write_out(layout::checks::all(&style, &checks));
    Ok(0)
}

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::watch::{self, WATCH, Waits};
use crate::{layout, resolve};

const ALL: Flag<bool> = Flag::switch("all", "List allocations of earlier jobs with this id too.");

pub(super) static COMMAND: Command = Command {
    name: "job allocs",
    aliases: &[],
    arguments: "<job>",
    summary: "List the allocations of a job.",
    details: "",
    flags: &[&[&ALL, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace).flag("all", call.args.switch(&ALL));
    let allocs = client.job_allocations(&id, query).await.doing("querying allocations")?.value;
    if let Some(format) = format {
        return format.print(&allocs);
    }
    write_out(match allocs.as_slice() {
        [] => "No allocations placed\n".to_string(),
        allocs => layout::alloc::table(&style, allocs),
    });
    Ok(0)
}

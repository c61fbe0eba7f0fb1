use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::watch::{self, WATCH, Waits};
use crate::{layout, resolve};

const LATEST: Flag<bool> = Flag::switch("latest", "Show only the latest one.");
const ALL: Flag<bool> = Flag::switch("all", "List deployments of earlier jobs with this id too.");

pub(super) static COMMAND: Command = Command {
    name: "job deployments",
    aliases: &[],
    arguments: "<job>",
    summary: "List the deployments of a job.",
    details: "",
    flags: &[&[&LATEST, &ALL, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

const NONE: &str = "No deployments found\n";

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace);
    if call.args.switch(&LATEST) {
        let latest = client.job_deployment(&id, query).await.doing("retrieving deployments")?.value;
        return match (format, latest) {
            (Some(format), latest) => format.print(&latest),
            (None, latest) => {
                let view = latest.map(|latest| layout::deployment::view(&style, &latest, &[]));
                write_out(view.unwrap_or_else(|| NONE.to_string()));
                Ok(0)
            }
        };
    }
    let query = query.flag("all", call.args.switch(&ALL));
    let deployments = client.job_deployments(&id, query).await.doing("retrieving deployments")?.value;
    if let Some(format) = format {
        return format.print(&deployments);
    }
    write_out(match deployments.as_slice() {
        [] => NONE.to_string(),
        deployments => layout::deployment::table(&style, deployments),
    });
    Ok(0)
}

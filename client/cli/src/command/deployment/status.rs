use base::{Duration, Index};
use model::document::Deployment;
use sdk::{Client, Query};

use super::list::all;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, UI, VERBOSE, now};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_out};
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout, regions, resolve};

const MONITOR: Flag<bool> = Flag::switch("monitor", "Monitor the deployment until it ends.");
const WAIT: Flag<Duration> = Flag::parsed(
    "wait",
    "DURATION",
    "a duration, like 2s",
    "With -monitor: how long one blocking query waits. Default: 2s.",
);

pub(crate) static COMMAND: Command = Command {
    name: "deployment status",
    aliases: &[],
    arguments: "[<deployment id>]",
    summary: "Show the status of a deployment.",
    details: "Without an id all deployments are listed.",
    flags: &[&[&MONITOR, &WAIT, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, status))),
};

/// The default wait of a blocking query.
const WAIT_DEFAULT: Duration = Duration::from_secs(2);

async fn status(call: &Call) -> Outcome {
    let Some(given) = call.optional_argument()? else { return all(call).await };
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let wait: Option<Duration> = call.args.parsed(&WAIT)?;
    if call.args.switch(&MONITOR) && format.is_some() {
        return Err(call.usage("The monitor flag cannot be used with the '-json' or '-t' flags"));
    }
    let deployment = resolve::deployment(&client, &style, given).await?;
    if let Some(format) = format {
        return format.print(&deployment);
    }
    if call.args.switch(&MONITOR) {
        return monitor(&client, &style, &deployment.id, wait.unwrap_or(WAIT_DEFAULT)).await;
    }
    write_out(view(&client, &style, &deployment).await);
    let place = format!("jobs/{}@{}/deployments", hint::segment(&deployment.job_id), deployment.namespace);
    hint::show(call, &style, "this deployment", &place).await;
    Ok(0)
}

/// Prints the deployment whenever it changes, until it ends.
async fn monitor(client: &Client, style: &OutputStyle, id: &str, wait: Duration) -> Outcome {
    write_out(format!("{}: Monitoring deployment \"{}\"\n", style.time(now().0), style.id(id)));
    let (mut index, mut shown) = (Index::ZERO, String::new());
    loop {
        let query = Query::new().newer_than(index, wait).flag("stale", true);
        let answer = client.deployment(id, query).await.doing("fetching deployment")?;
        let view = whole(client, style, &answer.value).await;
        if view != shown {
            write_out(format!("\n{}\n{view}", style.time(now().0)));
            shown = view;
        }
        match answer.value.status.as_str() {
            "successful" => return Ok(0),
            "failed" | "cancelled" | "blocked" => return Ok(1),
            _ => index = answer.index.max(Index(1)),
        }
    }
}

/// With those of the other regions, if there are any.
async fn view(client: &Client, style: &OutputStyle, deployment: &Deployment) -> String {
    let regions = if deployment.is_multiregion {
        let query = Query::new().namespace(&deployment.namespace);
        match client.job(&deployment.job_id, query).await {
            Ok(job) => regions::statuses(client, &job.value).await,
            Err(_) => Vec::new(),
        }
    } else {
        Vec::new()
    };
    layout::deployment::view(style, deployment, &regions)
}

async fn whole(client: &Client, style: &OutputStyle, deployment: &Deployment) -> String {
    let mut text = view(client, style, deployment).await;
    text.push_str(&layout::deployment::promotion(style, deployment));
    if style.verbose {
        let allocs = client.deployment_allocations(&deployment.id, Query::new()).await;
        let allocs = allocs.map(|answer| answer.value).unwrap_or_default();
        text.push_str(&layout::alloc::section(style, &allocs));
    }
    text
}

use std::collections::BTreeMap;

use api::JobSummary;
use model::document::{AllocationListStub, Deployment, Evaluation, Job};
use sdk::{Client, Query};
use serde::Serialize;

use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, OUTPUT, Outcome, Run, UI, VERBOSE,
};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_out};
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout, periodic_launch, regions, resolve};

const SHORT: Flag<bool> = Flag::switch("short", "Print only the job's basic data.");
const EVALS: Flag<bool> = Flag::switch("evals", "Print the job's evaluations too.");
const ALL_ALLOCS: Flag<bool> =
    Flag::switch("all-allocs", "Print allocations of earlier jobs with this id too.");

pub(crate) static COMMAND: Command = Command {
    name: "job status",
    aliases: &[],
    arguments: "[<job>]",
    summary: "List jobs, or show the status of one.",
    details: "",
    flags: &[&[&SHORT, &EVALS, &ALL_ALLOCS, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

/// The status of one job, as `-json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    summary: JobSummary,
    allocations: Vec<AllocationListStub>,
    latest_deployment: Option<Deployment>,
    evaluations: Vec<Evaluation>,
}

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let Some(given) = call.optional_argument()? else {
        return match format {
            Some(format) => format.print(&read_all(call, &client).await?),
            None => list(call, &client, &style).await,
        };
    };
    let (namespace, id) = resolve::job(&client, &style, given).await?;
    if let Some(format) = format {
        return format.print(&[read(call, &client, &namespace, &id).await?]);
    }
    show(call, &client, &style, &namespace, &id).await?;
    Ok(0)
}

async fn read_all(call: &Call, client: &Client) -> Result<Vec<Status>, Failure> {
    let mut all = Vec::new();
    for job in client.jobs(Query::new()).await.doing("querying jobs")?.value {
        all.push(read(call, client, &job.namespace, &job.id).await?);
    }
    Ok(all)
}

/// Lists the jobs.
///
/// # Errors
/// When the request fails.
pub(crate) async fn list(call: &Call, client: &Client, style: &OutputStyle) -> Outcome {
    let jobs = client.jobs(Query::new()).await.doing("querying jobs")?.value;
    if jobs.is_empty() {
        write_out("No running jobs\n");
    } else {
        write_out(layout::job::table(style, &jobs, client.namespace() == "*"));
    }
    hint::show(call, style, "and manage Nomad jobs", "jobs").await;
    Ok(0)
}

async fn read(call: &Call, client: &Client, namespace: &str, id: &str) -> Result<Status, Failure> {
    let query = || Query::new().namespace(namespace);
    let all = query().flag("all", call.args.switch(&ALL_ALLOCS));
    Ok(Status {
        summary: client.job_summary(id, query()).await.doing("querying job summary")?.value,
        allocations: client.job_allocations(id, all).await.doing("querying job allocations")?.value,
        latest_deployment: client
            .job_deployment(id, query())
            .await
            .doing("querying latest job deployment")?
            .value,
        evaluations: client.job_evaluations(id, query()).await.doing("querying job evaluations")?.value,
    })
}

async fn show(
    call: &Call,
    client: &Client,
    style: &OutputStyle,
    namespace: &str,
    id: &str,
) -> Result<(), Failure> {
    let job = client.job(id, Query::new().namespace(namespace)).await.doing("querying job")?.value;
    let launch =
        if layout::job::is_periodic(&job) { periodic_launch::next(client, &job).await } else { None };
    let mut text = layout::job::block(style, &job, launch);
    if call.args.switch(&SHORT) {
        write_out(text);
        return Ok(());
    }
    let status = read(call, client, namespace, id).await?;
    if layout::job::is_parameterized(&job) {
        text.push_str(&layout::job::parameters(style, &job));
    }
    text.push_str(&layout::job::summary(style, &job, &status.summary));
    if layout::job::is_periodic(&job) || layout::job::is_parameterized(&job) {
        let children = Query::new().namespace(namespace).prefix(&format!("{id}/"));
        let children = client.jobs(children).await.doing("querying child jobs")?.value;
        text.push_str(&layout::job::children(style, &job, &children));
    } else {
        let follow_ups = follow_ups(client, namespace, &status.allocations).await?;
        let regions = regions::statuses(client, &job).await;
        text.push_str(&details(style, call, &job, &status, &follow_ups, &regions));
    }
    write_out(text);
    hint::job(call, style, &job).await;
    Ok(())
}

fn details(
    style: &OutputStyle,
    call: &Call,
    job: &Job,
    status: &Status,
    follow_ups: &BTreeMap<String, Evaluation>,
    regions: &[layout::deployment::RegionStatus],
) -> String {
    let mut text = String::new();
    if style.verbose || call.args.switch(&EVALS) {
        text.push_str(&layout::job::evaluations(style, &status.evaluations));
    }
    text.push_str(&layout::job::placement_failure(style, &status.evaluations));
    text.push_str(&layout::job::rescheduling(style, &status.allocations, follow_ups));
    if let Some(deployment) = &status.latest_deployment {
        text.push_str(&layout::deployment::latest(style, deployment, regions));
    }
    text.push_str(&layout::job::actions(style, job));
    text.push_str(&layout::alloc::section(style, &status.allocations));
    text
}

/// The evaluations that will replace failed allocations. One that was garbage-collected since is left out.
async fn follow_ups(
    client: &Client,
    namespace: &str,
    allocs: &[AllocationListStub],
) -> Result<BTreeMap<String, Evaluation>, Failure> {
    let mut evals = BTreeMap::new();
    for alloc in allocs.iter().filter(|alloc| layout::job::awaits_follow_up(alloc)) {
        let id = &alloc.followup_eval_id;
        if evals.contains_key(id) {
            continue;
        }
        match client.evaluation(id, Query::new().namespace(namespace)).await {
            Err(error) if error.status() == Some(404) => {}
            eval => {
                evals.insert(id.clone(), eval.doing("querying follow-up evaluation")?.value);
            }
        }
    }
    Ok(evals)
}

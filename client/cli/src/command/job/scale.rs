use api::{JobScaleStatusResponse, ScalingRequest};
use model::document::Job;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Failure, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::{OutputStyle, Paint, write_out};
use crate::{eval_monitor, layout, periodic_launch, resolve};

const CHECK_INDEX: Flag<u64> =
    Flag::number("check-index", "N", "Scale only if the job's JobModifyIndex is N.");

pub(super) static SCALE: Command = Command {
    name: "job scale",
    aliases: &[],
    arguments: "<job> [<group>] <count>",
    summary: "Set how many allocations a group has.",
    details: "The group may be left out when the job has only one.",
    flags: &[&[&CHECK_INDEX, &DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(scale(call))),
};

pub(super) static EVENTS: Command = Command {
    name: "job scaling-events",
    aliases: &[],
    arguments: "<job>",
    summary: "List the latest scaling events.",
    details: "",
    flags: &[&[&VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(events(call))),
};

/// The message of the scaling event.
const MESSAGE: &str = "submitted from the command line";

async fn scale(call: Call) -> Outcome {
    let (job, group, count) = match call.args.words.as_slice() {
        [job, count] => (job, None, count),
        [job, group, count] => (job, Some(group.as_str()), count),
        _ => return Err(call.usage("This command requires at least two arguments: <job> [<group>] <count>")),
    };
    let wrong = |_| anyhow::anyhow!("Failed to convert count string to int: \"{count}\" is no number");
    let count: i64 = count.parse().map_err(wrong)?;
    let check_index: Option<u64> = call.args.parsed(&CHECK_INDEX)?;
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, job).await?;
    let query = || Query::new().namespace(&namespace);
    let job = client.job(&id, query()).await.doing("querying job")?.value;
    let group = chosen(&job, group)?;
    let request = ScalingRequest {
        count: Some(count),
        target: [("Group".to_string(), group)].into_iter().collect(),
        message: MESSAGE.to_string(),
        job_modify_index: check_index.unwrap_or(0),
        ..ScalingRequest::default()
    };
    let scaled = client.scale(&id, &request, query()).await.doing("submitting scaling request")?;
    if !scaled.warnings.is_empty() {
        let warnings = format!("Job Warnings:\n{}", scaled.warnings.trim_end());
        write_out(style.paint(Paint::Warning, &warnings) + "\n\n");
    }
    if call.args.switch(&DETACH) || scaled.eval_id.is_empty() {
        write_out(detached(&client, &style, &job, &scaled.eval_id).await);
        return Ok(0);
    }
    eval_monitor::evaluation(&client, &style, &scaled.eval_id).await
}

/// The given group, or the only one.
fn chosen(job: &Job, given: Option<&str>) -> Result<String, Failure> {
    let names: Vec<&str> = job.task_groups.iter().filter_map(|group| group.name.as_deref()).collect();
    match (given, names.as_slice()) {
        (Some(given), names) if names.contains(&given) => Ok(given.to_string()),
        (Some(given), names) => {
            Err(anyhow::anyhow!("Group \"{given}\" not found: the job has {}", names.join(", ")).into())
        }
        (None, [only]) => Ok((*only).to_string()),
        (None, names) => Err(anyhow::anyhow!("Group name required: the job has {}", names.join(", ")).into()),
    }
}

async fn detached(client: &Client, style: &OutputStyle, job: &Job, eval: &str) -> String {
    let mut text = style.paint(Paint::Green, "Job scale successful") + "\n";
    if layout::job::is_periodic(job) {
        text.push_str(&periodic_launch::describe(client, style, job).await);
    } else if !eval.is_empty() {
        text.push_str(&format!("Evaluation ID: {eval}\n"));
    }
    text
}

async fn events(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace);
    let status: JobScaleStatusResponse =
        client.scale_status(&id, query).await.doing("listing scaling events")?;
    if status.task_groups.values().all(|group| group.events.is_empty()) {
        write_out("No events found\n");
        return Ok(0);
    }
    write_out(layout::scaling::events(&style, &status));
    Ok(0)
}

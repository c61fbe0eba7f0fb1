use api::JobRegisterRequest;
use model::document::Job;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::output::{Paint, write_out};
use crate::{eval_monitor, layout, resolve};

pub(super) static COMMAND: Command = Command {
    name: "job start",
    aliases: &["start"],
    arguments: "<job>",
    summary: "Start a stopped job again.",
    details: "It is registered as it was: its newest version, with the source of that version.",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace);
    let job = client.job(&id, query).await.doing("querying job")?.value;
    if job.stop != Some(true) {
        let status = job.status.as_deref().unwrap_or("unknown");
        return Err(anyhow::anyhow!(
            "Job \"{id}\" has not been stopped and has the following status: {status}"
        )
        .into());
    }
    let started = client.register(&again(&client, &namespace, job.clone()).await).await;
    let started = started.doing("starting job")?;
    let now_runs = !layout::job::is_periodic(&job) && !layout::job::is_parameterized(&job);
    if call.args.switch(&DETACH) || started.eval_id.is_empty() {
        let mut text = style.paint(Paint::Green, "Job start successful") + "\n";
        if now_runs && !started.eval_id.is_empty() {
            text.push_str(&format!("Evaluation ID: {}\n", started.eval_id));
        }
        write_out(text);
        return Ok(0);
    }
    eval_monitor::evaluation(&client, &style, &started.eval_id).await
}

/// The request that registers the job again, with its source if the servers still have it.
async fn again(client: &Client, namespace: &str, mut job: Job) -> JobRegisterRequest {
    let (id, version) = (job.id.clone().unwrap_or_default(), job.version.unwrap_or(0));
    let query = Query::new().namespace(namespace);
    let submission = client.job_submission(&id, version, query).await.ok().map(|answer| answer.value);
    job.stop = Some(false);
    JobRegisterRequest { job: Some(job), submission, ..JobRegisterRequest::default() }
}

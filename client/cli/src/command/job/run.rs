use api::JobRegisterRequest;
use model::document::Job;
use sdk::{Client, Query};

use crate::attend::{self, WAIT};
use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Failure, Outcome, Run, UI, VERBOSE};
use crate::flags::{Flag, FlagError};
use crate::job_file::{self, JOB_FILE_FLAGS};
use crate::output::{OutputStyle, Paint, json, write_err, write_out};
use crate::{eval_monitor, hint, layout, periodic_launch};

const OUTPUT: Flag<bool> = Flag::switch("output", "Print the job as JSON, and register nothing.");
const CHECK_INDEX: Flag<u64> =
    Flag::number("check-index", "N", "Register only if the job's JobModifyIndex is N; 0 if it is new.");
const EVAL_PRIORITY: Flag<i64> = Flag::number("eval-priority", "N", "Priority of the evaluation: 1 to 100.");
const PRESERVE_COUNTS: Flag<bool> =
    Flag::switch("preserve-counts", "Keep the counts of the running version.");
const PRESERVE_RESOURCES: Flag<bool> =
    Flag::switch("preserve-resources", "Keep the task resources of the running version.");
const POLICY_OVERRIDE: Flag<bool> =
    Flag::switch("policy-override", "Override soft policies. Nomad Enterprise only.");
const CONSUL_NAMESPACE: Flag<String> = Flag::value("consul-namespace", "NAME", "Nomad Enterprise only.");
const VAULT_NAMESPACE: Flag<String> = Flag::value("vault-namespace", "NAME", "Nomad Enterprise only.");

pub(super) static COMMAND: Command = Command {
    name: "job run",
    aliases: &["run"],
    arguments: "<path>",
    summary: "Register a job, or a new version of it, and follow its placement.",
    details: "The path is a job file, or - for standard input. The exit code is 2 when something could not be placed.\n\
              With -wait it stays until the job has ended and prints what its tasks print; with several tasks, each line begins with\n\
              whose it is. The exit code is then that of a task that failed.",
    flags: &[
        &[
            &OUTPUT,
            &CHECK_INDEX,
            &EVAL_PRIORITY,
            &PRESERVE_COUNTS,
            &PRESERVE_RESOURCES,
            &POLICY_OVERRIDE,
            &CONSUL_NAMESPACE,
            &VAULT_NAMESPACE,
            &DETACH,
            &WAIT,
        ],
        JOB_FILE_FLAGS,
        &[&VERBOSE, &UI],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (style, wait) = (call.style(), call.args.switch(&WAIT));
    if wait && (call.args.switch(&DETACH) || call.args.switch(&OUTPUT)) {
        return Err(call.usage("-wait cannot be given with -detach or -output"));
    }
    call.reject_enterprise(&CONSUL_NAMESPACE)?;
    call.reject_enterprise(&VAULT_NAMESPACE)?;
    let file = job_file::load(&call, call.one_argument()?).await?;
    for warning in &file.parsed.warnings {
        write_err(style.paint(Paint::Yellow, &format!("Warning: {warning}")));
    }
    let job = file.parsed.job;
    if call.args.switch(&OUTPUT) {
        write_out(json(&serde_json::json!({ "Job": jobspec::client_form(&job) })));
        return Ok(0);
    }
    if wait && (layout::job::is_periodic(&job) || layout::job::is_parameterized(&job)) {
        return Err(Failure::Code(1, "-wait needs a job that runs when it is registered".to_string()));
    }
    if wait && job.multiregion.is_some() {
        return Err(Failure::Code(1, "-wait needs a job of one region".to_string()));
    }
    let namespace = call.namespace_of(&job);
    let client = call.client_in(&namespace)?;
    let request = JobRegisterRequest { submission: Some(file.submission), ..request(&call, job)? };
    let job = request.job.clone().unwrap_or_default();
    let registered = match client.register(&request).await {
        Err(sdk::Error::Status { text, .. }) if is_at_another_index(&client, &request).await => {
            return Err(Failure::Code(1, format!("{text}\nJob not updated")));
        }
        registered => registered.doing("submitting job")?,
    };
    if !registered.warnings.is_empty() {
        let warnings =
            style.paint(Paint::Warning, &format!("Job Warnings:\n{}", registered.warnings.trim_end()));
        write_out(format!("{warnings}\n\n"));
    }
    let wait = call.args.switch(&WAIT);
    if wait && registered.eval_id.is_empty() {
        let text =
            "-wait needs a job that runs now: it is registered, and runs when it is launched or dispatched";
        return Err(Failure::Code(1, text.to_string()));
    }
    // Where it is in several regions, it may be a while before this one has its turn.
    let is_elsewhere = job.multiregion.is_some();
    if registered.eval_id.is_empty() || is_elsewhere || call.args.switch(&DETACH) {
        write_out(detached(&style, &job, &registered.eval_id));
        if layout::job::is_periodic(&job) {
            write_out(periodic_launch::describe(&client, &style, &job).await);
        }
        hint::job(&call, &style, &job).await;
        return Ok(0);
    }
    let placed = eval_monitor::evaluation(&client, &style, &registered.eval_id).await;
    hint::job(&call, &style, &job).await;
    match placed? {
        0 if wait => {
            let id = job.id.as_deref().unwrap_or_default();
            attend::until_ended(&client, &namespace, id, registered.eval_create_index).await
        }
        code => Ok(code),
    }
}

/// Whether the job is not at the index that `-check-index` gave.
async fn is_at_another_index(client: &Client, request: &JobRegisterRequest) -> bool {
    if !request.enforce_index {
        return false;
    }
    let id = request.job.as_ref().and_then(|job| job.id.as_deref()).unwrap_or_default();
    let index = match client.job(id, Query::new()).await {
        Ok(found) => found.value.job_modify_index.unwrap_or(0),
        Err(error) if error.status() == Some(404) => 0,
        Err(_) => return false,
    };
    index != request.job_modify_index
}

fn request(call: &Call, job: Job) -> Result<JobRegisterRequest, FlagError> {
    let check_index: Option<u64> = call.args.parsed(&CHECK_INDEX)?;
    Ok(JobRegisterRequest {
        job: Some(job),
        enforce_index: check_index.is_some(),
        job_modify_index: check_index.unwrap_or(0),
        eval_priority: call.args.parsed(&EVAL_PRIORITY)?.unwrap_or(0),
        preserve_counts: call.args.switch(&PRESERVE_COUNTS),
        preserve_resources: call.args.switch(&PRESERVE_RESOURCES),
        policy_override: call.args.switch(&POLICY_OVERRIDE),
        ..JobRegisterRequest::default()
    })
}

fn detached(style: &OutputStyle, job: &Job, eval_id: &str) -> String {
    let text = style.paint(Paint::Green, "Job registration successful") + "\n";
    match eval_id {
        "" => text,
        _ if layout::job::is_periodic(job) || layout::job::is_parameterized(job) => text,
        id => text + &format!("Evaluation ID: {id}\n"),
    }
}

#[cfg(test)]
mod tests {
    use model::document::PeriodicConfig;

    use super::*;

    #[test]
    fn only_jobs_that_run_now_have_an_evaluation() {
        let style = OutputStyle::for_tests();
        let success = "Job registration successful\n";
        assert_eq!(detached(&style, &Job::default(), "e1"), format!("{success}Evaluation ID: e1\n"));
        let periodic = Job { periodic: Some(PeriodicConfig::default()), ..Job::default() };
        assert_eq!(detached(&style, &periodic, ""), success);
    }
}

use api::JobRegisterRequest;
use model::document::Job;

use crate::call::{
    CLIENT_FLAGS, Call, Command, DETACH_FLAGS, Doing, Failure, Outcome, Run, UI_FLAGS, VERBOSE_FLAGS,
};
use crate::flags::{FlagError, switch, value};
use crate::job_file::{self, JOB_FILE_FLAGS};
use crate::output::{Look, Paint, json, write_err, write_out};
use crate::{hint, launch, layout, monitor};

pub static COMMAND: Command = Command {
    name: "job run",
    aliases: &["run"],
    arguments: "<path>",
    summary: "Register a job, or a new version of it, and follow its placement.",
    details: "The path is a job file, or - for standard input. Ends with 2 when something found no place.",
    flags: &[
        &[
            switch("output", "Print the job as JSON, and register nothing."),
            value("check-index", "N", "Register only if the job's JobModifyIndex is N; 0 if it is new."),
            value("eval-priority", "N", "Priority of the evaluation: 1 to 100."),
            switch("preserve-counts", "Keep the counts of the running version."),
            switch("preserve-resources", "Keep the task resources of the running version."),
            switch("policy-override", "Override soft policies. Only of enterprise releases."),
            value("consul-namespace", "NAME", "Only of enterprise releases."),
            value("vault-namespace", "NAME", "Only of enterprise releases."),
        ],
        DETACH_FLAGS,
        JOB_FILE_FLAGS,
        VERBOSE_FLAGS,
        UI_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// How the server begins when the job is not at the index that was asked for.
const ENFORCED: &str = "Enforcing job modify index";

async fn run(call: Call) -> Outcome {
    let look = call.look();
    call.refuse_enterprise("consul-namespace")?;
    call.refuse_enterprise("vault-namespace")?;
    let file = job_file::load(&call, call.one_argument()?).await?;
    for warning in &file.parsed.warnings {
        write_err(look.paint(Paint::Yellow, &format!("Warning: {warning}")));
    }
    let job = file.parsed.job;
    if call.args.switch("output") {
        write_out(json(&serde_json::json!({ "Job": jobspec::client_form(&job) })));
        return Ok(0);
    }
    let namespace = call.namespace_of(&job);
    let client = call.client_in(&namespace)?;
    let request = JobRegisterRequest { submission: Some(file.submission), ..request(&call, job)? };
    let job = request.job.clone().unwrap_or_default();
    let registered = match client.register(&request).await {
        Err(sdk::Error::Status { text, .. }) if text.contains(ENFORCED) => {
            return Err(Failure::Code(1, format!("{text}\nJob not updated")));
        }
        registered => registered.doing("submitting job")?,
    };
    if !registered.warnings.is_empty() {
        let warnings =
            look.paint(Paint::Warning, &format!("Job Warnings:\n{}", registered.warnings.trim_end()));
        write_out(format!("{warnings}\n\n"));
    }
    if registered.eval_id.is_empty() || call.args.switch("detach") {
        write_out(detached(&look, &job, &registered.eval_id));
        if layout::job::is_periodic(&job) {
            write_out(launch::approximate(&client, &look, &job).await);
        }
        hint::job(&call, &look, &job).await;
        return Ok(0);
    }
    let outcome = monitor::evaluation(&client, &look, &registered.eval_id).await;
    hint::job(&call, &look, &job).await;
    outcome
}

fn request(call: &Call, job: Job) -> Result<JobRegisterRequest, FlagError> {
    let check_index: Option<u64> = call.args.number("check-index")?;
    Ok(JobRegisterRequest {
        job: Some(job),
        enforce_index: check_index.is_some(),
        job_modify_index: check_index.unwrap_or(0),
        eval_priority: call.args.number("eval-priority")?.unwrap_or(0),
        preserve_counts: call.args.switch("preserve-counts"),
        preserve_resources: call.args.switch("preserve-resources"),
        policy_override: call.args.switch("policy-override"),
        ..JobRegisterRequest::default()
    })
}

fn detached(look: &Look, job: &Job, eval_id: &str) -> String {
    let text = look.paint(Paint::Green, "Job registration successful") + "\n";
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
        let look = Look::for_tests();
        let success = "Job registration successful\n";
        assert_eq!(detached(&look, &Job::default(), "e1"), format!("{success}Evaluation ID: e1\n"));
        let periodic = Job { periodic: Some(PeriodicConfig::default()), ..Job::default() };
        assert_eq!(detached(&look, &periodic, ""), success);
    }
}

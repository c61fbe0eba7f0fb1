use api::JobValidateResponse;
use jobspec::Finding;
use model::document::Job;

use crate::call::{CLIENT_FLAGS, Call, Command, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::job_file::{self, JOB_FILE_FLAGS};
use crate::output::{Paint, write_err, write_out};

const VAULT_NAMESPACE: Flag<String> = Flag::value("vault-namespace", "NAME", "Nomad Enterprise only.");

pub(super) static COMMAND: Command = Command {
    name: "job validate",
    aliases: &["validate"],
    arguments: "<path>",
    summary: "Check a job file without registering it.",
    details: "A server validates it too, if one is reachable. The exit code is 1 when the job is not valid, and 255\n\
              when it could not be checked.",
    flags: &[&[&VAULT_NAMESPACE], JOB_FILE_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// The exit code when nothing was checked.
const NOT_CHECKED: u8 = 255;

async fn run(call: Call) -> Outcome {
    let style = call.style();
    if let Err(Failure::Failed(error)) = call.reject_enterprise(&VAULT_NAMESPACE) {
        return Err(Failure::Code(NOT_CHECKED, error.to_string()));
    }
    let path = call.one_argument()?;
    let parsed = job_file::load(&call, path).await?.parsed;
    let client = call.client_in(&call.namespace_of(&parsed.job))?;
    let mut warnings = parsed.warnings;
    let checked = match client.validate(parsed.job.clone()).await {
        // The same rules as on a server, and they need no cluster.
        Err(error @ sdk::Error::Unreachable { .. }) => {
            write_err(format!("The servers could not be reached: {error}"));
            validate_locally(parsed.job)
        }
        checked => {
            let failed = |error| Failure::Code(NOT_CHECKED, format!("Error validating job: {error}"));
            checked.map_err(failed)?
        }
    };
    if !checked.validation_errors.is_empty() || !checked.error.is_empty() {
        return Err(invalid(&checked.validation_errors, &checked.error));
    }
    warnings.extend(Some(checked.warnings).filter(|text| !text.is_empty()));
    if !warnings.is_empty() {
        let text = warnings.iter().map(|warning| format!("{}\n", warning.trim_end())).collect::<String>();
        write_out(style.paint(Paint::Warning, &format!("Job Warnings:\n{}", text.trim_end())) + "\n\n");
    }
    write_out(style.paint(Paint::Green, "Job validation successful") + "\n");
    Ok(0)
}

/// Validates the job as a server would.
fn validate_locally(mut job: Job) -> JobValidateResponse {
    let (fails, others): (Vec<Finding>, Vec<Finding>) = jobspec::findings(&job, &jobspec::NoNodes)
        .into_iter()
        .partition(|finding| finding.effect == jobspec::Effect::Fails);
    jobspec::canonicalize(&mut job);
    let validation = jobspec::validate(&job);
    let errors = validation.errors.iter().map(ToString::to_string);
    let warnings: Vec<String> = others.iter().map(ToString::to_string).chain(validation.warnings).collect();
    JobValidateResponse {
        validation_errors: errors.chain(fails.iter().map(ToString::to_string)).collect(),
        warnings: warnings.join("\n"),
        ..JobValidateResponse::default()
    }
}

fn invalid(errors: &[String], error: &str) -> Failure {
    let mut text = "Job validation errors:".to_string();
    if errors.is_empty() {
        text.push_str(&format!("\n{error}"));
    }
    for error in errors {
        text.push_str(&format!("\n  * {error}"));
    }
    Failure::Code(1, text)
}

use model::document::{Job, JobSubmission};
use sdk::Query;
use serde::Serialize;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::object_format::ObjectFormat;
use crate::output::write_out;
use crate::resolve;

const HCL: Flag<bool> = Flag::switch("hcl", "Print the source of the job.");
const WITH_VARS: Flag<bool> = Flag::switch("with-vars", "With -hcl: print the values of its variables too.");
const VERSION: Flag<String> =
    Flag::value("version", "N", "The version to print, by its number or tag. Default: the newest.");

pub(super) static COMMAND: Command = Command {
    name: "job inspect",
    aliases: &["inspect"],
    arguments: "<job>",
    summary: "Print a job as JSON, or the file it was registered with.",
    details: "",
    flags: &[&[&HCL, &WITH_VARS, &VERSION], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// A job as JSON job files contain it.
#[derive(Serialize)]
struct Wrapped<'a> {
    #[serde(rename = "Job")]
    pub job: &'a Job,
}

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let format = call.object_format()?;
    let (hcl, with_variables) = (call.args.switch(&HCL), call.args.switch(&WITH_VARS));
    if hcl && format.is_some() {
        return Err(call.usage("-hcl cannot be used with -json or -t"));
    }
    if with_variables && !hcl {
        return Err(call.usage("-with-vars needs -hcl"));
    }
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let query = || Query::new().namespace(&namespace);
    let job = match call.args.value(&VERSION) {
        None => client.job(&id, query()).await.doing("inspecting job")?.value,
        Some(version) => {
            let versions = client.job_versions(&id, query()).await.doing("inspecting job")?.value.versions;
            versioned(&id, versions.0, version)?
        }
    };
    if hcl {
        let version = job.version.unwrap_or(0);
        let submission =
            client.job_submission(&id, version, query()).await.doing("reading the job's source")?.value;
        if with_variables {
            write_out(values(&submission));
        }
        write_out(submission.source);
        return Ok(0);
    }
    match format {
        Some(template @ ObjectFormat::Template(_)) => template.print(&job),
        Some(ObjectFormat::Json) | None => ObjectFormat::Json.print(&Wrapped { job: &job }),
    }
}

/// The version with this number or tag.
///
/// # Errors
/// When there is none.
pub(super) fn versioned(id: &str, versions: Vec<Job>, wanted: &str) -> Result<Job, Failure> {
    let number: Option<u64> = wanted.parse().ok();
    let is_meant = |job: &Job| {
        job.version_tag.as_ref().is_some_and(|tag| tag.name == wanted)
            || (number.is_some() && job.version == number)
    };
    let found = versions.into_iter().find(is_meant);
    Ok(found.ok_or_else(|| {
        anyhow::anyhow!("job \"{id}\" has no version {wanted}: `job history` lists those it has")
    })?)
}

/// The values of the job's variables, in the format of a variables file.
fn values(submission: &JobSubmission) -> String {
    let mut text = String::new();
    if !submission.variables.is_empty() {
        text.push_str(&format!("{}\n", submission.variables.trim_end()));
    }
    for (name, value) in &submission.variable_flags {
        text.push_str(&format!("{name} = {value:?}\n"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

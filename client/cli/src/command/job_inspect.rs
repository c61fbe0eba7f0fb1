use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::{switch, value};
use crate::output::{json, write_out};
use crate::resolve;

pub static COMMAND: Command = Command {
    name: "job inspect",
    aliases: &["inspect"],
    arguments: "<job>",
    summary: "Print a job as JSON, or the file it was registered with.",
    details: "",
    flags: &[
        &[
            switch("hcl", "Print the source of the job."),
            value("version", "N", "The version to print; the newest unless given."),
        ],
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look) = (call.client()?, call.look());
    call.wants_json()?;
    let version: Option<u64> = call.args.number("version")?;
    let (namespace, id) = resolve::job(&client, &look, call.one_argument()?).await?;
    let query = || Query::new().namespace(&namespace);
    let job = match version {
        None => client.job(&id, query()).await.doing("inspecting job")?.value,
        Some(version) => {
            let versions = client.job_versions(&id, query()).await.doing("inspecting job")?.value.versions;
            let found = versions.0.into_iter().find(|job| job.version == Some(version));
            found.ok_or_else(|| anyhow::anyhow!("job \"{id}\" has no version {version}"))?
        }
    };
    if call.args.switch("hcl") {
        let version = job.version.unwrap_or(0);
        let submission =
            client.job_submission(&id, version, query()).await.doing("reading the job's source")?;
        write_out(submission.value.source);
    } else {
        write_out(json(&serde_json::json!({ "Job": job })));
    }
    Ok(0)
}

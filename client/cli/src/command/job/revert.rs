use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Failure, Outcome, Run, VERBOSE};
use crate::command::deployment::change::follow;
use crate::resolve;

pub(super) static COMMAND: Command = Command {
    name: "job revert",
    aliases: &[],
    arguments: "<job> <version|tag>",
    summary: "Go back to an earlier version of a job.",
    details: "It becomes the newest version. `job history` lists the versions.",
    flags: &[&[&DETACH, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let [job, version] = &call.args.words[..] else {
        return Err(call.usage("This command takes two arguments: <job> <version|tag>"));
    };
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, job).await?;
    let version = match version.parse() {
        Ok(version) => version,
        Err(_) => tagged(&client, &namespace, &id, version).await?,
    };
    let query = Query::new().namespace(&namespace);
    let reverted = client.revert(&id, version, query).await.doing("reverting job")?;
    follow(&call, &client, &style, &reverted.eval_id).await
}

async fn tagged(client: &Client, namespace: &str, id: &str, tag: &str) -> Result<u64, Failure> {
    let query = Query::new().namespace(namespace);
    let versions = client.job_versions(id, query).await.doing("retrieving job versions")?.value.versions.0;
    let found = versions.iter().find(|job| job.version_tag.as_ref().is_some_and(|own| own.name == tag));
    match found.and_then(|job| job.version) {
        Some(version) => Ok(version),
        None => {
            Err(anyhow::anyhow!("job \"{id}\" has no version \"{tag}\": a number or a tag is expected")
                .into())
        }
    }
}

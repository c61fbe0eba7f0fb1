use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::value;
use crate::output::{json, write_out};
use crate::{layout, resolve};

pub static COMMAND: Command = Command {
    name: "job history",
    aliases: &[],
    arguments: "<job>",
    summary: "List the versions of a job, newest first.",
    details: "",
    flags: &[&[value("version", "N", "Show only this version.")], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    let only: Option<u64> = call.args.number("version")?;
    let (namespace, id) = resolve::job(&client, &look, call.one_argument()?).await?;
    let query = Query::new().namespace(&namespace);
    let mut versions =
        client.job_versions(&id, query).await.doing("retrieving job versions")?.value.versions.0;
    versions.retain(|job| only.is_none() || job.version == only);
    if let (Some(version), true) = (only, versions.is_empty()) {
        return Err(anyhow::anyhow!("job \"{id}\" has no version {version}").into());
    }
    if as_json {
        write_out(json(&versions));
    } else {
        let blocks: Vec<_> = versions.iter().map(|job| layout::job::version(&look, job)).collect();
        write_out(blocks.join("\n"));
    }
    Ok(0)
}

use api::TagVersionRequest;
use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;
use crate::resolve;

const NAME: Flag<String> = Flag::value("name", "NAME", "The tag.");
const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "A description of the version.");
const VERSION: Flag<u64> = Flag::number("version", "N", "The version. Default: the newest.");

pub(super) static APPLY: Command = Command {
    name: "job tag apply",
    aliases: &[],
    arguments: "<job>",
    summary: "Tag a version of a job, so that it is kept.",
    details: "",
    flags: &[&[&NAME, &DESCRIPTION, &VERSION], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

pub(super) static UNSET: Command = Command {
    name: "job tag unset",
    aliases: &[],
    arguments: "<job>",
    summary: "Remove the tag of a version.",
    details: "",
    flags: &[&[&NAME], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(unset(call))),
};

async fn apply(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let (name, version) = (name(&call)?, call.args.parsed(&VERSION)?);
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, given).await?;
    let query = || Query::new().namespace(&namespace);
    let version = match version {
        Some(version) => version,
        None => client.job(&id, query()).await.doing("querying job")?.value.version.unwrap_or(0),
    };
    let description = call.args.value(&DESCRIPTION).unwrap_or_default().to_string();
    let tag = TagVersionRequest { version: Some(version), latest: false, description };
    client.tag_version(&id, name, &tag, query()).await.doing("tagging job version")?;
    write_out(format!("Job version {version} tagged with name \"{name}\"\n"));
    Ok(0)
}

async fn unset(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let name = name(&call)?;
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, given).await?;
    let query = Query::new().namespace(&namespace);
    client.untag_version(&id, name, query).await.doing("untagging job version")?;
    write_out(format!("Tag \"{name}\" removed from job \"{id}\"\n"));
    Ok(0)
}

fn name(call: &Call) -> Result<&str, Failure> {
    let name = call.args.value(&NAME).filter(|name| !name.is_empty());
    name.ok_or_else(|| call.usage("A version tag name must be specified using the -name flag"))
}

use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::flags::{Completion, Flag};
use crate::layout;
use crate::output::write_out;

pub(super) const COMMANDS: &[&Command] = &[&LIST, &INFO];

const JOB: Flag<String> =
    Flag::value("job", "NAME", "List only policies of this job.").completed_by(Completion::Ids("jobs"));
const TYPE: Flag<String> = Flag::value("type", "TYPE", "List only policies of this type, like horizontal.");

pub(super) static LIST: Command = Command {
    name: "scaling policy list",
    aliases: &[],
    arguments: "",
    summary: "List scaling policies.",
    details: "",
    flags: &[&[&JOB, &TYPE, &VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static INFO: Command = Command {
    name: "scaling policy info",
    aliases: &[],
    arguments: "<policy_id>",
    summary: "Show a scaling policy.",
    details: "",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, format) = (call.client()?, call.object_format()?);
    let text = |flag| call.args.value(flag).unwrap_or_default();
    let query = Query::new().with("job", text(&JOB)).with("type", text(&TYPE));
    let policies = client.scaling_policies(query).await.doing("listing scaling policies")?.value;
    if let Some(format) = format {
        return format.print(&policies);
    }
    write_out(match policies.as_slice() {
        [] => "No policies found\n".to_string(),
        policies => layout::scaling::policies(&call.style(), policies),
    });
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let (given, format) = (call.one_argument()?, call.object_format()?);
    let (client, style) = (call.client()?, call.style());
    let prefix = crate::resolve::prefix(given, "Identifier")?;
    let mut found =
        client.scaling_policies(Query::new().prefix(prefix)).await.doing("querying scaling policy")?.value;
    found.retain(|policy| policy.id.starts_with(given));
    let id = match found.as_slice() {
        [] => return Err(anyhow::anyhow!("No scaling policies with prefix or id \"{given}\" found").into()),
        [policy] => &policy.id,
        several => {
            let table = layout::scaling::policies(&style, several);
            let text = format!("Prefix matched multiple scaling policies\n\n{}", table.trim_end());
            return Err(Failure::Code(1, text));
        }
    };
    let policy = client.scaling_policy(id).await.doing("querying scaling policy")?;
    if let Some(format) = format {
        return format.print(&policy);
    }
    write_out(layout::scaling::policy(&style, &policy));
    Ok(0)
}

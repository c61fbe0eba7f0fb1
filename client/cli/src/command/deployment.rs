use sdk::Query;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::value;
use crate::layout;
use crate::output::{json, write_out};

pub static LIST: Command = Command {
    name: "deployment list",
    aliases: &[],
    arguments: "",
    summary: "List deployments.",
    details: "",
    flags: &[
        &[value("filter", "EXPR", "Show only what this expression is true of.")],
        VERBOSE_FLAGS,
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub static STATUS: Command = Command {
    name: "deployment status",
    aliases: &[],
    arguments: "<deployment id>",
    summary: "Show how far a deployment has come.",
    details: "",
    flags: &[VERBOSE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(status(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    let query = Query::new().with("filter", call.args.value("filter").unwrap_or_default());
    let deployments = client.deployments(query).await.doing("retrieving deployments")?.value;
    if as_json {
        write_out(json(&deployments));
    } else if deployments.is_empty() {
        write_out("No deployments found\n");
    } else {
        write_out(layout::deployment::table(&look, &deployments));
    }
    Ok(0)
}

async fn status(call: Call) -> Outcome {
    let (client, look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    let given = call.one_argument()?;
    let deployment = crate::resolve::deployment(&client, &look, given).await?;
    write_out(if as_json { json(&deployment) } else { layout::deployment::view(&look, &deployment) });
    Ok(0)
}

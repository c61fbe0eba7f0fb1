use api::ObjectHistory;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::write_out;
use crate::past::gaps::write_gaps;
use crate::resolve::{self, WHOLE_ID};

pub(super) const COMMANDS: &[&Command] = &[&ALLOC, &DEPLOYMENT, &EVAL, &JOB, &NODE];

static ALLOC: Command = Command {
    name: "history alloc",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Print every transition of an allocation, with actor and cause.",
    details: "Also of allocations that were garbage-collected. What happened to its node meanwhile, who took its place,\n\
              restarts and exit codes of tasks are lines; reports that change nothing are not.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(alloc(call))),
};

static DEPLOYMENT: Command = Command {
    name: "history deployment",
    aliases: &[],
    arguments: "<deployment>",
    summary: "Print every fact about a deployment.",
    details: "Deployments that were forgotten are found by their full id.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(deployment(call))),
};

static EVAL: Command = Command {
    name: "history eval",
    aliases: &[],
    arguments: "<evaluation>",
    summary: "Print every fact about an evaluation, with what its plans did.",
    details: "Evaluations that were forgotten are found by their full id.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(eval(call))),
};

static JOB: Command = Command {
    name: "history job",
    aliases: &[],
    arguments: "<job>",
    summary: "Print every fact about a job: versions, evaluations, placements, deployments.",
    details: "Jobs that were purged are found by their whole name.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(job(call))),
};

static NODE: Command = Command {
    name: "history node",
    aliases: &[],
    arguments: "<node>",
    summary: "Print every fact about a node: status, eligibility, drains, messages.",
    details: "Nodes that were forgotten are found by their full id.",
    flags: &[&[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(node(call))),
};

async fn alloc(call: Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let id = resolve::known_allocation(&client, &style, call.one_argument()?).await?;
    let history = client.allocation_history(&id).await.doing("querying allocation history")?.value;
    if let Some(format) = format {
        return format.print(&history);
    }
    write_out(layout::history::table(&style, &history));
    Ok(0)
}

async fn deployment(call: Call) -> Outcome {
    let (client, given) = (call.client()?, call.one_argument()?);
    let id = match given.len() {
        WHOLE_ID => given.to_string(),
        _ => resolve::deployment(&client, &call.style(), given).await?.id,
    };
    print(&call, history(&client, "deployment", &id).await?)
}

async fn eval(call: Call) -> Outcome {
    let (client, given) = (call.client()?, call.one_argument()?);
    let id = match given.len() {
        WHOLE_ID => given.to_string(),
        _ => resolve::evaluation(&client, &call.style(), given).await?.id,
    };
    print(&call, history(&client, "evaluation", &id).await?)
}

async fn node(call: Call) -> Outcome {
    let (client, given) = (call.client()?, call.one_argument()?);
    let id = match given.len() {
        WHOLE_ID => given.to_string(),
        _ => resolve::node(&client, &call.style(), given).await?.id,
    };
    print(&call, history(&client, "node", &id).await?)
}

async fn job(call: Call) -> Outcome {
    let (client, given) = (call.client()?, call.one_argument()?);
    let found = match client.object_history("job", given, Query::new()).await {
        // It is no job's whole name, so it may be the beginning of one.
        Err(error) if error.status() == Some(404) => {
            let (namespace, id) = resolve::job(&client, &call.style(), given).await?;
            client.object_history("job", &id, Query::new().namespace(&namespace)).await
        }
        found => found,
    };
    print(&call, found.doing("querying job history")?)
}

async fn history(client: &Client, kind: &str, id: &str) -> Result<ObjectHistory, Failure> {
    client.object_history(kind, id, Query::new()).await.doing(&format!("querying {kind} history"))
}

fn print(call: &Call, history: ObjectHistory) -> Outcome {
    if let Some(format) = call.object_format()? {
        return format.print(&history);
    }
    write_out(layout::history::lines(&call.style(), &history));
    write_gaps(&history);
    Ok(0)
}

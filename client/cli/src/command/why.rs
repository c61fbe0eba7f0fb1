use sdk::Query;
use serde::Serialize;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::{OutputStyle, json, write_out};
use crate::{layout, resolve};

const DETAILS: &str = "The explanation is not stored: the decision is recomputed from the log, on the state it was made on. \
    Each \"would fit if\" was tried on a copy of that state.";

pub(super) const COMMANDS: &[&Command] = &[&JOB, &EVAL, &ALLOC, &DEPLOYMENT, &NODE, &NOT];

const JSON: Flag<bool> = Flag::switch("json", "Print the explanation as JSON.");

pub(super) static JOB: Command = Command {
    name: "why job",
    aliases: &[],
    arguments: "<job>",
    summary: "Explain the placements of a job's allocations, and what it waits for.",
    details: DETAILS,
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(job(call))),
};

static EVAL: Command = Command {
    name: "why eval",
    aliases: &[],
    arguments: "<evaluation>",
    summary: "Explain the decision of an evaluation.",
    details: DETAILS,
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(eval(call))),
};

static ALLOC: Command = Command {
    name: "why alloc",
    aliases: &[],
    arguments: "<allocation>",
    summary: "Explain the placement of an allocation, its tasks, what it replaced, and what replaced it.",
    details: DETAILS,
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(alloc(call))),
};

static DEPLOYMENT: Command = Command {
    name: "why deployment",
    aliases: &[],
    arguments: "<deployment>",
    summary: "Explain what a deployment waits for, or why it failed.",
    details: "",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(deployment(call))),
};

static NODE: Command = Command {
    name: "why node",
    aliases: &[],
    arguments: "<node>",
    summary: "Explain whether a node takes work, why not, and what it waits for.",
    details: "",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(node(call))),
};

static NOT: Command = Command {
    name: "why-not job",
    aliases: &[],
    arguments: "<job> node <node>",
    summary: "Explain what stands in the way of a job on a node.",
    details: "For one more allocation of each group of the job. Where nothing stands in the way, others were preferred or\n\
              none was wanted. With -as-of it says what stood in the way then. Example: why-not job web node n3",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(not(call))),
};

async fn not(call: Call) -> Outcome {
    let [job, word, node] = call.args.words.as_slice() else {
        return Err(call.usage(&format!("This command takes three arguments: {}", call.command.arguments)));
    };
    if word != "node" {
        return Err(call.usage(&format!("\"{word}\": expected {}", call.command.arguments)));
    }
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, job).await?;
    let node = resolve::node_or_name(&client, &style, node).await?;
    let query = Query::new().namespace(&namespace);
    let why = client.why_not(&id, &node, query).await.doing("explaining job")?;
    print(&call, (&why, &why.approximate), layout::why::not)
}

async fn job(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job(&client, &style, call.one_argument()?).await?;
    let why = client.explain_job(&id, Query::new().namespace(&namespace)).await.doing("explaining job")?;
    print(&call, (&why, &why.approximate), layout::why::job)
}

async fn eval(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let id = resolve::evaluation(&client, &style, call.one_argument()?).await?.id;
    let why = client.explain_evaluation(&id).await.doing("explaining evaluation")?;
    print(&call, (&why, &why.approximate), layout::why::eval)
}

async fn alloc(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let id = resolve::known_allocation(&client, &style, call.one_argument()?).await?;
    let why = client.explain_allocation(&id).await.doing("explaining allocation")?;
    print(&call, (&why, &why.approximate), layout::why::alloc)
}

async fn deployment(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let id = resolve::deployment(&client, &style, call.one_argument()?).await?.id;
    let why = client.explain_deployment(&id).await.doing("explaining deployment")?;
    print(&call, (&why, &why.approximate), layout::why::deployment)
}

async fn node(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    let id = resolve::node(&client, &style, call.one_argument()?).await?.id;
    let why = client.explain_node(&id).await.doing("explaining node")?;
    print(&call, (&why, &why.approximate), layout::why::node)
}

/// An answer that is only approximate says so before anything else.
fn print<T: Serialize>(
    call: &Call,
    (why, approximate): (&T, &str),
    layout: fn(&OutputStyle, &T) -> String,
) -> Outcome {
    let as_json = call.args.switch(&JSON);
    if !as_json && !approximate.is_empty() {
        write_out(format!("Approximate: {approximate}\n\n"));
    }
    write_out(if as_json { json(why) } else { layout(&call.style(), why) });
    Ok(0)
}

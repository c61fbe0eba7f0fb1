use std::io::Read;

use anyhow::Context;
use api::JobDispatchRequest;
use model::document::{Bytes, Map};
use sdk::Query;

use crate::attend::{self, WAIT};
use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Failure, Outcome, Run, UI, VERBOSE};
use crate::flags::Flag;
use crate::output::{fields, write_out};
use crate::{eval_monitor, hint, resolve};

const META: Flag<Vec<String>> =
    Flag::values("meta", "KEY=VALUE", "Metadata of this run; may be given several times.");
const IDEMPOTENCY_TOKEN: Flag<String> =
    Flag::value("idempotency-token", "TEXT", "Dispatch at most once with this token.");
const ID_PREFIX_TEMPLATE: Flag<String> =
    Flag::value("id-prefix-template", "TEXT", "Becomes part of the dispatched job's id.");
const PRIORITY: Flag<i64> = Flag::number("priority", "N", "Priority of the dispatched job: 1 to 100.");

pub(super) static COMMAND: Command = Command {
    name: "job dispatch",
    aliases: &[],
    arguments: "<parameterized job> [input source]",
    summary: "Start a parameterized job with a payload and metadata.",
    details: "The input source is a file, or - for standard input.",
    flags: &[
        &[&META, &WAIT, &IDEMPOTENCY_TOKEN, &ID_PREFIX_TEMPLATE, &PRIORITY, &DETACH, &VERBOSE, &UI],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// A filter expression that matches jobs that can be dispatched.
const DISPATCHABLE: &str = "ParentID == \"\" and ParameterizedJob is not nil";

async fn run(call: Call) -> Outcome {
    let (job, source) = match call.args.words.as_slice() {
        [job] => (job, None),
        [job, source] => (job, Some(source.as_str())),
        _ => {
            return Err(
                call.usage("This command takes one or two arguments: <parameterized job> [input source]")
            );
        }
    };
    if call.args.switch(&WAIT) && call.args.switch(&DETACH) {
        return Err(call.usage("-wait cannot be given with -detach"));
    }
    let (payload, meta) = (payload(source)?, meta(&call)?);
    let (client, style) = (call.client()?, call.style());
    let (namespace, id) = resolve::job_that(&client, &style, job, DISPATCHABLE).await?;
    let request = JobDispatchRequest {
        job_id: id,
        payload: Bytes(payload),
        meta,
        id_prefix_template: call.args.value(&ID_PREFIX_TEMPLATE).unwrap_or_default().to_string(),
        priority: call.args.parsed(&PRIORITY)?.unwrap_or(0),
    };
    let query = || Query::new().namespace(&namespace);
    let token = call.args.value(&IDEMPOTENCY_TOKEN).unwrap_or_default();
    let dispatched = client.dispatch(&request, query().with("idempotency_token", token)).await;
    let dispatched = dispatched.doing("dispatching job")?;
    let mut entries = vec![("Dispatched Job ID", dispatched.dispatched_job_id.clone())];
    if !dispatched.eval_id.is_empty() {
        entries.push(("Evaluation ID", style.id(&dispatched.eval_id)));
    }
    write_out(fields(&entries));
    let place = format!("jobs/{}@{namespace}", hint::segment(&dispatched.dispatched_job_id));
    hint::show(&call, &style, "this dispatched job", &place).await;
    if call.args.switch(&DETACH) || dispatched.eval_id.is_empty() {
        return Ok(0);
    }
    write_out("\n");
    let placed = eval_monitor::evaluation(&client, &style, &dispatched.eval_id).await?;
    if placed == 0 && call.args.switch(&WAIT) {
        return attend::until_ended(&client, &namespace, &dispatched.dispatched_job_id, 0).await;
    }
    Ok(placed)
}

/// The input: a file, standard input for `-`, or nothing.
fn payload(source: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut payload = Vec::new();
    match source {
        None => {}
        Some("-") => {
            let read = std::io::stdin().lock().read_to_end(&mut payload);
            read.context("Error reading input data: standard input")?;
        }
        Some(path) => {
            payload = std::fs::read(path).with_context(|| format!("Error reading input data: {path}"))?;
        }
    }
    Ok(payload)
}

fn meta(call: &Call) -> Result<Map<String, String>, Failure> {
    let split = |given: &String| match given.split_once('=') {
        Some((key, value)) => Ok((key.to_string(), value.to_string())),
        None => Err(call.usage(&format!("Error parsing meta value: -meta {given}: expected KEY=VALUE"))),
    };
    call.args.values(&META).iter().map(split).collect()
}

use api::EvalDeleteRequest;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::confirm::{YES, confirmed};
use crate::flags::Flag;
use crate::output::write_out;
use crate::resolve;

const FILTER: Flag<String> = Flag::value("filter", "EXPR", "Delete those that match this expression.");

pub(super) static COMMAND: Command = Command {
    name: "eval delete",
    aliases: &[],
    arguments: "[<evaluation>]",
    summary: "Delete an evaluation, or those that match an expression.",
    details: "The evaluation broker must be paused:\n\
              `operator scheduler set-config -pause-eval-broker=true`.",
    flags: &[&[&FILTER, &YES], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn delete(call: Call) -> Outcome {
    let filter = call.args.value(&FILTER).filter(|filter| !filter.is_empty());
    let (client, style) = (call.client()?, call.style());
    let request = match (call.optional_argument()?, filter) {
        (Some(id), None) => {
            let eval = resolve::evaluation(&client, &style, id).await?;
            EvalDeleteRequest { eval_ids: vec![eval.id].into(), ..EvalDeleteRequest::default() }
        }
        (None, Some(filter)) => {
            EvalDeleteRequest { filter: filter.to_string(), ..EvalDeleteRequest::default() }
        }
        _ => return Err(call.usage("This command takes an evaluation or -filter, and not both")),
    };
    let count = match filter {
        None => 1,
        Some(filter) => {
            let query = Query::new().with("filter", filter);
            client.evaluations_count(query).await.doing("counting evaluations")?
        }
    };
    let question = format!("Are you sure you want to delete {count} evaluation(s)?");
    let agreed = count == 0 || call.args.switch(&YES);
    if !agreed && !confirmed(&question, "eval delete", "Cancelling eval deletion")? {
        return Ok(0);
    }
    let deleted = match count {
        0 => 0,
        _ => match client.delete_evaluations(&request).await {
            Ok(deleted) => deleted,
            Err(error) => return Err(with_advice(&client, error).await.into()),
        },
    };
    write_out(match deleted {
        0 => "No evaluations were deleted\n".to_string(),
        deleted => format!("Successfully deleted {deleted} evaluation(s)\n"),
    });
    Ok(0)
}

/// Adds how to pause the evaluation broker, if it is not paused: servers then reject the request.
async fn with_advice(client: &Client, error: sdk::Error) -> anyhow::Error {
    let text = format!("Error deleting evaluations: {error}");
    let config = client.scheduler().await.ok().and_then(|answer| answer.scheduler_config);
    if config.is_some_and(|config| !config.pause_eval_broker) {
        let pause = "operator scheduler set-config -pause-eval-broker=true";
        return anyhow::anyhow!(
            "{text}\n\nPause the evaluation broker first with `{pause}`, and resume it afterwards"
        );
    }
    anyhow::anyhow!(text)
}

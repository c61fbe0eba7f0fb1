use futures_util::future::join_all;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, DETACH, Doing, Outcome, Run, VERBOSE};
use crate::confirm::{YES, confirmed};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_out};
use crate::{eval_monitor, resolve};

const PURGE: Flag<bool> = Flag::switch("purge", "Delete the jobs too.");
const GLOBAL: Flag<bool> = Flag::switch("global", "Stop a multi-region job in all its regions.");
const NO_SHUTDOWN_DELAY: Flag<bool> =
    Flag::switch("no-shutdown-delay", "Ignore the shutdown delay of the tasks.");
const EVAL_PRIORITY: Flag<u32> = Flag::number("eval-priority", "N", "Priority of the evaluation: 1 to 100.");

pub(super) static COMMAND: Command = Command {
    name: "job stop",
    aliases: &["stop"],
    arguments: "<job>...",
    summary: "Stop jobs.",
    details: "A prefix of a job's id is enough if it is unique; the command then asks for confirmation.",
    flags: &[&[&DETACH, &PURGE, &GLOBAL, &NO_SHUTDOWN_DELAY, &YES, &EVAL_PRIORITY, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, style) = (call.client()?, call.style());
    if call.args.words.is_empty() {
        return Err(call.usage("This command takes at least one argument: <job>..."));
    }
    let mut jobs = Vec::new();
    for word in &call.args.words {
        let (namespace, id) = resolve::job(&client, &style, word).await?;
        if *word != id && !call.args.switch(&YES) {
            let question = format!("Are you sure you want to stop job \"{id}\"?");
            if !confirmed(&question, "job stop", "Cancelling job stop")? {
                return Ok(0);
            }
        }
        jobs.push((namespace, id));
    }
    let stops = jobs.iter().map(|(namespace, id)| stop(&call, &client, &style, namespace, id));
    let ended = join_all(stops).await.into_iter().collect::<Result<Vec<u8>, _>>()?;
    Ok(ended.into_iter().max().unwrap_or(0))
}

async fn stop(call: &Call, client: &Client, style: &OutputStyle, namespace: &str, id: &str) -> Outcome {
    let mut query = Query::new()
        .namespace(namespace)
        .flag("purge", call.args.switch(&PURGE))
        .flag("global", call.args.switch(&GLOBAL))
        .flag("no_shutdown_delay", call.args.switch(&NO_SHUTDOWN_DELAY));
    if let Some(priority) = call.args.parsed(&EVAL_PRIORITY)? {
        query = query.with("eval_priority", priority);
    }
    let stopped = client.deregister(id, query).await.doing("deregistering job")?;
    if stopped.eval_id.is_empty() {
        return Ok(0);
    }
    if call.args.switch(&DETACH) {
        write_out(format!("{}\n", stopped.eval_id));
        return Ok(0);
    }
    eval_monitor::evaluation(client, style, &stopped.eval_id).await
}

use serde::Deserialize;
use serde_json::json;

use super::restart::{TASK, found};
use crate::call::{CLIENT_FLAGS, Call, Command, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::output::write_out;
use crate::{hint, raw};

const STATE: Flag<String> =
    Flag::value("state", "STATE", "What to change to: pause, run or scheduled. Default: pause.");
const STATUS: Flag<bool> = Flag::switch("status", "Show the state instead of changing it.");

pub(super) static COMMAND: Command = Command {
    name: "alloc pause",
    aliases: &[],
    arguments: "<allocation> <task>",
    summary: "Pause a task that has a schedule, run it, or let the schedule decide again.",
    details: "Schedules of tasks are of Nomad Enterprise: the node that runs the allocation says what it can do.",
    flags: &[&[&STATE, &STATUS, &TASK, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(pause(call))),
};

/// `AllocGetPauseResponse` of Nomad's API.
#[derive(Deserialize)]
struct PauseState {
    #[serde(rename = "ScheduleState", alias = "State")]
    state: String,
}

async fn pause(call: Call) -> Outcome {
    let (given, task) = match call.args.words.as_slice() {
        [alloc] => (alloc, call.args.value(&TASK).filter(|task| !task.is_empty())),
        [alloc, task] => (alloc, Some(task.as_str())),
        _ => return Err(call.usage("This command takes two arguments: <allocation> <task>")),
    };
    let state = call.args.value(&STATE).unwrap_or("pause");
    if !matches!(state, "pause" | "run" | "scheduled") {
        return Err(call.usage(&format!("-state is pause, run or scheduled, not \"{state}\"")));
    }
    let (client, alloc, _) = found(&call, given, task).await?;
    let (task, id) = (task.unwrap_or_default(), &alloc.id);
    let namespace = hint::segment(&alloc.namespace);
    let path = format!("/v1/client/allocation/{id}/pause?namespace={namespace}");
    if call.args.switch(&STATUS) {
        let path = format!("{path}&task={}", hint::segment(task));
        let answer = raw::ask(&client, "GET", &path, None, "querying pause state").await?;
        let answer: PauseState = serde_json::from_slice(&answer)
            .map_err(|error| anyhow::anyhow!("Error querying pause state: {error}"))?;
        write_out(format!("Pause state: \"{}\"\n", answer.state));
        return Ok(0);
    }
    let body = json!({"Task": task, "ScheduleState": state});
    raw::ask(&client, "PUT", &path, Some(&body), "pausing task").await?;
    Ok(0)
}

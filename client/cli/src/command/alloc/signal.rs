use api::AllocSignalRequest;

use super::restart::{TASK, found, named};
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run, VERBOSE};
use crate::flags::Flag;

const SIGNAL: Flag<String> = Flag::value("s", "SIGNAL", "The signal. Default: SIGKILL.");

pub(super) static COMMAND: Command = Command {
    name: "alloc signal",
    aliases: &[],
    arguments: "<allocation> [<task>]",
    summary: "Send a signal to the tasks of an allocation.",
    details: "Without a task it is sent to all tasks.",
    flags: &[&[&TASK, &SIGNAL, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(signal(call))),
};

/// The default signal.
const SIGNAL_DEFAULT: &str = "SIGKILL";

async fn signal(call: Call) -> Outcome {
    let (given, task) = named(&call)?;
    let (client, alloc, query) = found(&call, given, task).await?;
    let signal = call.args.value(&SIGNAL).unwrap_or(SIGNAL_DEFAULT).to_string();
    let request = AllocSignalRequest { task: task.unwrap_or_default().to_string(), signal };
    client.signal_allocation(&alloc.id, &request, query).await.doing("signalling allocation")?;
    Ok(0)
}

use std::time::Duration;

use api::{ErasurePending, VariableErasure};
use sdk::Client;
use tokio::time::sleep;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, Run};
use crate::confirm::{YES, confirmed};
use crate::flags::Flag;
use crate::output::write_out;

const STATUS: Flag<bool> =
    Flag::switch("status", "Forget nothing: show how far it is with what was forgotten under this path.");

const DETACH: Flag<bool> = Flag::switch("detach", "Return at once: the servers erase it meanwhile.");

/// How long to wait before the servers are asked again how far they are.
const POLL: Duration = Duration::from_millis(500);

pub(super) static COMMAND: Command = Command {
    name: "var forget",
    aliases: &[],
    arguments: "<path>",
    summary: "Delete a variable and erase everything that it ever held.",
    details: "Each server destroys the key of the variable, so that its values cannot be read from the log, from\n\
              snapshots of the state or from the past any more. Who wrote it, and when, stays. The command waits until\n\
              all servers have done so; one that is down does it when it is back. What left the servers before, in\n\
              backups of their data directories for instance, is not erased. This cannot be taken back.",
    flags: &[&[&STATUS, &DETACH, &YES], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(forget(call))),
};

async fn forget(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let format = call.object_format()?;
    let client = call.client()?;
    if call.args.switch(&STATUS) {
        let erasures = erasures(&client, path).await?;
        return match format {
            Some(format) => format.print(&erasures),
            None if erasures.is_empty() => {
                write_out(format!("No variable \"{path}\" was forgotten\n"));
                Ok(0)
            }
            None => {
                erasures.iter().for_each(say);
                Ok(0)
            }
        };
    }
    if !call.args.switch(&YES) {
        let question = format!(
            "Forget variable \"{path}\"? Everything that it ever held is erased, and nobody can bring it back."
        );
        if !confirmed(&question, "var forget", "Nothing was forgotten")? {
            return Ok(0);
        }
    }
    let mut erasure = client.forget_variable(path).await.doing("forgetting variable")?;
    if !call.args.switch(&DETACH) {
        let report = format.is_none().then_some(say);
        erasure = until_complete(erasure, report, || erasures(&client, path)).await?;
    }
    match format {
        Some(format) => format.print(&erasure),
        None => {
            say(&erasure);
            Ok(0)
        }
    }
}

/// Asks until all servers have erased it; `report` gets what is new.
pub(crate) async fn until_complete<F>(
    mut erasure: VariableErasure,
    report: Option<impl Fn(&VariableErasure)>,
    ask: impl Fn() -> F,
) -> Result<VariableErasure, Failure>
where
    F: Future<Output = Result<Vec<VariableErasure>, Failure>>,
{
    let mut said = VariableErasure::default();
    while !erasure.complete {
        if let Some(report) = report.as_ref().filter(|_| erasure != said) {
            report(&erasure);
            said = erasure.clone();
        }
        sleep(POLL).await;
        let at = erasure.forgotten_at;
        let known = ask().await?.into_iter().find(|known| known.forgotten_at == at);
        // A server that is behind does not know of it yet.
        erasure = known.unwrap_or(erasure);
    }
    Ok(erasure)
}

async fn erasures(client: &Client, path: &str) -> Result<Vec<VariableErasure>, Failure> {
    client.variable_erasures(path).await.doing("retrieving erasures of variable")
}

fn say(erasure: &VariableErasure) {
    say_of(&format!("Variable \"{}\"", erasure.path), erasure);
    if erasure.kept_before > 0 {
        write_out(format!(
            "What was written before index {} is encrypted with a root key, and stays readable\n",
            erasure.kept_before
        ));
    }
}

/// How far it is with something that was forgotten.
pub(crate) fn say_of(what: &str, erasure: &VariableErasure) {
    let VariableErasure { forgotten_at, pending, .. } = erasure;
    let name = |server: &ErasurePending| match server.name.as_str() {
        "" => server.id.clone(),
        name => name.to_string(),
    };
    let servers: Vec<String> = pending.iter().map(name).collect();
    match erasure.complete {
        true => write_out(format!(
            "{what} was forgotten at index {forgotten_at}: no server can open any more what it held\n"
        )),
        false => write_out(format!(
            "{what} was forgotten at index {forgotten_at}: its key is still to be erased by {}\n",
            servers.join(", ")
        )),
    }
}

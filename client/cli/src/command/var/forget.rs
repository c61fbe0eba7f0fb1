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
    let is_told = format.is_none();
    if !call.args.switch(&DETACH) {
        let mut said = VariableErasure::default();
        while !erasure.complete {
            if is_told && erasure != said {
                say(&erasure);
                said = erasure.clone();
            }
            sleep(POLL).await;
            let at = erasure.forgotten_at;
            let known = erasures(&client, path).await?.into_iter().find(|known| known.forgotten_at == at);
            // A server that is behind does not know of it yet.
            erasure = known.unwrap_or(erasure);
        }
    }
    match format {
        Some(format) => format.print(&erasure),
        None => {
            say(&erasure);
            Ok(0)
        }
    }
}

async fn erasures(client: &Client, path: &str) -> Result<Vec<VariableErasure>, Failure> {
    client.variable_erasures(path).await.doing("retrieving erasures of variable")
}

fn say(erasure: &VariableErasure) {
    let VariableErasure { path, forgotten_at, pending, kept_before, .. } = erasure;
    let name = |server: &ErasurePending| match server.name.as_str() {
        "" => server.id.clone(),
        name => name.to_string(),
    };
    let servers: Vec<String> = pending.iter().map(name).collect();
    match erasure.complete {
        true => write_out(format!(
            "Variable \"{path}\" was forgotten at index {forgotten_at}: no server can open any more what it held\n"
        )),
        false => write_out(format!(
            "Variable \"{path}\" was forgotten at index {forgotten_at}: its key is still to be erased by {}\n",
            servers.join(", ")
        )),
    }
    if *kept_before > 0 {
        write_out(format!(
            "What was written before index {kept_before} is encrypted with a root key, and stays readable\n"
        ));
    }
}

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "namespace delete",
    aliases: &[],
    arguments: "<namespace>",
    summary: "Delete a namespace without jobs.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_namespace(name).await.doing("deleting namespace")?;
    write_out(format!("Successfully deleted namespace \"{name}\"!\n"));
    Ok(0)
}

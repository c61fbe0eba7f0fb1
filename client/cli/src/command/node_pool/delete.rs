use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "node pool delete",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "Delete a node pool without nodes and jobs.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_node_pool(name).await.doing("deleting node pool")?;
    write_out(format!("Successfully deleted node pool \"{name}\"!\n"));
    Ok(0)
}

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;

const PRUNE: Flag<bool> = Flag::switch("prune", "Also remove it from the list of members.");

pub(super) static COMMAND: Command = Command {
    name: "server force-leave",
    aliases: &["server-force-leave"],
    arguments: "<node>",
    summary: "Mark a failed server as left.",
    details: "The leader then removes it from the Raft cluster. A running server cannot be forced to leave: stop it.",
    flags: &[&[&PRUNE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, name) = (call.client()?, call.one_argument()?);
    let doing = format!("force-leaving server {name}");
    client.force_leave(name, call.args.switch(&PRUNE)).await.doing(&doing)?;
    Ok(0)
}

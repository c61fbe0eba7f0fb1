use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;

const PRUNE: Flag<bool> = Flag::switch("prune", "Also take it off the list of servers.");

pub static COMMAND: Command = Command {
    name: "server force-leave",
    aliases: &["server-force-leave"],
    arguments: "<node>",
    summary: "Have a failed server count as one that left.",
    details: "The leader then takes it off the raft cluster. A server that lives cannot be made to leave: stop it.",
    flags: &[&[&PRUNE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, name) = (call.client()?, call.one_argument()?);
    let doing = format!("force-leaving server {name}");
    client.force_leave(name, call.args.switch(&PRUNE)).await.doing(&doing)?;
    Ok(0)
}

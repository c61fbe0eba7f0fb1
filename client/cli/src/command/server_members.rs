use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::switch;
use crate::layout;
use crate::output::{json, write_err, write_out};

pub static COMMAND: Command = Command {
    name: "server members",
    aliases: &["server-members"],
    arguments: "",
    summary: "List the servers and which of them leads.",
    details: "",
    flags: &[&[switch("detailed", "The same as -verbose.")], VERBOSE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, mut look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    look.verbose |= call.args.switch("detailed");
    let members = client.members().await.doing("querying servers")?.members;
    if as_json {
        write_out(json(&members.0));
        return Ok(0);
    }
    if members.is_empty() {
        write_err("Agent doesn't know about server members");
        return Ok(0);
    }
    let leader = client.leader().await;
    write_out(layout::server::members(&look, &members, leader.as_deref().unwrap_or_default()));
    if let Err(error) = leader {
        return Err(anyhow::anyhow!("\nError determining leaders: {error}").into());
    }
    Ok(0)
}

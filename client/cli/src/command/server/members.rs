use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, OUTPUT, Outcome, Run, UI, VERBOSE};
use crate::flags::Flag;
use crate::output::{write_err, write_out};
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout};

const DETAILED: Flag<bool> = Flag::switch("detailed", "The same as -verbose.");

pub(super) static COMMAND: Command = Command {
    name: "server members",
    aliases: &["server-members"],
    arguments: "",
    summary: "List the servers and show the leader.",
    details: "",
    flags: &[&[&DETAILED, &VERBOSE, &WATCH, &OUTPUT], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::Briefly, run))),
};

async fn run(call: &Call) -> Outcome {
    call.no_arguments()?;
    let (client, mut style, format) = (call.client()?, call.style(), call.object_format()?);
    style.verbose |= call.args.switch(&DETAILED);
    let members = client.members().await.doing("querying servers")?.members;
    if let Some(format) = format {
        return format.print(&members.0);
    }
    if members.is_empty() {
        write_err("Agent doesn't know about server members");
        return Ok(0);
    }
    let leader = client.leader().await;
    write_out(layout::server::members(&style, &members, leader.as_deref().unwrap_or_default()));
    hint::show(call, &style, "and manage Nomad servers", "servers").await;
    if let Err(error) = leader {
        return Err(anyhow::anyhow!("\nError determining leaders: {error}").into());
    }
    Ok(0)
}

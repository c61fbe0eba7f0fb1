use std::collections::BTreeSet;

use api::{AgentMember, ServerMembers};
use futures_util::future::join_all;
use sdk::Client;

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
    let answer = client.members().await.doing("querying servers")?;
    let members = &answer.members;
    if let Some(format) = format {
        return format.print(&members.0);
    }
    if members.is_empty() {
        write_err("Agent doesn't know about server members");
        return Ok(0);
    }
    let (leader, others) = tokio::join!(client.leader(), leaders_elsewhere(&client, &answer));
    let leaders: Vec<String> = leader.as_ref().ok().cloned().into_iter().chain(others).collect();
    write_out(layout::server::members(&style, members, &leaders));
    hint::show(call, &style, "and manage Nomad servers", "servers").await;
    if let Err(error) = leader {
        return Err(anyhow::anyhow!("\nError determining leaders: {error}").into());
    }
    Ok(0)
}

/// Of a region that cannot be asked no leader is known: it is cut off, which is no failure of this one.
async fn leaders_elsewhere(client: &Client, answer: &ServerMembers) -> Vec<String> {
    let region = |member: &AgentMember| member.tags.get("region").cloned();
    let regions: BTreeSet<String> = answer.members.iter().filter_map(region).collect();
    let others = regions.into_iter().filter(|region| *region != answer.server_region);
    let asked = others.map(|region| async move { client.in_region(&region).leader().await.ok() });
    join_all(asked).await.into_iter().flatten().collect()
}

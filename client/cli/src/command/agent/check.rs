use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::layout::plural;

const MIN_PEERS: Flag<usize> = Flag::number("min-peers", "N", "Peers that a server needs. Default: 0.");
const MIN_SERVERS: Flag<usize> = Flag::number("min-servers", "N", "Servers that a client needs. Default: 1.");

pub(super) static COMMAND: Command = Command {
    name: "check",
    aliases: &[],
    arguments: "",
    summary: "Check the health of the agent.",
    details: "The exit code is 0 if it is healthy, 1 if it is not, 2 on wrong usage.",
    flags: &[&[&MIN_PEERS, &MIN_SERVERS], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let peers = call.args.parsed(&MIN_PEERS)?.unwrap_or(0);
    let servers = call.args.parsed(&MIN_SERVERS)?.unwrap_or(1);
    let client = call.client()?;
    match why_unhealthy(&client, peers, servers).await? {
        None => Ok(0),
        Some(why) => Err(Failure::Code(1, why)),
    }
}

/// Why the agent is unhealthy; `None` if it is healthy.
async fn why_unhealthy(
    client: &Client,
    min_peers: usize,
    min_servers: usize,
) -> Result<Option<String>, Failure> {
    let stats = client.agent_self().await.doing("querying agent info")?.stats;
    let is_server = stats.get("nomad").and_then(|group| group.get("server")).is_some_and(|yes| yes == "true");
    if is_server {
        let others = client.peers().await.doing("querying peers")?.len().saturating_sub(1);
        return Ok((others < min_peers)
            .then(|| format!("The server has {}, not {min_peers}", plural(others, "peer"))));
    }
    let known = client.agent_servers().await.doing("querying server list")?.len();
    Ok((known < min_servers)
        .then(|| format!("The agent knows {}, not {min_servers}", plural(known, "server"))))
}

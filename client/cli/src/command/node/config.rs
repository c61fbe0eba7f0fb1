use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;

const SERVERS: Flag<bool> = Flag::switch("servers", "List the servers, one a line.");
const UPDATE_SERVERS: Flag<bool> = Flag::switch("update-servers", "Replace the list of servers.");

pub(super) static COMMAND: Command = Command {
    name: "node config",
    aliases: &["client-config"],
    arguments: "[<server>...]",
    summary: "Show or change the servers that a client agent uses.",
    details: "With -update-servers the arguments are HOST:PORT of the servers.",
    flags: &[&[&SERVERS, &UPDATE_SERVERS], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (shows, changes) = (call.args.switch(&SERVERS), call.args.switch(&UPDATE_SERVERS));
    if shows == changes {
        return Err(call.usage("Either '-servers' or '-update-servers' must be given"));
    }
    let client = call.client()?;
    if changes {
        if call.args.words.is_empty() {
            return Err(call.usage("If the '-update-servers' flag is set, at least one server must be given"));
        }
        client.set_agent_servers(&call.args.words).await.doing("updating server list")?;
        write_out("Updated server list\n");
        return Ok(0);
    }
    let servers = client.agent_servers().await.doing("querying server list")?;
    write_out(servers.iter().map(|server| format!("{server}\n")).collect::<String>());
    Ok(0)
}

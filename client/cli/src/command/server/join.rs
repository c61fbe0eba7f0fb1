use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::layout::plural;
use crate::output::{write_err, write_out};

pub(super) static COMMAND: Command = Command {
    name: "server join",
    aliases: &["server-join"],
    arguments: "<addr> [<addr>...]",
    summary: "Make a server join other servers.",
    details: "One address is enough: the servers exchange the addresses of all members. The port is the\n\
              gossip port, 4648 by default.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    if call.args.words.is_empty() {
        return Err(call.usage("This command takes at least one argument: <addr> [<addr>...]"));
    }
    let client = call.client()?;
    let answer = client.join(&call.args.words).await.doing("joining")?;
    if answer.joined == 0 && !answer.error.is_empty() {
        return Err(anyhow::anyhow!("Error joining: {}", answer.error).into());
    }
    if !answer.error.is_empty() {
        write_err(format!("Not all could be joined: {}", answer.error));
    }
    write_out(format!("Joined {} successfully\n", plural(answer.joined, "server")));
    Ok(0)
}

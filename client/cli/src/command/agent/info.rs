use serde_json::Value;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "agent-info",
    aliases: &[],
    arguments: "",
    summary: "Show the agent's own statistics.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    let (client, format) = (call.client()?, call.object_format()?);
    let agent = client.agent_self().await.doing("querying agent info")?;
    if let Some(format) = format {
        return format.print(&agent);
    }
    let mut text = String::new();
    for (group, values) in &agent.stats {
        text.push_str(&format!("{group}\n"));
        text.extend(values.iter().map(|(key, value)| format!("  {key} = {value}\n")));
    }
    let exposures = agent.config.get("Exposures").and_then(Value::as_array);
    if let Some(lines) = exposures.filter(|lines| !lines.is_empty()) {
        text.push_str("exposures\n");
        text.extend(lines.iter().filter_map(Value::as_str).map(|line| format!("  {line}\n")));
    }
    write_out(text);
    Ok(0)
}

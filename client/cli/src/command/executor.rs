use crate::call::{Call, Command, Outcome, Run};

pub static COMMAND: Command = Command {
    name: "executor",
    aliases: &[],
    arguments: "",
    summary: "Run one task, on behalf of the node agent.",
    details: "The agent starts this by itself.",
    flags: &[],
    hidden: true,
    run: Run::Process(run),
};

fn run(_call: Call) -> Outcome {
    Err(anyhow::anyhow!("the node is not part of this build yet").into())
}

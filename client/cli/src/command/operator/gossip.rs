use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::call::{Call, Command, Outcome, Run};
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "operator gossip keyring generate",
    aliases: &[],
    arguments: "",
    summary: "Generate a key that encrypts gossip.",
    details: "Set it as server.encrypt on every server. Needs no agent.",
    flags: &[],
    run: Run::Process(generate),
};

fn generate(call: Call) -> Outcome {
    call.no_arguments()?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("draw a key: {error}"))?;
    write_out(format!("{}\n", STANDARD.encode(key)));
    Ok(0)
}

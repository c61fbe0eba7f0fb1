use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sdk::KeyChange;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run};
use crate::layout;
use crate::output::{json, write_out};

pub(super) static GENERATE: Command = Command {
    name: "operator gossip keyring generate",
    aliases: &[],
    arguments: "",
    summary: "Generate a key that encrypts gossip.",
    details: "Set it as server.encrypt on every server, or install it where gossip is encrypted already. Needs no agent.",
    flags: &[],
    run: Run::Process(generate),
};

pub(super) static LIST: Command = Command {
    name: "operator gossip keyring list",
    aliases: &[],
    arguments: "",
    summary: "List the keys of all servers that encrypt gossip.",
    details: "Shows how many servers have each key. A server sends with one of its keys, and reads what any of them encrypted.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static INSTALL: Command = Command {
    name: "operator gossip keyring install",
    aliases: &[],
    arguments: "KEY",
    summary: "Install a key on all servers.",
    details: "The first step of replacing a key. They can read what it encrypts then, and go on sending with the key before it.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(change(call, KeyChange::Install))),
};

pub(super) static USE: Command = Command {
    name: "operator gossip keyring use",
    aliases: &[],
    arguments: "KEY",
    summary: "Have all servers encrypt with an installed key.",
    details: "The second step of replacing a key. Refused while a live server has not installed it.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(change(call, KeyChange::Use))),
};

pub(super) static REMOVE: Command = Command {
    name: "operator gossip keyring remove",
    aliases: &[],
    arguments: "KEY",
    summary: "Remove a key from all servers.",
    details: "The last step of replacing a key. Refused while a live server encrypts with it.",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(change(call, KeyChange::Remove))),
};

fn generate(call: Call) -> Outcome {
    call.no_arguments()?;
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("draw a key: {error}"))?;
    write_out(format!("{}\n", STANDARD.encode(key)));
    Ok(0)
}

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    if call.args.switch(&JSON) {
        write_out(json(&call.client()?.gossip_keys().await.doing("querying gossip keyring")?));
        return Ok(0);
    }
    write_out("Gathering installed encryption keys...\n");
    let keys = call.client()?.gossip_keys().await.doing("querying gossip keyring")?;
    write_out(layout::operator::gossip_keys(&keys));
    Ok(u8::from(!keys.messages.is_empty()))
}

async fn change(call: Call, how: KeyChange) -> Outcome {
    let key = call.one_argument()?;
    let (begun, doing, done) = match how {
        KeyChange::Install => ("Installing new gossip encryption key...", "installing key", "installed"),
        KeyChange::Use => ("Changing primary gossip encryption key...", "changing primary key", "in use"),
        KeyChange::Remove => ("Removing gossip encryption key...", "removing key", "removed"),
    };
    write_out(format!("{begun}\n"));
    let answer = call.client()?.change_gossip_keys(how, key).await.doing(doing)?;
    write_out(format!("The key is {done} on {}.\n", layout::plural(answer.num_nodes, "server")));
    Ok(0)
}

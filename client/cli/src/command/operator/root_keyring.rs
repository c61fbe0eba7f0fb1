use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout;
use crate::output::{json, write_out};

const FULL: Flag<bool> = Flag::switch("full", "Also encrypt anew what old keys encrypted.");
const NOW: Flag<bool> = Flag::switch("now", "Use the key at once, which this release always does.");
const ALGO: Flag<String> =
    Flag::value("algo", "NAME", "How the key signs: rs256 or eddsa. Without it, as the key before.");
const FORCE: Flag<bool> = Flag::switch("force", "Also remove a key that is in use.");

pub(super) static LIST: Command = Command {
    name: "operator root keyring list",
    aliases: &[],
    arguments: "",
    summary: "List the keys that the cluster signs with.",
    details: "One key is active. What the others signed can still be verified until they are removed.",
    flags: &[&[&VERBOSE, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(super) static ROTATE: Command = Command {
    name: "operator root keyring rotate",
    aliases: &[],
    arguments: "",
    summary: "Have the cluster sign with a new key.",
    details: "The key before it becomes inactive. The leader does this by itself every 30 days.",
    flags: &[&[&ALGO, &FULL, &NOW, &VERBOSE, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(rotate(call))),
};

pub(super) static REMOVE: Command = Command {
    name: "operator root keyring remove",
    aliases: &[],
    arguments: "KEY",
    summary: "Remove an inactive key.",
    details: "What it signed can no longer be verified.",
    flags: &[&[&FORCE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(remove(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let keys = call.client()?.root_keys().await.doing("querying root keyring")?;
    write_out(match call.args.switch(&JSON) {
        true => json(&keys),
        false => layout::operator::root_keys(&call.style(), &keys),
    });
    Ok(0)
}

async fn rotate(call: Call) -> Outcome {
    call.no_arguments()?;
    let algo = call.args.value(&ALGO).unwrap_or_default();
    let rotated = call.client()?.rotate_root_key(call.args.switch(&FULL), algo).await;
    let rotated = rotated.doing("rotating root key")?;
    write_out(match call.args.switch(&JSON) {
        true => json(&rotated.key),
        false => layout::operator::root_keys(&call.style(), &[rotated.key]),
    });
    Ok(0)
}

async fn remove(call: Call) -> Outcome {
    let key = call.one_argument()?;
    let force = call.args.switch(&FORCE);
    call.client()?.remove_root_key(key, force).await.doing("removing root key")?;
    write_out(format!("Removed root key {key}\n"));
    Ok(0)
}

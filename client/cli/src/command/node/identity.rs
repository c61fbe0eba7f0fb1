//! What nodes prove themselves with, and what new ones introduce themselves with.

use api::IntroductionTokenRequest;
use base::Duration;
use serde_json::Value;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::flags::Flag;
use crate::output::{Table, write_out};
use crate::resolve;

const TTL: Flag<String> =
    Flag::value("ttl", "DURATION", "How long the token is valid. Default: the servers' choice, 5m.");
const NODE_NAME: Flag<String> =
    Flag::value("node-name", "NAME", "The node that may use it. Default: one of any name.");
const NODE_POOL: Flag<String> = Flag::value("node-pool", "POOL", "The pool of the node. Default: default.");

pub(super) static GET: Command = Command {
    name: "node identity get",
    aliases: &[],
    arguments: "<node>",
    summary: "Show the claims of a node's identity.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(get(call))),
};

pub(super) static RENEW: Command = Command {
    name: "node identity renew",
    aliases: &[],
    arguments: "<node>",
    summary: "Have a node ask for a new identity with its next heartbeat.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(renew(call))),
};

pub(super) static INTRODUCE: Command = Command {
    name: "node intro create",
    aliases: &[],
    arguments: "",
    summary: "Create a token that a new node introduces itself with.",
    details: "Give it to the agent as client.intro_token, -client-intro-token or NOMAD_CLIENT_INTRO_TOKEN, or write it to\n\
              intro_token.jwt in its state directory. server.client_introduction says whether nodes need one.",
    flags: &[&[&TTL, &NODE_NAME, &NODE_POOL], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(introduce(call))),
};

async fn get(call: Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let node = resolve::node(&client, &style, call.one_argument()?).await?.id;
    let identity = client.node_identity(&node).await.doing("querying node identity")?;
    if let Some(format) = format {
        return format.print(&identity);
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
    let mut table = Table::new(["Claim Key", "Claim Value"]);
    for (key, value) in identity.claims.iter() {
        table.row([key.clone(), text(value)]);
    }
    write_out(table.render());
    Ok(0)
}

async fn renew(call: Call) -> Outcome {
    let client = call.client()?;
    let node = resolve::node(&client, &call.style(), call.one_argument()?).await?.id;
    client.renew_node_identity(&node).await.doing("renewing node identity")?;
    Ok(0)
}

async fn introduce(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let ttl = match call.args.value(&TTL) {
        None => Duration::ZERO,
        Some(text) => {
            let parsed = text.parse().ok().filter(|ttl| *ttl > Duration::ZERO);
            parsed.ok_or_else(|| call.usage(&format!("-ttl \"{text}\": expected a duration like 5m")))?
        }
    };
    let text = |flag| call.args.value(flag).unwrap_or_default().to_string();
    let request = IntroductionTokenRequest {
        ttl: ttl.into(),
        node_name: text(&NODE_NAME),
        node_pool: text(&NODE_POOL),
    };
    let token = call.client()?.introduce_node(&request).await.doing("creating introduction token")?;
    if let Some(format) = format {
        return format.print(&token);
    }
    write_out(format!("Successfully generated client introduction token:\n\n{}\n", token.jwt));
    Ok(0)
}

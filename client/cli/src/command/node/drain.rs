use api::DrainSpec;
use base::Duration;
use model::document::Map;
use sdk::Client;

use super::status::own_node;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE_FLAGS};
use crate::confirm::confirmed;
use crate::flags::{Flag, switch, value};
use crate::output::{Look, write_out};
use crate::{drain_monitor, resolve};

/// How long a drain waits if nobody says.
const DEADLINE: Duration = Duration::from_secs(3600);
/// Everything goes at once.
const FORCE: Duration = Duration(-1_000_000_000);

pub(super) const SELF: Flag = switch("self", "The node of the agent that is asked.");
pub(super) const YES: Flag = switch("yes", "Ask nothing.");

pub static COMMAND: Command = Command {
    name: "node drain",
    aliases: &["node-drain"],
    arguments: "<node>",
    summary: "Empty a node, or stop emptying it.",
    details: "A node that is being emptied takes nothing new. Its allocations move as their groups can spare them, batch \
        jobs run to their end, system jobs go last. What still runs at the deadline is stopped.",
    flags: &[
        &[
            switch("enable", "Empty the node, or empty it otherwise than before."),
            switch("disable", "Stop emptying the node."),
            value("deadline", "DURATION", "How long to wait; 1h unless told."),
            switch("force", "Wait for nobody: everything is stopped at once."),
            switch("no-deadline", "Wait for ever."),
            switch("ignore-system", "Leave system jobs where they are."),
            switch("keep-ineligible", "With -disable: the node still takes nothing new."),
            value("m", "TEXT", "Why, for others to read."),
            value("meta", "KEY=VALUE", "Kept with the drain; may be given several times."),
            switch("detach", "Return at once."),
            switch("monitor", "Only watch a drain that goes on."),
            SELF,
            YES,
        ],
        VERBOSE_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(drain(call))),
};

async fn drain(call: Call) -> Outcome {
    let on = |flag| call.args.switch(flag);
    let (enable, disable) = (on("enable"), on("disable"));
    let watches = !enable && !disable && on("monitor");
    if enable == disable && !watches {
        return Err(
            call.usage("Either the '-enable' or '-disable' flag must be set, unless using '-monitor'")
        );
    }
    let orders = ["deadline", "force", "no-deadline", "ignore-system"];
    if let Some(order) = orders.into_iter().find(|order| !enable && call.args.value(order).is_some()) {
        return Err(call.usage(&format!("The '-{order}' flag needs '-enable'")));
    }
    if on("keep-ineligible") && !disable {
        return Err(call.usage("The '-keep-ineligible' flag needs '-disable'"));
    }
    let (spec, meta) = (spec(&call)?, meta(&call)?);
    let (client, look) = (call.client()?, call.look());
    let question = if enable { "enable drain mode" } else { "disable drain mode" };
    let question = (!watches).then_some(question);
    let Some(id) = chosen(&call, &client, &look, question, "drain", "Canceling drain toggle").await? else {
        return Ok(0);
    };
    if watches {
        return drain_monitor::drain(&client, &look, &id).await;
    }
    let (spec, mark_eligible) = (enable.then_some(spec), disable && !on("keep-ineligible"));
    client.drain(&id, spec, mark_eligible, meta).await.doing("updating drain specification")?;
    if disable || on("detach") {
        write_out(format!("Node \"{id}\" drain strategy {}\n", if enable { "set" } else { "unset" }));
        return Ok(0);
    }
    drain_monitor::begin(&look, &id);
    drain_monitor::drain(&client, &look, &id).await
}

/// The node that is meant; `None` if its name was shortened and whoever was asked said no.
pub(super) async fn chosen(
    call: &Call,
    client: &Client,
    look: &Look,
    question: Option<&str>,
    what: &str,
    canceled: &str,
) -> Result<Option<String>, Failure> {
    let given = call.optional_argument()?;
    let given = match (given, call.args.switch("self")) {
        (None, true) => return own_node(client).await.map(Some),
        (Some(given), false) => given,
        _ => return Err(call.usage("This command takes one argument, <node>, or the '-self' flag")),
    };
    let node = resolve::node(client, look, given).await?.id;
    let asks = question.filter(|_| node != given && !call.args.switch("yes"));
    let agreed = asks.map_or(Ok(true), |question| {
        confirmed(&format!("Are you sure you want to {question} for node \"{node}\"?"), what, canceled)
    });
    Ok(agreed?.then_some(node))
}

fn spec(call: &Call) -> Result<DrainSpec, Failure> {
    let given: Option<Duration> = call.args.parsed("deadline", "a duration, like 30m")?;
    let (force, never) = (call.args.switch("force"), call.args.switch("no-deadline"));
    if given.is_some() && (force || never) {
        return Err(call.usage("The '-deadline' flag excludes '-force' and '-no-deadline'"));
    }
    let deadline = match (given, force, never) {
        (_, true, true) => return Err(call.usage("The '-force' flag excludes '-no-deadline'")),
        (Some(given), ..) if given.0 <= 0 => {
            return Err(call.usage("A positive duration must be given as the '-deadline'"));
        }
        (Some(given), ..) => given,
        (None, true, false) => FORCE,
        (None, false, true) => Duration::ZERO,
        (None, false, false) => DEADLINE,
    };
    Ok(DrainSpec { deadline: deadline.into(), ignore_system_jobs: call.args.switch("ignore-system") })
}

fn meta(call: &Call) -> Result<Map<String, String>, Failure> {
    let mut meta = Map::default();
    for given in call.args.values("meta") {
        let Some((key, value)) = given.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(call.usage(&format!("-meta {given:?}: expected KEY=VALUE")));
        };
        meta.insert(key.to_string(), value.to_string());
    }
    if let Some(message) = call.args.value("m") {
        meta.insert("message".to_string(), message.to_string());
    }
    Ok(meta)
}

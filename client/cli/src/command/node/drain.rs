use api::DrainSpec;
use base::Duration;
use model::document::Map;
use sdk::Client;

use super::status::own_node;
use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run, VERBOSE};
use crate::confirm::{YES, confirmed};
use crate::flags::{Flag, FlagList};
use crate::output::{OutputStyle, write_out};
use crate::{drain_monitor, resolve};

/// The default deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(3600);
/// Any negative deadline forces the drain, as in Nomad's API.
const DEADLINE_AT_ONCE: Duration = Duration(-1_000_000_000);

pub(super) const SELF: Flag<bool> = Flag::switch("self", "The node of the agent at -address.");
const ENABLE: Flag<bool> = Flag::switch("enable", "Drain the node, or change how it is drained.");
const DISABLE: Flag<bool> = Flag::switch("disable", "Stop draining the node.");
const DEADLINE: Flag<Duration> =
    Flag::parsed("deadline", "DURATION", "a duration, like 30m", "How long to wait. Default: 1h.");
const FORCE: Flag<bool> = Flag::switch("force", "Stop everything at once.");
const NO_DEADLINE: Flag<bool> = Flag::switch("no-deadline", "Wait without a deadline.");
const IGNORE_SYSTEM: Flag<bool> = Flag::switch("ignore-system", "Do not stop system jobs.");
const KEEP_INELIGIBLE: Flag<bool> =
    Flag::switch("keep-ineligible", "With -disable: keep the node ineligible for new allocations.");
const MESSAGE: Flag<String> = Flag::value("m", "TEXT", "The reason, stored with the drain.");
const META: Flag<Vec<String>> =
    Flag::values("meta", "KEY=VALUE", "Metadata stored with the drain; may be given several times.");
const DETACH: Flag<bool> = Flag::switch("detach", "Return at once.");
const MONITOR: Flag<bool> = Flag::switch("monitor", "Only monitor a drain that is in progress.");

pub(super) static COMMAND: Command = Command {
    name: "node drain",
    aliases: &["node-drain"],
    arguments: "<node>",
    summary: "Drain a node, or stop draining it.",
    details: "A node that is drained gets no new allocations. Its allocations migrate as the migrate blocks of their groups \
        allow, batch jobs run to their end, system jobs are stopped last. What still runs at the deadline is stopped.",
    flags: &[
        &[
            &ENABLE,
            &DISABLE,
            &DEADLINE,
            &FORCE,
            &NO_DEADLINE,
            &IGNORE_SYSTEM,
            &KEEP_INELIGIBLE,
            &MESSAGE,
            &META,
            &DETACH,
            &MONITOR,
            &SELF,
            &YES,
            &VERBOSE,
        ],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(drain(call))),
};

async fn drain(call: Call) -> Outcome {
    let on = |flag| call.args.switch(flag);
    let (enable, disable) = (on(&ENABLE), on(&DISABLE));
    let watches = !enable && !disable && on(&MONITOR);
    if enable == disable && !watches {
        return Err(
            call.usage("Either the '-enable' or '-disable' flag must be set, unless using '-monitor'")
        );
    }
    let with_enable: FlagList = &[&DEADLINE, &FORCE, &NO_DEADLINE, &IGNORE_SYSTEM];
    if let Some(flag) = with_enable.iter().find(|flag| !enable && call.args.last(**flag).is_some()) {
        return Err(call.usage(&format!("The '-{}' flag needs '-enable'", flag.spec().name)));
    }
    if on(&KEEP_INELIGIBLE) && !disable {
        return Err(call.usage("The '-keep-ineligible' flag needs '-disable'"));
    }
    let (spec, meta) = (spec(&call)?, meta(&call)?);
    let (client, style) = (call.client()?, call.style());
    let question = if enable { "enable drain mode" } else { "disable drain mode" };
    let question = (!watches).then_some(question);
    let Some(id) = chosen(&call, &client, &style, question, "drain", "Canceling drain toggle").await? else {
        return Ok(0);
    };
    if watches {
        return drain_monitor::drain(&client, &style, &id).await;
    }
    let (spec, mark_eligible) = (enable.then_some(spec), disable && !on(&KEEP_INELIGIBLE));
    client.drain(&id, spec, mark_eligible, meta).await.doing("updating drain specification")?;
    if disable || on(&DETACH) {
        write_out(format!("Node \"{id}\" drain strategy {}\n", if enable { "set" } else { "unset" }));
        return Ok(0);
    }
    drain_monitor::begin(&style, &id);
    drain_monitor::drain(&client, &style, &id).await
}

/// The selected node; `None` if its id was shortened and the user did not confirm it.
pub(super) async fn chosen(
    call: &Call,
    client: &Client,
    style: &OutputStyle,
    question: Option<&str>,
    what: &str,
    canceled: &str,
) -> Result<Option<String>, Failure> {
    let given = call.optional_argument()?;
    let given = match (given, call.args.switch(&SELF)) {
        (None, true) => return own_node(client).await.map(Some),
        (Some(given), false) => given,
        _ => return Err(call.usage("This command takes one argument, <node>, or the '-self' flag")),
    };
    let node = resolve::node(client, style, given).await?.id;
    let asks = question.filter(|_| node != given && !call.args.switch(&YES));
    let agreed = asks.map_or(Ok(true), |question| {
        confirmed(&format!("Are you sure you want to {question} for node \"{node}\"?"), what, canceled)
    });
    Ok(agreed?.then_some(node))
}

fn spec(call: &Call) -> Result<DrainSpec, Failure> {
    let given: Option<Duration> = call.args.parsed(&DEADLINE)?;
    let (force, never) = (call.args.switch(&FORCE), call.args.switch(&NO_DEADLINE));
    if given.is_some() && (force || never) {
        return Err(call.usage("The '-deadline' flag excludes '-force' and '-no-deadline'"));
    }
    let deadline = match (given, force, never) {
        (_, true, true) => return Err(call.usage("The '-force' flag excludes '-no-deadline'")),
        (Some(given), ..) if given.0 <= 0 => {
            return Err(call.usage("A positive duration must be given as the '-deadline'"));
        }
        (Some(given), ..) => given,
        (None, true, false) => DEADLINE_AT_ONCE,
        (None, false, true) => Duration::ZERO,
        (None, false, false) => DEADLINE_DEFAULT,
    };
    Ok(DrainSpec { deadline: deadline.into(), ignore_system_jobs: call.args.switch(&IGNORE_SYSTEM) })
}

fn meta(call: &Call) -> Result<Map<String, String>, Failure> {
    let mut meta = Map::default();
    for given in call.args.values(&META) {
        let Some((key, value)) = given.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(call.usage(&format!("-meta {given:?}: expected KEY=VALUE")));
        };
        meta.insert(key.to_string(), value.to_string());
    }
    if let Some(message) = call.args.value(&MESSAGE) {
        meta.insert("message".to_string(), message.to_string());
    }
    Ok(meta)
}

use std::time::Instant;

use api::HistoryVerified;
use serde_json::json;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, JSON, Outcome, Run};
use crate::flags::Flag;
use crate::output::{bytes, json as printed, write_err, write_out};

const VERIFY: Flag<bool> =
    Flag::switch("verify", "Fold the whole log again and compare every state with what it says.");

pub(super) static COMMAND: Command = Command {
    name: "replay",
    aliases: &[],
    arguments: "",
    summary: "Fold the log of a server again and compare what comes out with what was published.",
    details: "Each batch carries the digest of the state that it was decided on; the state after the last one is compared with\n\
              the one that the server has. It begins with the oldest state that can be had, and takes a part of the log at a\n\
              time, so the server goes on working.",
    flags: &[&[&VERIFY, &JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    if !call.args.switch(&VERIFY) {
        return Err(call.usage("This command needs -verify"));
    }
    let client = call.client()?;
    let began = Instant::now();
    let first = client.verify_history(None).await.doing("verifying the log")?;
    let from = first.from;
    let (mut part, mut whole) = (first.clone(), first);
    while part.to < part.newest {
        write_err(format!("{} of {}", part.to, part.newest));
        part = client.verify_history(Some(part.to)).await.doing("verifying the log")?;
        whole = HistoryVerified {
            batches: whole.batches + part.batches,
            events: whole.events + part.events,
            bytes: whole.bytes + part.bytes,
            from,
            ..part.clone()
        };
    }
    let seconds = began.elapsed().as_secs_f64();
    if call.args.switch(&JSON) {
        write_out(printed(&json!({"Verified": whole, "Seconds": seconds})));
        return Ok(0);
    }
    let rate = whole.events as f64 / seconds.max(0.001);
    let HistoryVerified { to, batches, events, .. } = whole;
    write_out(format!(
        "The log leads from {from} to {to} as it did: {batches} batches, {events} events, {}; {rate:.0} events a second\n",
        bytes(whole.bytes)
    ));
    for (table, digest) in &whole.digests {
        write_out(format!("{table:<12} {digest}\n"));
    }
    Ok(0)
}

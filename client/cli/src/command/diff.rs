use serde_json::{Value, json};

use crate::call::{CLIENT_FLAGS, Call, Command, Failure, JSON, Outcome, Run, VERBOSE};
use crate::layout;
use crate::output::{json as printed, write_out};
use crate::past::difference::Change;
use crate::past::object::Kind;
use crate::past::{Moment, Object, allocations, difference};

pub(super) static COMMAND: Command = Command {
    name: "diff",
    aliases: &[],
    arguments: "<moment> [<moment>] [<object>]",
    summary: "Show what is different between two moments.",
    details: "A moment is an index, a time like 2026-01-02T15:04:05Z, a span like -15m, or now, which the second one is\n\
              unless given. An object is job/NAME, node/ID, alloc/ID, eval/ID, deployment/ID, var/PATH, namespace/NAME,\n\
              node-pool/NAME, acl-policy/NAME or scheduler; without one it is the whole cluster.\n\
              Example: diff -15m now job/web",
    flags: &[&[&JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let usage = "This command takes one or two moments, and an object";
    let (from, to, object) = match call.args.words.as_slice() {
        [from] => (from, "now", "cluster"),
        [from, second] if second.parse::<Object>().is_ok() => (from, "now", second.as_str()),
        [from, to] => (from, to.as_str(), "cluster"),
        [from, to, object] => (from, to.as_str(), object.as_str()),
        _ => return Err(call.usage(usage)),
    };
    let object: Object = object.parse().map_err(|why: String| call.usage(&why))?;
    let (from, to) = (Moment::find(&call, from).await?, Moment::find(&call, to).await?);
    let object = known(&call, object, &from, &to).await?;
    let (before, after) = (object.document(&from.client).await?, object.document(&to.client).await?);
    if before.is_none() && after.is_none() {
        return Err(anyhow::anyhow!("There was no {object} at {} and at {}", from.index, to.index).into());
    }
    let allocs = (object.allocations(&from.client).await?, object.allocations(&to.client).await?);
    let changes = changes(&object, before, after);
    let allocs = allocations::changes(&allocs.0, &allocs.1);
    if call.args.switch(&JSON) {
        write_out(printed(&json!({
            "Object": object.to_string(), "From": from.index.0, "To": to.index.0,
            "Changes": changes, "Allocations": allocs,
        })));
        return Ok(0);
    }
    write_out(format!("{object} from {} to {}\n", from.index, to.index));
    write_out(layout::past::changes(&call.style(), &changes, object.kind == Kind::Cluster));
    write_out(layout::past::allocations(&call.style(), &allocs));
    Ok(0)
}

/// Of an object that is new or gone that is the only change.
fn changes(object: &Object, before: Option<Value>, after: Option<Value>) -> Vec<Change> {
    match (&before, &after) {
        (Some(before), Some(after)) if object.kind == Kind::Cluster => {
            difference::entry_changes(before, after)
        }
        (Some(before), Some(after)) => difference::changes(before, after),
        _ => vec![Change { path: object.to_string(), from: before, to: after }],
    }
}

/// The object with its whole id, as one of the two moments knows it: the later one, if both do.
async fn known(call: &Call, object: Object, from: &Moment, to: &Moment) -> Result<Object, Failure> {
    let style = call.style();
    match object.clone().resolved(&to.client, &style).await {
        Ok(found) => Ok(found),
        Err(_) => object.resolved(&from.client, &style).await,
    }
}

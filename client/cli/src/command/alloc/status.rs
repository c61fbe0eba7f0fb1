use api::AllocResourceUsage;
use model::document::{Allocation, Map};
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, UI, VERBOSE};
use crate::flags::Flag;
use crate::output::{OutputStyle, write_err, write_out};
use crate::resolve::{self, Match};
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout};

const SHORT: Flag<bool> = Flag::switch("short", "Print only the states of the tasks.");
const STATS: Flag<bool> = Flag::switch("stats", "Print all resource statistics.");

pub(crate) static COMMAND: Command = Command {
    name: "alloc status",
    aliases: &["alloc-status"],
    arguments: "<allocation>",
    summary: "Show an allocation, its tasks and their events.",
    details: "With -json or -t the allocation may be left out: then all are printed.",
    flags: &[&[&SHORT, &STATS, &VERBOSE, &WATCH], OBJECT_FLAGS, &[&UI], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    if let Some(format) = format.as_ref().filter(|_| call.args.words.is_empty()) {
        return format.print(&client.allocations(Query::new()).await.doing("querying allocations")?.value);
    }
    let found = match resolve::allocations(&client, call.one_argument()?).await? {
        Match::One(found) => found,
        Match::Many(found) => {
            let table = layout::alloc::table(&style, &found);
            write_out(format!("Prefix matched multiple allocations\n\n{table}"));
            return Ok(0);
        }
    };
    let query = Query::new().namespace(&found.namespace);
    let alloc = client.allocation(&found.id, query).await.doing("querying allocation")?.value;
    if let Some(format) = format {
        return format.print(&alloc);
    }
    if call.args.switch(&SHORT) {
        write_out(layout::alloc::short(&style, &alloc));
    } else {
        write_out(full(&client, &style, &alloc, call.args.switch(&STATS)).await);
    }
    hint::show(call, &style, "this allocation", &format!("allocations/{}", alloc.id)).await;
    Ok(0)
}

async fn full(client: &Client, style: &OutputStyle, alloc: &Allocation, stats: bool) -> String {
    let usage = usage(client, alloc).await;
    let mut text = layout::alloc::block(style, alloc, rescheduled(client, alloc).await);
    text.push_str(&layout::alloc::addresses(style, alloc));
    if has_checks(alloc) {
        let query = Query::new().namespace(&alloc.namespace);
        let checks = client.allocation_checks(&alloc.id, query).await;
        // As with usage: the rest is printed without it.
        text.push_str(&layout::checks::table(style, &checks.unwrap_or(Map::default())));
    }
    text.push_str(&layout::task::sections(style, alloc, usage.as_ref(), stats));
    if style.verbose {
        text.push_str(&layout::alloc::placement(style, alloc));
    }
    text
}

/// When the allocation is rescheduled, if it waits for that. An evaluation that was garbage-collected is left out.
async fn rescheduled(client: &Client, alloc: &Allocation) -> Option<i64> {
    if !layout::alloc::awaits_rescheduling(alloc) {
        return None;
    }
    let query = Query::new().namespace(&alloc.namespace);
    let eval = client.evaluation(&alloc.followup_eval_id, query).await.ok()?;
    Some(eval.value.wait_until.time().0)
}

/// Whether the allocation has checks of services registered in the cluster itself.
fn has_checks(alloc: &Allocation) -> bool {
    let Some(group) = layout::alloc::group_of(alloc) else { return false };
    let services = group.services.iter().chain(group.tasks.iter().flat_map(|task| task.services.iter()));
    let mut own = services.filter(|service| service.provider == "nomad");
    alloc.client_status == "running" && own.any(|service| !service.checks.is_empty())
}

/// The resource usage of a running allocation. If the node does not answer, the rest is printed without it.
async fn usage(client: &Client, alloc: &Allocation) -> Option<AllocResourceUsage> {
    if alloc.client_status != "running" {
        return None;
    }
    match client.allocation_stats(&alloc.id).await {
        Ok(usage) => return Some(usage),
        Err(error) if error.status() == Some(404) && is_down(client, alloc).await => {
            write_err("Omitting resource statistics since the node is down.");
        }
        Err(error) => write_err(format!("Couldn't retrieve stats: {error}")),
    }
    None
}

async fn is_down(client: &Client, alloc: &Allocation) -> bool {
    let node = client.node(&alloc.node_id, Query::new()).await;
    node.is_ok_and(|node| node.value.status == "down")
}

use api::AllocResourceUsage;
use model::document::Allocation;
use sdk::{Client, Query};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run, VERBOSE_FLAGS};
use crate::flags::switch;
use crate::layout;
use crate::output::{Look, json, write_err, write_out};
use crate::resolve::{self, Match};

pub static COMMAND: Command = Command {
    name: "alloc status",
    aliases: &["alloc-status"],
    arguments: "<allocation>",
    summary: "Show an allocation, its tasks and what happened to them.",
    details: "",
    flags: &[
        &[switch("short", "Print only the states of the tasks.")],
        VERBOSE_FLAGS,
        OBJECT_FLAGS,
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let (client, look, as_json) = (call.client()?, call.look(), call.wants_json()?);
    if as_json && call.args.words.is_empty() {
        write_out(json(&client.allocations(Query::new()).await.doing("querying allocations")?.value));
        return Ok(0);
    }
    let found = match resolve::allocations(&client, call.one_argument()?).await? {
        Match::One(found) => found,
        Match::Many(found) => {
            let table = layout::alloc::table(&look, &found);
            write_out(format!("Prefix matched multiple allocations\n\n{table}"));
            return Ok(0);
        }
    };
    let query = Query::new().namespace(&found.namespace);
    let alloc = client.allocation(&found.id, query).await.doing("querying allocation")?.value;
    if as_json {
        write_out(json(&alloc));
    } else if call.args.switch("short") {
        write_out(layout::alloc::short(&look, &alloc));
    } else {
        write_out(full(&client, &look, &alloc).await);
    }
    Ok(0)
}

async fn full(client: &Client, look: &Look, alloc: &Allocation) -> String {
    let usage = usage(client, alloc).await;
    let mut text = layout::alloc::block(look, alloc);
    text.push_str(&layout::alloc::addresses(look, alloc));
    text.push_str(&layout::alloc::task_sections(look, alloc, usage.as_ref()));
    if look.verbose {
        text.push_str(&layout::alloc::placement(look, alloc));
    }
    text
}

/// What the allocation's node measures, while it runs. That the node does not answer is no reason not to show
/// the rest.
async fn usage(client: &Client, alloc: &Allocation) -> Option<AllocResourceUsage> {
    if alloc.client_status != "running" {
        return None;
    }
    match client.allocation_stats(&alloc.id).await {
        Ok(usage) => Some(usage),
        Err(error) => {
            write_err(format!("Couldn't retrieve stats: {error}"));
            None
        }
    }
}

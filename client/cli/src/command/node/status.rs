use api::{AllocResourceUsage, NodeListStub};
use futures_util::stream::{self, StreamExt};
use model::document::{Allocation, Node};
use sdk::{Client, Query};

use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, OUTPUT, Outcome, PAGE_FLAGS, Run, UI, VERBOSE,
};
use crate::flags::Flag;
use crate::layout::node::Columns;
use crate::object_format::ObjectFormat;
use crate::output::{OutputStyle, write_err, write_out};
use crate::watch::{self, WATCH, Waits};
use crate::{hint, layout, resolve};

const SHORT: Flag<bool> = Flag::switch("short", "Print only the node's basic data and its allocations.");
const OS: Flag<bool> = Flag::switch("os", "List operating systems too.");
const QUIET: Flag<bool> = Flag::switch("quiet", "List ids only.");
const ALLOCS: Flag<bool> = Flag::switch("allocs", "List counts of running allocations too.");
const SELF: Flag<bool> = Flag::switch("self", "Show the node of the agent at -address.");
const STATS: Flag<bool> = Flag::switch("stats", "Print all resource statistics.");

pub(crate) static COMMAND: Command = Command {
    name: "node status",
    aliases: &["node-status"],
    arguments: "[<node>]",
    summary: "List nodes, or show the resources and allocations of one.",
    details: "",
    flags: &[
        &[&SHORT, &OS, &QUIET, &ALLOCS, &SELF, &STATS],
        PAGE_FLAGS,
        &[&VERBOSE, &WATCH, &OUTPUT],
        OBJECT_FLAGS,
        &[&UI],
        CLIENT_FLAGS,
    ],
    run: Run::Task(|call| Box::pin(watch::run(call, Waits::ForChanges, run))),
};

async fn run(call: &Call) -> Outcome {
    let (client, style, format) = (call.client()?, call.style(), call.object_format()?);
    let given = call.optional_argument()?;
    if given.is_none() && !call.args.switch(&SELF) {
        return list(call, &client, &style, format).await;
    }
    let id = match given {
        Some(given) => resolve::node(&client, &style, given).await?.id,
        None => own_node(&client).await?,
    };
    let node = client.node(&id, Query::new()).await.doing("querying node info")?.value;
    if let Some(format) = format {
        return format.print(&node);
    }
    write_out(show(call, &client, &style, &node).await?);
    hint::show(call, &style, "this client", &format!("clients/{}", node.id)).await;
    Ok(0)
}

/// The node of the agent at -address.
pub(crate) async fn own_node(client: &Client) -> Result<String, Failure> {
    let stats = client.agent_self().await.doing("querying agent info")?.stats.0;
    let id = stats.get("client").and_then(|client| client.get("node_id")).cloned();
    Ok(id.ok_or_else(|| anyhow::anyhow!("the agent does not run a client"))?)
}

async fn list(call: &Call, client: &Client, style: &OutputStyle, format: Option<ObjectFormat>) -> Outcome {
    let quiet = call.args.switch(&QUIET);
    if quiet && (style.verbose || format.is_some()) {
        return Err(call.usage("-quiet cannot be used with -verbose, -json or -t"));
    }
    let query = call.page()?.flag("os", call.args.switch(&OS)).flag("resources", style.wide);
    let answer = client.nodes(query).await.doing("querying node status")?;
    let nodes = answer.value;
    if let Some(format) = format {
        return format.print(&nodes);
    }
    if quiet {
        write_out(nodes.iter().map(|node| format!("{}\n", style.id(&node.id))).collect::<String>());
        return Ok(0);
    }
    if nodes.is_empty() {
        write_out("No nodes registered\n");
        return Ok(0);
    }
    let running = if call.args.switch(&ALLOCS) { Some(running(client, &nodes).await?) } else { None };
    let columns = Columns { os: call.args.switch(&OS), running };
    let next = call.next_page(answer.next_token.as_deref());
    write_out(layout::node::table(style, &nodes, &columns) + &next);
    hint::show(call, style, "and manage Nomad clients", "clients").await;
    Ok(0)
}

/// Running allocations of each node.
async fn running(client: &Client, nodes: &[NodeListStub]) -> Result<Vec<usize>, Failure> {
    let asked = nodes.iter().map(|node| client.node_allocations(&node.id, Query::new()));
    let answers: Vec<_> = stream::iter(asked).buffered(ASKED_AT_ONCE).collect().await;
    let running =
        |allocs: &[Allocation]| allocs.iter().filter(|alloc| alloc.client_status == "running").count();
    let counts = answers.into_iter().map(|answer| Ok(running(&answer.doing("querying allocations")?.value)));
    counts.collect()
}

async fn show(call: &Call, client: &Client, style: &OutputStyle, node: &Node) -> Result<String, Failure> {
    let short = call.args.switch(&SHORT);
    let allocs =
        client.node_allocations(&node.id, Query::new()).await.doing("querying node allocations")?.value;
    let stubs: Vec<_> = allocs.iter().map(stub).collect();
    let list = layout::alloc::section(style, &stubs);
    if short {
        return Ok(layout::node::block(style, node, None, true) + &list);
    }
    let stats = if node.status == "ready" {
        let stats = client.node_stats(&node.id).await;
        stats.inspect_err(|error| write_err(format!("error fetching node stats: {error}"))).ok()
    } else {
        None
    };
    let mut text = layout::node::block(style, node, stats.as_ref(), false);
    if style.verbose {
        text.push_str(&layout::node::verbose_tables(style, node));
    }
    text.push_str(&layout::node::events(style, node));
    text.push_str(&layout::node::allocated(style, node, &allocs));
    if let Some(stats) = &stats {
        let used = measured(client, &allocs).await;
        text.push_str(&layout::usage::allocations(style, node, &used));
        text.push_str(&layout::usage::host(style, node, stats));
        text.push_str(&layout::devices::usage("Device Resource Utilization", &stats.device_stats));
        if call.args.switch(&STATS) {
            text.push_str(&layout::usage::details(style, stats));
        }
    }
    text.push_str(&list);
    if style.verbose {
        text.push_str(&layout::node::attributes(style, node));
    }
    Ok(text)
}

/// Allocations whose usage is asked for side by side.
const ASKED_AT_ONCE: usize = 16;

/// Resource usage of each running allocation. One that has ended since is left out.
async fn measured(client: &Client, allocs: &[Allocation]) -> Vec<AllocResourceUsage> {
    let running = allocs.iter().filter(|alloc| alloc.client_status == "running");
    let asked = running.map(|alloc| client.allocation_stats(&alloc.id));
    // In the order of the allocations, a bounded number at once.
    let answers: Vec<_> = stream::iter(asked).buffered(ASKED_AT_ONCE).collect().await;
    answers.into_iter().flatten().collect()
}

/// The list entry of an allocation.
fn stub(alloc: &Allocation) -> model::document::AllocationListStub {
    model::document::AllocationListStub {
        id: alloc.id.clone(),
        eval_id: alloc.eval_id.clone(),
        name: alloc.name.clone(),
        namespace: alloc.namespace.clone(),
        node_id: alloc.node_id.clone(),
        node_name: alloc.node_name.clone(),
        job_id: alloc.job_id.clone(),
        job_version: alloc.job.as_ref().and_then(|job| job.version).unwrap_or(0),
        task_group: alloc.task_group.clone(),
        desired_status: alloc.desired_status.clone(),
        client_status: alloc.client_status.clone(),
        create_index: alloc.create_index,
        modify_index: alloc.modify_index,
        create_time: alloc.create_time,
        modify_time: alloc.modify_time,
        ..Default::default()
    }
}

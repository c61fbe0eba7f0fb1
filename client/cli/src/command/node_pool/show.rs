use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, PAGE_FLAGS, Run, VERBOSE};
use crate::layout;
use crate::layout::node::Columns;
use crate::output::write_out;

pub(crate) static LIST: Command = Command {
    name: "node pool list",
    aliases: &[],
    arguments: "",
    summary: "List node pools.",
    details: "",
    flags: &[PAGE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub(crate) static INFO: Command = Command {
    name: "node pool info",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "Show a node pool.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub(crate) static NODES: Command = Command {
    name: "node pool nodes",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "List the nodes of a pool.",
    details: "",
    flags: &[PAGE_FLAGS, &[&VERBOSE], OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(nodes(call))),
};

pub(crate) static JOBS: Command = Command {
    name: "node pool jobs",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "List the jobs of a pool.",
    details: "",
    flags: &[PAGE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(jobs(call))),
};

async fn list(call: Call) -> Outcome {
    call.no_arguments()?;
    let format = call.object_format()?;
    let answer = call.client()?.node_pools(call.page()?).await.doing("querying node pools")?;
    if let Some(format) = format {
        return format.print(&answer.value);
    }
    write_out(layout::pool::table(&answer.value) + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let pool = call.client()?.node_pool(name).await.doing("querying node pool")?;
    if let Some(format) = format {
        return format.print(&pool);
    }
    write_out(layout::pool::block(&call.style(), &pool));
    Ok(0)
}

async fn nodes(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let answer = call.client()?.node_pool_nodes(name, call.page()?).await.doing("querying node pool")?;
    if let Some(format) = format {
        return format.print(&answer.value);
    }
    let text = match answer.value.as_slice() {
        [] => "No nodes\n".to_string(),
        nodes => layout::node::table(&call.style(), nodes, &Columns::default()),
    };
    write_out(text + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

async fn jobs(call: Call) -> Outcome {
    let (name, format) = (call.one_argument()?, call.object_format()?);
    let answer = call.client()?.node_pool_jobs(name, call.page()?).await.doing("querying node pool")?;
    if let Some(format) = format {
        return format.print(&answer.value);
    }
    let text = match answer.value.as_slice() {
        [] => "No jobs\n".to_string(),
        jobs => layout::job::table(&call.style(), jobs, call.namespace() == "*"),
    };
    write_out(text + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

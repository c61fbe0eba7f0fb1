use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::{Duration, Map, NodePool, NodePoolSchedulerConfiguration};

use crate::call::{
    CLIENT_FLAGS, Call, Command, Doing, Failure, OBJECT_FLAGS, Outcome, PAGE_FLAGS, Run, VERBOSE_FLAGS,
};
use crate::flags::{switch, value};
use crate::layout::node::Columns;
use crate::output::write_out;
use crate::{job_file, layout};

pub static LIST: Command = Command {
    name: "node pool list",
    aliases: &[],
    arguments: "",
    summary: "List node pools.",
    details: "",
    flags: &[PAGE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(list(call))),
};

pub static INFO: Command = Command {
    name: "node pool info",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "Show a node pool.",
    details: "",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(info(call))),
};

pub static APPLY: Command = Command {
    name: "node pool apply",
    aliases: &[],
    arguments: "<input>",
    summary: "Make a node pool, or change it.",
    details: "The input is a file with a node_pool block, or - for standard input.",
    flags: &[&[switch("json", "The file is JSON: a node pool as the API takes it.")], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

pub static INIT: Command = Command {
    name: "node pool init",
    aliases: &[],
    arguments: "[<filename>]",
    summary: "Write an example of a node pool's file.",
    details: "",
    flags: &[&[
        value("out", "FORM", "hcl, or json; hcl unless told."),
        switch("quiet", "Do not say what was written."),
    ]],
    run: Run::Process(init),
};

pub static DELETE: Command = Command {
    name: "node pool delete",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "Delete a node pool without nodes and jobs.",
    details: "",
    flags: &[CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(delete(call))),
};

pub static NODES: Command = Command {
    name: "node pool nodes",
    aliases: &[],
    arguments: "<node-pool>",
    summary: "List the nodes of a pool.",
    details: "",
    flags: &[PAGE_FLAGS, VERBOSE_FLAGS, OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(nodes(call))),
};

pub static JOBS: Command = Command {
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
    let objects = call.objects()?;
    let answer = call.client()?.node_pools(call.page()?).await.doing("querying node pools")?;
    if let Some(objects) = objects {
        return objects.print(&answer.value);
    }
    write_out(layout::pool::table(&answer.value) + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

async fn info(call: Call) -> Outcome {
    let (name, objects) = (call.one_argument()?, call.objects()?);
    let pool = call.client()?.node_pool(name).await.doing("querying node pool")?;
    if let Some(objects) = objects {
        return objects.print(&pool);
    }
    write_out(layout::pool::block(&call.look(), &pool));
    Ok(0)
}

async fn apply(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let source = job_file::read_source(path)?;
    let pool = if call.args.switch("json") {
        model::document::input::from_slice(source.text.as_bytes())
            .map_err(|wrong| anyhow::anyhow!("the node pool's file is not valid: {wrong}"))?
    } else {
        pool_in(&source)?
    };
    call.client()?.apply_node_pool(&pool).await.doing("applying node pool")?;
    write_out(format!("Successfully applied node pool \"{}\"!\n", pool.name));
    Ok(0)
}

const EXAMPLE_HCL: &str = include_str!("../examples/pool.nomad.hcl");
const EXAMPLE_JSON: &str = include_str!("../examples/pool.nomad.json");

fn init(call: Call) -> Outcome {
    let (text, usual) = match call.args.value("out").unwrap_or("hcl") {
        "hcl" => (EXAMPLE_HCL, "pool.nomad.hcl"),
        "json" => (EXAMPLE_JSON, "pool.nomad.json"),
        other => return Err(call.usage(&format!("-out is hcl or json, not \"{other}\""))),
    };
    let path = call.optional_argument()?.unwrap_or(usual);
    write_new(path, text)?;
    if !call.args.switch("quiet") {
        write_out(format!("Example node pool specification written to {path}\n"));
    }
    Ok(0)
}

/// Writes a file that is not there yet.
///
/// # Errors
/// When it is there, or cannot be written.
pub fn write_new(path: &str, text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => anyhow::anyhow!("{path} is there already: name another file"),
        _ => anyhow::anyhow!("{path} cannot be written: {error}"),
    })?;
    Ok(())
}

async fn delete(call: Call) -> Outcome {
    let name = call.one_argument()?;
    call.client()?.delete_node_pool(name).await.doing("deleting node pool")?;
    write_out(format!("Successfully deleted node pool \"{name}\"!\n"));
    Ok(0)
}

async fn nodes(call: Call) -> Outcome {
    let (name, objects) = (call.one_argument()?, call.objects()?);
    let answer = call.client()?.node_pool_nodes(name, call.page()?).await.doing("querying node pool")?;
    if let Some(objects) = objects {
        return objects.print(&answer.value);
    }
    let text = match answer.value.as_slice() {
        [] => "No nodes\n".to_string(),
        nodes => layout::node::table(&call.look(), nodes, &Columns::default()),
    };
    write_out(text + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

async fn jobs(call: Call) -> Outcome {
    let (name, objects) = (call.one_argument()?, call.objects()?);
    let answer = call.client()?.node_pool_jobs(name, call.page()?).await.doing("querying node pool")?;
    if let Some(objects) = objects {
        return objects.print(&answer.value);
    }
    let text = match answer.value.as_slice() {
        [] => "No jobs\n".to_string(),
        jobs => layout::job::table(&call.look(), jobs, call.namespace() == "*"),
    };
    write_out(text + &call.next_page(answer.next_token.as_deref()));
    Ok(0)
}

fn pool_in(source: &Source) -> Result<NodePool, Failure> {
    let read = read(source);
    let read = read.map_err(|wrong| anyhow::anyhow!("the node pool's file is not valid\n\n{wrong}"))?;
    let [pool] = <[NodePool; 1]>::try_from(read)
        .map_err(|_| anyhow::anyhow!("{}: expected exactly one node_pool block", source.name))?;
    Ok(pool)
}

fn read(source: &Source) -> Result<Vec<NodePool>, Diagnostics> {
    let mut top = Section::parse(source)?;
    let pools = top.sections("node_pool")?.into_iter().map(block).collect::<Result<_, _>>()?;
    top.finish()?;
    Ok(pools)
}

fn block(mut section: Section) -> Result<NodePool, Diagnostics> {
    let mut pool = NodePool {
        name: section.labels.first().cloned().unwrap_or_default(),
        description: section.take("description")?.unwrap_or_default(),
        meta: section.take::<Map<String, String>>("meta")?.unwrap_or_default(),
        node_identity_ttl: section.take::<Duration>("node_identity_ttl")?.unwrap_or_default(),
        ..NodePool::default()
    };
    for mut rules in section.sections("scheduler_config")? {
        pool.scheduler_configuration = Some(NodePoolSchedulerConfiguration {
            scheduler_algorithm: rules.take("scheduler_algorithm")?.unwrap_or_default(),
            memory_oversubscription_enabled: rules.take("memory_oversubscription_enabled")?,
        });
        rules.finish()?;
    }
    section.finish()?;
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_read_from_its_block() {
        let text = "node_pool \"gpu\" {\n  description = \"Big ones\"\n  meta {\n    team = \"ml\"\n  }\n  \
            scheduler_config {\n    scheduler_algorithm = \"spread\"\n  }\n}\n";
        let pool = pool_in(&Source::new("gpu.hcl", text.to_string())).unwrap();
        assert_eq!((pool.name.as_str(), pool.description.as_str()), ("gpu", "Big ones"));
        assert_eq!(pool.meta.get("team").map(String::as_str), Some("ml"));
        assert_eq!(pool.scheduler_configuration.unwrap().scheduler_algorithm, "spread");
        for wrong in ["", "node_pool \"a\" {}\nnode_pool \"b\" {}\n", "node_pool \"a\" { color = \"red\" }\n"]
        {
            assert!(pool_in(&Source::new("gpu.hcl", wrong.to_string())).is_err(), "{wrong}");
        }
    }
}

use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::{Duration, Map, NodePool, NodePoolSchedulerConfiguration};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::job_file;
use crate::output::write_out;

const JSON: Flag<bool> = Flag::switch("json", "The file is JSON: a node pool as the API takes it.");

pub(super) static COMMAND: Command = Command {
    name: "node pool apply",
    aliases: &[],
    arguments: "<input>",
    summary: "Create or change a node pool.",
    details: "The input is a file with a node_pool block, or - for standard input.",
    flags: &[&[&JSON], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

async fn apply(call: Call) -> Outcome {
    let path = call.one_argument()?;
    let source = job_file::read_source(path)?;
    let pool = if call.args.switch(&JSON) {
        model::document::input::from_slice(source.text.as_bytes())
            .map_err(|wrong| anyhow::anyhow!("the node pool's file is not valid: {wrong}"))?
    } else {
        pool_in(&source)?
    };
    call.client()?.apply_node_pool(&pool).await.doing("applying node pool")?;
    write_out(format!("Successfully applied node pool \"{}\"!\n", pool.name));
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

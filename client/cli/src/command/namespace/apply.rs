use api::{
    Namespace, NamespaceCapabilities, NamespaceConsulConfiguration, NamespaceNodePoolConfiguration,
    NamespaceVaultConfiguration,
};
use jobspec::config::Section;
use jobspec::{Diagnostics, Source};
use model::document::Map;
use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::job_file;
use crate::output::write_out;

const JSON: Flag<bool> = Flag::switch("json", "The file is JSON: a namespace as the API takes it.");
const DESCRIPTION: Flag<String> = Flag::value("description", "TEXT", "A description of the namespace.");
const QUOTA: Flag<String> = Flag::value("quota", "NAME", "Nomad Enterprise only.");

pub(super) static COMMAND: Command = Command {
    name: "namespace apply",
    aliases: &[],
    arguments: "<name> or <file>",
    summary: "Create or change a namespace.",
    details: "The argument is its name, a file that describes it, or - for standard input. With a name, only the\n\
              fields given by flags change.",
    flags: &[&[&JSON, &DESCRIPTION, &QUOTA], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(apply(call))),
};

async fn apply(call: Call) -> Outcome {
    let given = call.one_argument()?;
    let client = call.client()?;
    let is_file = given == "-" || call.args.switch(&JSON) || std::path::Path::new(given).is_file();
    let mut namespace = if is_file { in_file(&call, given)? } else { named(&client, given).await? };
    if let Some(description) = call.args.value(&DESCRIPTION) {
        namespace.description = description.to_string();
    }
    if let Some(quota) = call.args.value(&QUOTA) {
        namespace.quota = quota.to_string();
    }
    client.apply_namespace(&namespace).await.doing("applying namespace")?;
    write_out(format!("Successfully applied namespace \"{}\"!\n", namespace.name));
    Ok(0)
}

/// The namespace as it is, or a new one.
async fn named(client: &Client, name: &str) -> Result<Namespace, Failure> {
    match client.namespace_named(name).await {
        Err(error) if error.status() == Some(404) => {
            Ok(Namespace { name: name.to_string(), ..Namespace::default() })
        }
        found => found.doing("looking up namespace"),
    }
}

fn in_file(call: &Call, path: &str) -> Result<Namespace, Failure> {
    let source = job_file::read_source(path)?;
    let namespace = if call.args.switch(&JSON) {
        model::document::input::from_slice(source.text.as_bytes())
            .map_err(|wrong| anyhow::anyhow!("the namespace's file is not valid: {wrong}"))?
    } else {
        read(&source).map_err(|wrong| anyhow::anyhow!("the namespace's file is not valid\n\n{wrong}"))?
    };
    if namespace.name.is_empty() {
        return Err(anyhow::anyhow!("{}: expected the name of the namespace", source.name).into());
    }
    Ok(namespace)
}

fn read(source: &Source) -> Result<Namespace, Diagnostics> {
    let mut top = Section::parse(source)?;
    let mut namespace = Namespace {
        name: top.take("name")?.unwrap_or_default(),
        description: top.take("description")?.unwrap_or_default(),
        quota: top.take("quota")?.unwrap_or_default(),
        meta: top.take::<Map<String, String>>("meta")?.unwrap_or_default(),
        ..Namespace::default()
    };
    for mut part in top.sections("capabilities")? {
        namespace.capabilities = Some(NamespaceCapabilities {
            enabled_task_drivers: part.take("enabled_task_drivers")?.unwrap_or_default(),
            disabled_task_drivers: part.take("disabled_task_drivers")?.unwrap_or_default(),
            enabled_network_modes: part.take("enabled_network_modes")?.unwrap_or_default(),
            disabled_network_modes: part.take("disabled_network_modes")?.unwrap_or_default(),
        });
        part.finish()?;
    }
    for part in top.sections("node_pool_config")? {
        let (default, allowed, denied) = choice(part)?;
        namespace.node_pool_configuration = Some(NamespaceNodePoolConfiguration { default, allowed, denied });
    }
    for part in top.sections("vault")? {
        let (default, allowed, denied) = choice(part)?;
        namespace.vault_configuration = Some(NamespaceVaultConfiguration { default, allowed, denied });
    }
    for part in top.sections("consul")? {
        let (default, allowed, denied) = choice(part)?;
        namespace.consul_configuration = Some(NamespaceConsulConfiguration { default, allowed, denied });
    }
    top.finish()?;
    Ok(namespace)
}

type Names = model::document::List<String>;

/// A default, the allowed names and the denied names.
fn choice(mut section: Section) -> Result<(String, Names, Names), Diagnostics> {
    let default = section.take("default")?.unwrap_or_default();
    let (allowed, denied) = (section.take("allowed")?, section.take("denied")?);
    section.finish()?;
    Ok((default, allowed.unwrap_or_default(), denied.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_read_from_its_file() {
        let text = "name = \"ops\"\ndescription = \"Ours\"\nmeta {\n  team = \"sre\"\n}\n\
            capabilities {\n  enabled_task_drivers = [\"docker\"]\n}\n\
            node_pool_config {\n  default = \"gpu\"\n  allowed = [\"gpu\", \"default\"]\n}\n";
        let namespace = read(&Source::new("ops.hcl", text.to_string())).unwrap();
        assert_eq!((namespace.name.as_str(), namespace.description.as_str()), ("ops", "Ours"));
        assert_eq!(namespace.meta.get("team").map(String::as_str), Some("sre"));
        assert_eq!(namespace.capabilities.unwrap().enabled_task_drivers.0, ["docker"]);
        let pools = namespace.node_pool_configuration.unwrap();
        assert_eq!((pools.default.as_str(), pools.allowed.len()), ("gpu", 2));
        assert!(read(&Source::new("ops.hcl", "color = \"red\"\n".to_string())).is_err());
    }
}

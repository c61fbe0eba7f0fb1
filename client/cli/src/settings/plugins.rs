//! The `plugin` blocks: each driver declares its keys.

use std::collections::BTreeMap;

use base::Duration;
use jobspec::Diagnostics;
use jobspec::config::Section;
use node::driver::registry::PluginConfigs;
use node::driver::{Field, ValueType};
use node::drivers::{BUILTIN, builtin};
use node::log_shipping::sink::SinkAddress;
use node::settings::{DeniedUsers, NameFilter};
use serde_json::Value;

use super::AgentSettings;
use super::unsupported::Refused;
use super::value::{ConfigValue, set_option};

/// Drivers that are a program of their own in Nomad are configured by the name of its file. If that file is there, it is
/// that program which is meant.
const OTHER_NAMES: [(&str, &str); 1] = [("nomad-driver-podman", "podman")];

/// The plugin configuration of a development agent.
pub(super) fn of_dev() -> PluginConfigs {
    let config =
        |pairs: &[(&str, bool)]| pairs.iter().map(|(key, on)| (key.to_string(), Value::from(*on))).collect();
    BUILTIN.iter().map(|driver| (driver.name.to_string(), config(driver.dev_config))).collect()
}

/// Reads a `plugin` block. The name is a label, or in JSON the one key of an object.
///
/// # Errors
/// An unknown key or a value of a wrong type, with its position.
pub(super) fn read(
    settings: &mut AgentSettings,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    if let Some(name) = section.labels.first().cloned() {
        return plugin(settings, &name, section, refused);
    }
    for name in section.names() {
        for inner in section.sections(&name)? {
            plugin(settings, &name, inner, refused)?;
        }
    }
    section.finish()
}

fn plugin(
    settings: &mut AgentSettings,
    name: &str,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    let known = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name);
    let is_file = || settings.plugin_dir().is_some_and(|directory| directory.join(name).is_file());
    let driver = match builtin(known) {
        Some(driver) if known == name || !is_file() => driver,
        _ => return external(settings, name, section),
    };
    let block = settings.plugins.entry(known.to_string()).or_default();
    for mut config in section.sections("config")? {
        for field in driver.plugin_schema.fields() {
            if let Some(value) = value(&mut config, field, refused)? {
                block.insert(field.key.to_string(), value);
            }
        }
        config.finish()?;
    }
    section.finish()
}

/// The block of a program of its own: the plugin checks its `config` when the agent has launched it. Later blocks override.
fn external(settings: &mut AgentSettings, name: &str, mut section: Section) -> Result<(), Diagnostics> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return Err(section.wrong(format!("\"{name}\": expected the name of a file in plugin_dir")));
    }
    let plugin = settings.external_plugins.entry(name.to_string()).or_default();
    if let Some(args) = section.take("args")? {
        plugin.args = args;
    }
    for mut config in section.sections("config")? {
        for key in config.names() {
            if let Some(value) = config.take::<Value>(&key)? {
                plugin.config.insert(key, value);
            }
        }
        config.finish()?;
    }
    section.finish()
}

fn one<T: ConfigValue + Into<Value>>(config: &mut Section, key: &str) -> Result<Option<Value>, Diagnostics> {
    let mut value: Option<T> = None;
    set_option(config, key, &mut value)?;
    Ok(value.map(Into::into))
}

fn value(config: &mut Section, field: &Field, refused: &mut Refused) -> Result<Option<Value>, Diagnostics> {
    match field.value {
        ValueType::Text => one::<String>(config, field.key),
        ValueType::Boolean => one::<bool>(config, field.key),
        ValueType::Number => one::<u64>(config, field.key),
        ValueType::Duration => {
            let mut value: Option<Duration> = None;
            set_option(config, field.key, &mut value)?;
            Ok(value.map(|span| Value::from(span.0)))
        }
        ValueType::TextList => Ok(config.take::<Vec<String>>(field.key)?.map(Value::from)),
        ValueType::Block(_) | ValueType::Blocks(_) | ValueType::TextMap | ValueType::TextOrList => {
            config.take(field.key)
        }
        ValueType::Unsupported(why) => {
            refused.key(config, field.key, "", why);
            Ok(None)
        }
    }
}

/// The lists of names in `client.options`: which drivers the node has, and what of the host it looks at.
pub(super) fn read_filters(options: &BTreeMap<String, String>) -> (NameFilter, NameFilter) {
    let names = |option: &str| {
        let names = options.get(option).into_iter().flat_map(|text| text.split(','));
        names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_string).collect()
    };
    let [drivers, fingerprints] = FILTERS;
    let filter = |[allowed, denied]: [&str; 2]| NameFilter { allowed: names(allowed), denied: names(denied) };
    (filter(drivers), filter(fingerprints))
}

const FILTERS: [[&str; 2]; 2] =
    [["driver.allowlist", "driver.denylist"], ["fingerprint.allowlist", "fingerprint.denylist"]];

/// Who may not run tasks, and the drivers for which that is so.
pub(super) fn denied_users(options: &BTreeMap<String, String>) -> DeniedUsers {
    let usual = DeniedUsers::default();
    let names = |option: &str, usual| match options.get(option) {
        None => usual,
        Some(text) => {
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_string).collect()
        }
    };
    let [users, drivers] = DENIED_USERS;
    DeniedUsers { names: names(users, usual.names), drivers: names(drivers, usual.drivers) }
}

const DENIED_USERS: [&str; 2] = ["user.denylist", "user.checked_drivers"];

/// Where output of tasks may be sent to, by name.
///
/// # Errors
/// Names the option, and what was expected.
pub(super) fn log_sinks(options: &BTreeMap<String, String>) -> Result<BTreeMap<String, SinkAddress>, String> {
    let named = options.iter().filter_map(|(option, value)| Some((option.strip_prefix(LOG_SINK)?, value)));
    named
        .map(|(name, value)| {
            let address = SinkAddress::parse(value).map_err(|why| format!("\"{LOG_SINK}{name}\" = {why}"))?;
            Ok((name.to_string(), address))
        })
        .collect()
}

const LOG_SINK: &str = "log_sink.";

/// Applies the older spelling of driver settings, `client.options`; returns notes about those without effect.
pub(super) fn read_options(plugins: &mut PluginConfigs, options: &BTreeMap<String, String>) -> Vec<String> {
    let mut notes = Vec::new();
    for (option, value) in options {
        let own =
            FILTERS.as_flattened().contains(&option.as_str()) || DENIED_USERS.contains(&option.as_str());
        if own || option.starts_with(LOG_SINK) {
            continue;
        }
        let legacy =
            BUILTIN.iter().flat_map(|driver| driver.legacy_options.iter().map(|entry| (driver.name, entry)));
        match legacy.into_iter().find(|(_, (name, _))| name == option) {
            Some((driver, (_, key))) => {
                let on = api::go_bool(value).unwrap_or(false);
                plugins.entry(driver.to_string()).or_default().insert(key.to_string(), Value::from(on));
            }
            None => notes.push(format!("client.options: \"{option}\" has no effect")),
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_spelling_sets_the_same_key() {
        let mut plugins = PluginConfigs::new();
        let options = [("driver.raw_exec.enable", "1"), ("docker.volumes", "1")];
        let options = options.map(|(key, value)| (key.to_string(), value.to_string())).into();
        let notes = read_options(&mut plugins, &options);
        assert_eq!(plugins["raw_exec"]["enabled"], true);
        assert_eq!(notes, ["client.options: \"docker.volumes\" has no effect"]);
    }

    #[test]
    fn sinks_of_output_are_named_by_the_options() {
        let options = |address: &str| BTreeMap::from([("log_sink.here".to_string(), address.to_string())]);
        let sinks = log_sinks(&options("file:/var/log/tasks")).unwrap();
        assert_eq!(sinks["here"], SinkAddress::File("/var/log/tasks".into()));
        assert!(read_options(&mut PluginConfigs::new(), &options("file:/x")).is_empty(), "it has an effect");
        let wrong = log_sinks(&options("nowhere")).unwrap_err();
        assert!(wrong.starts_with("\"log_sink.here\" = \"nowhere\": expected file:/PATH"), "{wrong}");
    }

    #[test]
    fn users_are_denied_as_the_options_say() {
        let denied = |options: &[(&str, &str)]| {
            let options: BTreeMap<_, _> =
                options.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
            assert!(read_options(&mut PluginConfigs::new(), &options).is_empty(), "they have an effect");
            denied_users(&options)
        };
        assert_eq!(denied(&[]), DeniedUsers::default());
        let given = denied(&[("user.denylist", "web, db"), ("user.checked_drivers", "raw_exec")]);
        assert!(given.names.contains("db") && !given.names.contains("root"));
        assert!(given.drivers.contains("raw_exec") && !given.drivers.contains("exec"));
        assert!(denied(&[("user.denylist", "")]).names.is_empty());
    }

    #[test]
    fn lists_of_names_filter_drivers_and_fingerprints() {
        let options =
            [("driver.allowlist", "raw_exec, mock_driver"), ("fingerprint.denylist", "cpu,,storage")];
        let options: BTreeMap<_, _> = options.map(|(key, value)| (key.to_string(), value.to_string())).into();
        let (drivers, fingerprints) = read_filters(&options);
        let allowed = |filter: &NameFilter, names: &[&str]| names.iter().all(|name| filter.allows(name));
        assert!(allowed(&drivers, &["raw_exec", "mock_driver"]) && !drivers.allows("exec"));
        assert!(
            allowed(&fingerprints, &["host", ""])
                && !fingerprints.allows("cpu")
                && !fingerprints.allows("storage")
        );
        assert!(read_options(&mut PluginConfigs::new(), &options).is_empty(), "they have an effect");
    }

    #[test]
    fn a_block_is_read_by_the_schema_of_its_driver_and_later_ones_override() {
        let dir = tempfile::tempdir().unwrap();
        let read_all = |text: &str| -> Result<AgentSettings, String> {
            let source = jobspec::Source::new("a.hcl".to_string(), text.to_string());
            let mut settings = AgentSettings::defaults();
            settings.plugin_dir = Some(dir.path().to_path_buf());
            let mut top = Section::parse(&source).map_err(|wrong| wrong.to_string())?;
            for section in top.sections("plugin").map_err(|wrong| wrong.to_string())? {
                read(&mut settings, section, &mut Refused::default()).map_err(|wrong| wrong.to_string())?;
            }
            Ok(settings)
        };
        let block = |config: &str| format!("plugin \"raw_exec\" {{\n config {{\n{config}\n }}\n}}\n");
        let first = block("denied_envvars = [\"A*\"]\n denied_host_uids = \"0-9\"");
        let plugins = read_all(&(first + &block("denied_envvars = []\n enabled = \"1\""))).unwrap();
        let config: BTreeMap<String, Value> = serde_json::from_value(serde_json::json!({
            "enabled": true, "denied_envvars": [], "denied_host_uids": "0-9"
        }))
        .unwrap();
        assert_eq!(plugins.plugins["raw_exec"], config);
        let podman = "plugin \"nomad-driver-podman\" {\n config {\n socket_path = \"unix:///p\"\n }\n}\n";
        let file = read_all(podman).unwrap();
        assert_eq!(file.plugins["podman"]["socket_path"], "unix:///p");
        assert!(file.external_plugins.is_empty());
        std::fs::write(dir.path().join("nomad-driver-podman"), "").unwrap();
        let file = read_all(podman).unwrap();
        assert_eq!(file.external_plugins["nomad-driver-podman"].config["socket_path"], "unix:///p");
        assert!(file.plugins.is_empty());
        let lxc = "plugin \"lxc\" {\n args = [\"-v\"]\n config {\n a = 1\n b {\n c = true\n }\n }\n}\n\
                   plugin \"lxc\" {\n config {\n a = 2\n }\n}\n";
        let lxc = &read_all(lxc).unwrap().external_plugins["lxc"];
        assert_eq!((lxc.args.as_slice(), &lxc.config["a"]), (&["-v".to_string()][..], &Value::from(2)));
        assert!(lxc.config["b"].to_string().contains("\"c\":true"), "{:?}", lxc.config);
        let wrong = read_all("plugin \"../lxc\" {}").unwrap_err();
        assert!(wrong.contains("\"../lxc\": expected the name of a file in plugin_dir"), "{wrong}");
        let misspelt = read_all(&block("enabeld = true")).unwrap_err();
        assert!(misspelt.contains("unexpected key \"enabeld\""), "{misspelt}");
    }

    #[test]
    fn blocks_within_a_block_are_read() {
        let read_one = |config: &str| -> Result<PluginConfigs, String> {
            let text = format!("plugin \"docker\" {{\n config {{\n{config}\n }}\n}}\n");
            let source = jobspec::Source::new("a.hcl".to_string(), text);
            let (mut settings, mut refused) = (AgentSettings::defaults(), Refused::default());
            let mut top = Section::parse(&source).map_err(|wrong| wrong.to_string())?;
            for section in top.sections("plugin").map_err(|wrong| wrong.to_string())? {
                read(&mut settings, section, &mut refused).map_err(|wrong| wrong.to_string())?;
            }
            if let Some(wrong) = refused.finish().first() {
                return Err(wrong.to_string());
            }
            let plugins = settings.plugins;
            let block = plugins["docker"].clone();
            let schema = builtin("docker").unwrap().plugin_schema;
            node::driver::Values::read("docker", schema, block).map(|_| plugins)
        };
        let config = "gc {\n image_delay = \"1m\"\n dangling_containers {\n enabled = false\n }\n }\n\
                      logging {\n type = \"json-file\"\n config {\n max-size = \"1m\"\n }\n }\n\
                      nvidia_runtime = \"nvidia\"\n infra_image = \"\"\n auth {}\n extra_labels = [\"*\"]";
        read_one(config).unwrap();
        let wrong = read_one("gc {\n imge = true\n }").unwrap_err();
        assert!(wrong.contains("\"imge\""), "{wrong}");
        let wrong = read_one("tls {\n ca = \"x\"\n }").unwrap_err();
        assert!(wrong.contains("\"tls\": not supported: "), "{wrong}");
    }

    #[test]
    fn a_development_agent_has_both_drivers() {
        let plugins = of_dev();
        assert!(plugins["raw_exec"]["enabled"] == true && plugins["mock_driver"]["enabled"] == true);
    }
}

//! The `plugin` blocks: each driver declares its keys.

use std::collections::BTreeMap;

use base::Duration;
use jobspec::Diagnostics;
use jobspec::config::Section;
use node::driver::registry::PluginConfigs;
use node::driver::{Field, ValueType};
use node::drivers::{BUILTIN, builtin};
use node::settings::{DeniedUsers, NameFilter};
use serde_json::Value;

use super::unsupported::Refused;
use super::value::{ConfigValue, set_option};

/// Drivers of Nomad's that are not built, with the keys of their configuration and what these are by default.
const NOT_BUILT: [(&str, &[(&str, &str)]); 1] = [("qemu", &QEMU)];

/// What keys without effect are in Nomad unless they are set: that may stand in the file.
const DEFAULTS: [(&str, &str); 1] = [("nvidia_runtime", "nvidia")];

const QEMU: [(&str, &str); 3] = [("args_allowlist", ""), ("emulators_allowlist", ""), ("image_paths", "")];

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
    plugins: &mut PluginConfigs,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    if let Some(name) = section.labels.first().cloned() {
        return plugin(plugins, &name, section, refused);
    }
    for name in section.names() {
        for inner in section.sections(&name)? {
            plugin(plugins, &name, inner, refused)?;
        }
    }
    section.finish()
}

fn plugin(
    plugins: &mut PluginConfigs,
    name: &str,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    let Some(driver) = builtin(name) else {
        return not_built(name, section, refused);
    };
    let block = plugins.entry(name.to_string()).or_default();
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

/// A driver of Nomad's that this build does not have: its block may stand in the file as long as it asks for nothing.
fn not_built(name: &str, mut section: Section, refused: &mut Refused) -> Result<(), Diagnostics> {
    let Some((_, keys)) = NOT_BUILT.iter().find(|(driver, _)| *driver == name) else {
        return Err(section.wrong(format!("the driver \"{name}\" is not part of this build yet")));
    };
    for mut config in section.sections("config")? {
        refused.keys(&mut config, keys);
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
        ValueType::Block(_) | ValueType::Blocks(_) | ValueType::TextMap => config.take(field.key),
        ValueType::Unsupported(_) => {
            let default = DEFAULTS.iter().find(|(key, _)| *key == field.key);
            refused.keys(config, &[*default.unwrap_or(&(field.key, ""))]);
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

/// Applies the older spelling of driver settings, `client.options`; returns notes about those without effect.
pub(super) fn read_options(plugins: &mut PluginConfigs, options: &BTreeMap<String, String>) -> Vec<String> {
    let mut notes = Vec::new();
    for (option, value) in options {
        if FILTERS.as_flattened().contains(&option.as_str()) || DENIED_USERS.contains(&option.as_str()) {
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
        let read_all = |text: &str| -> Result<PluginConfigs, String> {
            let source = jobspec::Source::new("a.hcl".to_string(), text.to_string());
            let mut plugins = PluginConfigs::new();
            let mut top = Section::parse(&source).map_err(|wrong| wrong.to_string())?;
            for section in top.sections("plugin").map_err(|wrong| wrong.to_string())? {
                read(&mut plugins, section, &mut Refused::default()).map_err(|wrong| wrong.to_string())?;
            }
            Ok(plugins)
        };
        let block = |config: &str| format!("plugin \"raw_exec\" {{\n config {{\n{config}\n }}\n}}\n");
        let first = block("denied_envvars = [\"A*\"]\n denied_host_uids = \"0-9\"");
        let plugins = read_all(&(first + &block("denied_envvars = []\n enabled = \"1\""))).unwrap();
        let config: BTreeMap<String, Value> = serde_json::from_value(serde_json::json!({
            "enabled": true, "denied_envvars": [], "denied_host_uids": "0-9"
        }))
        .unwrap();
        assert_eq!(plugins["raw_exec"], config);
        let unknown = read_all("plugin \"podman\" {}").unwrap_err();
        assert!(unknown.contains("the driver \"podman\" is not part of this build yet"), "{unknown}");
        let misspelt = read_all(&block("enabeld = true")).unwrap_err();
        assert!(misspelt.contains("unexpected key \"enabeld\""), "{misspelt}");
    }

    #[test]
    fn blocks_within_a_block_are_read() {
        let read_one = |config: &str| -> Result<PluginConfigs, String> {
            let text = format!("plugin \"docker\" {{\n config {{\n{config}\n }}\n}}\n");
            let source = jobspec::Source::new("a.hcl".to_string(), text);
            let (mut plugins, mut refused) = (PluginConfigs::new(), Refused::default());
            let mut top = Section::parse(&source).map_err(|wrong| wrong.to_string())?;
            for section in top.sections("plugin").map_err(|wrong| wrong.to_string())? {
                read(&mut plugins, section, &mut refused).map_err(|wrong| wrong.to_string())?;
            }
            if let Some(wrong) = refused.finish().first() {
                return Err(wrong.to_string());
            }
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
        assert!(wrong.contains("\"tls\": not supported yet"), "{wrong}");
    }

    #[test]
    fn a_development_agent_has_both_drivers() {
        let plugins = of_dev();
        assert!(plugins["raw_exec"]["enabled"] == true && plugins["mock_driver"]["enabled"] == true);
    }
}

//! Plugins of the Container Network Interface (CNI): programs that connect a namespace, one after the other.
//!
//! Each gets its configuration as JSON on its input and what to do in its environment, and answers on its output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::document::DNSConfig;
use serde_json::{Map, Value, json};

use super::record::{Chain, Status};
use super::request::Request;
use super::{NetworkError, NetworkSettings};

/// Versions of the protocol that this agent has, newest first.
const VERSIONS: [&str; 5] = ["1.1.0", "1.0.0", "0.4.0", "0.3.1", "0.3.0"];

/// Versions that have `CHECK`, and in which `DEL` gets what `ADD` has answered.
const OLD: [&str; 2] = ["0.3.0", "0.3.1"];

/// The name of the interface inside.
const INTERFACE: &str = "eth0";

/// What a bridge is made with.
const BRIDGE: [&str; 5] = ["loopback", "bridge", "host-local", "firewall", "portmap"];

/// How often plugins are called before an allocation fails.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// True when everything for a bridge is installed.
pub fn can_bridge(settings: &NetworkSettings) -> bool {
    BRIDGE.iter().all(|plugin| find(settings, plugin).is_some())
}

fn find(settings: &NetworkSettings, plugin: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let mut paths = settings.cni_path.iter().map(|directory| directory.join(plugin));
    paths.find(|path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// All programs of the plugin path, by name; the first of a name counts.
pub fn installed(settings: &NetworkSettings) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for directory in &settings.cni_path {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_string) else { continue };
            if let Some(path) = find(settings, &name) {
                found.insert(name, path);
            }
        }
    }
    found
}

/// The networks that are configured, by name. Of two of one name the first file has it.
pub fn configurations(settings: &NetworkSettings) -> BTreeMap<String, Value> {
    let entries = std::fs::read_dir(&settings.cni_config_dir).into_iter().flatten().flatten();
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.path()).collect();
    let mut found = BTreeMap::new();
    for path in paths {
        let kind = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !matches!(kind, "conf" | "json" | "conflist") {
            continue;
        }
        match read(&path) {
            Ok((name, config)) => drop(found.entry(name).or_insert(config)),
            Err(error) => tracing::warn!(path = %path.display(), error, "a network was not read"),
        }
    }
    found
}

/// A list of plugins; a single one becomes a list.
fn read(path: &Path) -> Result<(String, Value), String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let config: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let name = config["name"].as_str().filter(|name| !name.is_empty()).ok_or("expected a \"name\"")?;
    let list = match &config["plugins"] {
        Value::Array(plugins) if !plugins.is_empty() => config.clone(),
        Value::Null if config["type"].is_string() => {
            json!({"name": name, "cniVersion": config["cniVersion"], "plugins": [config]})
        }
        _ => return Err("expected \"plugins\", or the \"type\" of one".to_string()),
    };
    Ok((name.to_string(), list))
}

/// The chain of a configured network.
///
/// # Errors
/// When there is none of that name, or its plugins have no version of the protocol that this agent has.
pub fn configured(settings: &NetworkSettings, name: &str, request: &Request) -> Result<Chain, NetworkError> {
    let config = configurations(settings).remove(name);
    let config = config.ok_or_else(|| {
        let directory = settings.cni_config_dir.display();
        NetworkError(format!("no network \"{name}\" is configured in cni_config_dir, {directory}"))
    })?;
    chain(settings, config, request)
}

/// The chain of Nomad's bridge.
///
/// # Errors
/// When its plugins have no version of the protocol that this agent has.
pub fn bridging(settings: &NetworkSettings, request: &Request) -> Result<Chain, NetworkError> {
    let mut ranges =
        vec![json!([{"subnet": subnet(settings.bridge_subnet.base, settings.bridge_subnet.prefix)}])];
    let mut routes = vec![json!({"dst": "0.0.0.0/0"})];
    if let Some(v6) = settings.bridge_subnet_v6 {
        ranges.push(json!([{"subnet": subnet(v6.base, v6.prefix)}]));
        routes.push(json!({"dst": "::/0"}));
    }
    let config = json!({
        "cniVersion": "0.4.0",
        "name": "nomad",
        "plugins": [
            {"type": "loopback"},
            {
                "type": "bridge",
                "bridge": settings.bridge_name,
                "ipMasq": true,
                "isGateway": true,
                "forceAddress": true,
                "hairpinMode": settings.bridge_hairpin,
                "ipam": {
                    "type": "host-local",
                    "ranges": ranges,
                    "routes": routes,
                    "dataDir": "/var/run/cni",
                },
            },
            {"type": "firewall", "backend": "iptables", "iptablesAdminChainName": "NOMAD-ADMIN"},
            {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true},
        ],
    });
    chain(settings, config, request)
}

fn subnet(base: impl std::fmt::Display, prefix: u8) -> String {
    format!("{base}/{prefix}")
}

fn chain(settings: &NetworkSettings, config: Value, request: &Request) -> Result<Chain, NetworkError> {
    let version = version(settings, &config)?;
    let args: Vec<String> = request.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut mappings = Vec::new();
    for port in &request.ports {
        for protocol in ["tcp", "udp"] {
            let mut mapping =
                json!({"hostPort": port.host_port, "containerPort": port.port, "protocol": protocol});
            if let Some(host) = port.host {
                mapping["hostIP"] = json!(host);
            }
            mappings.push(mapping);
        }
    }
    Ok(Chain {
        config,
        version,
        interface: INTERFACE.to_string(),
        args: args.join(";"),
        capabilities: BTreeMap::from([("portMappings".to_string(), Value::Array(mappings))]),
        result: Value::Null,
    })
}

fn plugins(config: &Value) -> &[Value] {
    config["plugins"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The newest version that the configuration, each of its plugins and this agent have.
fn version(settings: &NetworkSettings, config: &Value) -> Result<String, NetworkError> {
    let list = config["cniVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut named: Vec<&str> = list.iter().chain([&config["cniVersion"]]).filter_map(Value::as_str).collect();
    named.retain(|version| !version.is_empty());
    let name = config["name"].as_str().unwrap_or_default();
    let fails = |why: String| NetworkError(format!("network \"{name}\": {why}"));
    if named.is_empty() {
        return Err(fails(format!("expected a \"cniVersion\", one of {}", VERSIONS.join(", "))));
    }
    let mut common: Vec<&str> = VERSIONS.into_iter().filter(|version| named.contains(version)).collect();
    if common.is_empty() {
        let named = named.join(", ");
        return Err(fails(format!("cniVersion {named} is none of {}", VERSIONS.join(", "))));
    }
    for plugin in plugins(config) {
        let kind = plugin["type"].as_str().unwrap_or_default();
        let call = Call { command: "VERSION", input: json!({"cniVersion": VERSIONS[0]}), ..Call::default() };
        let answer = call.run(settings, kind)?;
        let has = answer["supportedVersions"].as_array().cloned().unwrap_or_default();
        common.retain(|version| has.iter().any(|own| own == version));
        if common.is_empty() {
            return Err(fails(format!(
                "the plugin \"{kind}\" has none of the versions {}",
                named.join(", ")
            )));
        }
    }
    Ok(common[0].to_string())
}

/// One call of a plugin.
#[derive(Debug, Default)]
struct Call<'a> {
    command: &'static str,
    container: &'a str,
    namespace: &'a str,
    interface: &'a str,
    args: &'a str,
    input: Value,
}

impl Call<'_> {
    /// What it answers; nothing counts as null.
    fn run(&self, settings: &NetworkSettings, plugin: &str) -> Result<Value, NetworkError> {
        let fails = |why: &dyn std::fmt::Display| {
            NetworkError(format!("CNI plugin \"{plugin}\" {}: {why}", self.command))
        };
        let program = find(settings, plugin).ok_or_else(|| fails(&"it is not installed in cni_path"))?;
        let mut child = Command::new(program)
            .env("CNI_COMMAND", self.command)
            .env("CNI_CONTAINERID", self.container)
            .env("CNI_NETNS", self.namespace)
            .env("CNI_IFNAME", self.interface)
            .env("CNI_ARGS", self.args)
            .env("CNI_PATH", search_path(settings))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fails(&error))?;
        let mut input = child.stdin.take().expect("its input is a pipe");
        // One that does not read its input says on its output why.
        input.write_all(self.input.to_string().as_bytes()).ok();
        drop(input);
        let output = child.wait_with_output().map_err(|error| fails(&error))?;
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        if output.status.success() {
            return Ok(answer);
        }
        let said = [&answer["msg"], &answer["details"]].map(|part| part.as_str().unwrap_or_default());
        let said = said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(match said.is_empty() {
            true => fails(&format!("{}, {}", output.status, complaint.trim())),
            false => fails(&said),
        })
    }
}

fn search_path(settings: &NetworkSettings) -> String {
    let paths: Vec<String> = settings.cni_path.iter().map(|path| path.display().to_string()).collect();
    paths.join(":")
}

/// Calls one plugin of a chain.
fn call(
    settings: &NetworkSettings,
    command: &'static str,
    alloc_id: &str,
    chain: &Chain,
    namespace: &Path,
    plugin: &Value,
    before: &Value,
) -> Result<Value, NetworkError> {
    let mut input: Map<String, Value> = plugin.as_object().cloned().unwrap_or_default();
    let wanted = plugin["capabilities"].as_object();
    let given = chain.capabilities.iter().filter(|(name, value)| {
        wanted.is_some_and(|wanted| wanted.get(*name) == Some(&Value::Bool(true)))
            && value.as_array().is_none_or(|list| !list.is_empty())
    });
    let given: Map<String, Value> = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    input.remove("capabilities");
    input.insert("cniVersion".to_string(), json!(chain.version));
    input.insert("name".to_string(), chain.config["name"].clone());
    if !given.is_empty() {
        input.insert("runtimeConfig".to_string(), Value::Object(given));
    }
    if !before.is_null() {
        input.insert("prevResult".to_string(), before.clone());
    }
    let kind = plugin["type"].as_str().unwrap_or_default();
    let namespace = match namespace.exists() {
        true => namespace.display().to_string(),
        false => String::new(),
    };
    let (container, interface, args) = (alloc_id, chain.interface.as_str(), chain.args.as_str());
    let input = Value::Object(input);
    Call { command, container, namespace: &namespace, interface, args, input }.run(settings, kind)
}

/// Connects the namespace; what the plugins say is kept in the chain.
///
/// # Errors
/// Those of the last try.
pub fn add(
    settings: &NetworkSettings,
    alloc_id: &str,
    chain: &mut Chain,
    namespace: &Path,
) -> Result<Status, NetworkError> {
    let mut tried = 1;
    loop {
        let error = match add_once(settings, alloc_id, chain, namespace) {
            Ok(result) => {
                chain.result = result;
                return Ok(status(&chain.result, namespace));
            }
            Err(error) => error,
        };
        // What some of them have done is in the way of the next try.
        remove(settings, alloc_id, chain, namespace).ok();
        if tried >= TRIES {
            return Err(error);
        }
        tried += 1;
        let chance = getrandom::u32().unwrap_or_default();
        std::thread::sleep(PAUSE + PAUSE.mul_f64(f64::from(chance) / f64::from(u32::MAX)));
    }
}

fn add_once(
    settings: &NetworkSettings,
    alloc_id: &str,
    chain: &Chain,
    namespace: &Path,
) -> Result<Value, NetworkError> {
    plugins(&chain.config).iter().try_fold(Value::Null, |before, plugin| {
        call(settings, "ADD", alloc_id, chain, namespace, plugin, &before)
    })
}

/// True unless a plugin says that something is missing.
pub fn check(settings: &NetworkSettings, alloc_id: &str, chain: &Chain, namespace: &Path) -> bool {
    if OLD.contains(&chain.version.as_str()) || chain.config["disableCheck"] == Value::Bool(true) {
        return true;
    }
    plugins(&chain.config).iter().all(|plugin| {
        let checked = call(settings, "CHECK", alloc_id, chain, namespace, plugin, &chain.result);
        checked.inspect_err(|error| tracing::warn!(alloc = alloc_id, %error, "a network is broken")).is_ok()
    })
}

/// Undoes what [`add`] has done, or tried to do, last plugin first.
///
/// # Errors
/// The first one; the other plugins are called nevertheless.
pub fn remove(
    settings: &NetworkSettings,
    alloc_id: &str,
    chain: &Chain,
    namespace: &Path,
) -> Result<(), NetworkError> {
    let before = match OLD.contains(&chain.version.as_str()) {
        true => &Value::Null,
        false => &chain.result,
    };
    let mut failed = Ok(());
    for plugin in plugins(&chain.config).iter().rev() {
        let removed = call(settings, "DEL", alloc_id, chain, namespace, plugin, before);
        failed = failed.and(removed.map(drop));
    }
    failed
}

/// The first interface inside that has an address, by name; the address of IPv4 rather than that of IPv6.
fn status(result: &Value, namespace: &Path) -> Status {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let interfaces = list(&result["interfaces"]);
    let namespace = namespace.display().to_string();
    let mut inside: Vec<(String, u64)> = (0..)
        .zip(&interfaces)
        .filter(|(_, interface)| interface["sandbox"] == namespace)
        .map(|(at, interface)| (text(&interface["name"]), at))
        .collect();
    inside.sort();
    let ips = list(&result["ips"]);
    let of = |at: u64| -> Vec<String> {
        let own = ips.iter().filter(|ip| ip["interface"] == at);
        own.map(|ip| text(&ip["address"]).split('/').next().unwrap_or_default().to_string()).collect()
    };
    let found = inside.into_iter().map(|(name, at)| (name, of(at))).find(|(_, own)| !own.is_empty());
    let (interface, own) = found.unwrap_or_default();
    let v6 = own.iter().find(|ip| ip.contains(':')).cloned().unwrap_or_default();
    let v4 = own.into_iter().find(|ip| !ip.contains(':'));
    let texts = |value: &Value| list(value).iter().map(text).collect();
    let dns = &result["dns"];
    let dns = DNSConfig {
        servers: texts(&dns["nameservers"]),
        searches: texts(&dns["search"]),
        options: texts(&dns["options"]),
    };
    Status {
        interface,
        address: v4.unwrap_or_else(|| v6.clone()),
        address_v6: v6,
        dns: Some(dns).filter(|dns| *dns != DNSConfig::default()),
    }
}

#[cfg(test)]
mod tests;

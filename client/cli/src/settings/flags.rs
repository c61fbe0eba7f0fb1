//! The flags of `agent`, and how defaults, files and flags are merged.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use base::Duration;
use jobspec::Source;
use jobspec::config::Section;
use node::vault::DEFAULT;
use server::gossip::Key;

use super::unsupported::Refused;
use super::value::ConfigValue;
use super::{
    AddressFamily, AgentSettings, ConsulConfig, ServerSettings, cluster, decode, plugins, system_flags, tls,
    unsupported_flags,
};
use crate::environment::Environment;
use crate::flags::{Args, Completion, Flag, FlagList};

/// Most files that are read from one directory.
const FILES_MAX: usize = 1000;

const CONFIG: Flag<Vec<String>> = Flag::values(
    "config",
    "PATH",
    "A configuration file, or a directory of them; may be repeated. Later ones win.",
)
.completed_by(Completion::Files);
const DEV: Flag<bool> =
    Flag::switch("dev", "Server and client in one process, on 127.0.0.1, without persistent state.");
const DEV_CONSUL: Flag<bool> =
    Flag::switch("dev-consul", "As -dev, with a Consul in development beside the agent.");
const DEV_VAULT: Flag<bool> =
    Flag::switch("dev-vault", "As -dev, with a Vault in development beside the agent.");
const SERVER: Flag<bool> = Flag::switch("server", "Run a server.");
const CLIENT: Flag<bool> = Flag::switch("client", "Run a client.");
const ACL_ENABLED: Flag<bool> = Flag::switch("acl-enabled", "Switch access control on.");
const ACL_REPLICATION_TOKEN: Flag<String> = Flag::value(
    "acl-replication-token",
    "SECRET",
    "What a server reads policies, roles, global tokens, namespaces and node pools of the authoritative region with.",
);
const AUTHORITATIVE_REGION: Flag<String> =
    Flag::value("authoritative-region", "NAME", "The region that decides on rights for all regions.");
const BOOTSTRAP_EXPECT: Flag<u32> =
    Flag::number("bootstrap-expect", "N", "Servers to wait for before the cluster is bootstrapped.");
const ENCRYPT: Flag<String> =
    Flag::value("encrypt", "KEY", "The gossip encryption key: base64 of 16, 24 or 32 bytes.");
const JOIN: Flag<Vec<String>> = Flag::values(
    "join",
    "HOST[:PORT]",
    "A server to join at the start; may be repeated. At least one must answer.",
);
const RETRY_JOIN: Flag<Vec<String>> =
    Flag::values("retry-join", "HOST[:PORT]", "As -join, but tried until one answers; may be repeated.");
const RETRY_INTERVAL: Flag<Duration> = Flag::parsed(
    "retry-interval",
    "DURATION",
    Duration::EXPECTED,
    "The time between two rounds of -retry-join. Default: 30s.",
);
const RETRY_MAX: Flag<u32> = Flag::number(
    "retry-max",
    "N",
    "Rounds of -retry-join before the agent stops. Default: 0, which means no limit.",
);
const BIND: Flag<IpAddr> = Flag::parsed("bind", "IP", "an IP address", "The address to listen on.");
const REGION: Flag<String> = Flag::value("region", "NAME", "The region of the agent.");
const DC: Flag<String> = Flag::value("dc", "NAME", "The datacenter of the agent.");
const NODE: Flag<String> = Flag::value("node", "NAME", "The name of the agent. Default: the host name.");
const DATA_DIR: Flag<String> =
    Flag::value("data-dir", "PATH", "The data directory.").completed_by(Completion::Files);
const STATE_DIR: Flag<String> = Flag::value("state-dir", "PATH", "The client's state directory.");
const ALLOC_DIR: Flag<String> = Flag::value("alloc-dir", "PATH", "The directory for allocation directories.");
const PLUGIN_DIR: Flag<String> =
    Flag::value("plugin-dir", "PATH", "Where plugins are that are programs of their own.")
        .completed_by(Completion::Files);
const HOST_VOLUMES_DIR: Flag<String> =
    Flag::value("host-volumes-dir", "PATH", "Where the client makes volumes.")
        .completed_by(Completion::Files);
const HOST_VOLUME_PLUGIN_DIR: Flag<String> =
    Flag::value("host-volume-plugin-dir", "PATH", "Programs that make volumes.")
        .completed_by(Completion::Files);
const NETWORK_SPEED: Flag<u64> = Flag::number(
    "network-speed",
    "N",
    "The speed of network interfaces in Mbit/s. Default: what they say of themselves.",
);
const PREFERRED_ADDRESS_FAMILY: Flag<String> =
    Flag::value("preferred-address-family", "FAMILY", "Whose addresses come first: ipv4 or ipv6.");
const NODE_CLASS: Flag<String> = Flag::value("node-class", "NAME", "The class of the node.");
const NODE_POOL: Flag<String> = Flag::value("node-pool", "NAME", "The pool of the node.");
const META: Flag<Vec<String>> = Flag::values("meta", "KEY=VALUE", "Metadata of the node; may be repeated.");
const NETWORK_INTERFACE: Flag<String> =
    Flag::value("network-interface", "NAME", "The network interface whose address tasks use.");
const SERVERS: Flag<String> =
    Flag::value("servers", "HOST:PORT,…", "Servers that the client registers with.");
const CLIENT_INTRO_TOKEN: Flag<String> = Flag::value(
    "client-intro-token",
    "TOKEN",
    "With what a new node introduces itself to servers that ask for it. Default: NOMAD_CLIENT_INTRO_TOKEN.",
);
const LOG_LEVEL: Flag<String> = Flag::value("log-level", "LEVEL", "TRACE, DEBUG, INFO, WARN or ERROR.");
const LOG_JSON: Flag<bool> = Flag::switch("log-json", "Log one JSON object per line.");
const LOG_INCLUDE_LOCATION: Flag<bool> =
    Flag::switch("log-include-location", "Lines of the log name the place in the program that wrote them.");

pub(crate) const AGENT_FLAGS: FlagList = &[
    &CONFIG,
    &DEV,
    &DEV_CONSUL,
    &DEV_VAULT,
    &SERVER,
    &CLIENT,
    &ACL_ENABLED,
    &ACL_REPLICATION_TOKEN,
    &AUTHORITATIVE_REGION,
    &BOOTSTRAP_EXPECT,
    &ENCRYPT,
    &JOIN,
    &RETRY_JOIN,
    &RETRY_INTERVAL,
    &RETRY_MAX,
    &BIND,
    &REGION,
    &DC,
    &NODE,
    &DATA_DIR,
    &STATE_DIR,
    &ALLOC_DIR,
    &PLUGIN_DIR,
    &HOST_VOLUMES_DIR,
    &HOST_VOLUME_PLUGIN_DIR,
    &NODE_CLASS,
    &NODE_POOL,
    &META,
    &NETWORK_INTERFACE,
    &NETWORK_SPEED,
    &PREFERRED_ADDRESS_FAMILY,
    &SERVERS,
    &CLIENT_INTRO_TOKEN,
    &LOG_LEVEL,
    &LOG_JSON,
    &LOG_INCLUDE_LOCATION,
];

/// Reads the agent's settings.
///
/// # Errors
/// A file that cannot be read or is invalid, an invalid flag, or settings that contradict each other.
pub(crate) fn read(args: &Args, environment: &Environment) -> anyhow::Result<AgentSettings> {
    let mut settings = started_from(args, environment);
    let (mut refused, mut places) = (Refused::default(), tls::Places::new());
    for path in args.values(&CONFIG) {
        for file in files(Path::new(path))? {
            merge_file(&mut settings, file, &mut places, &mut refused)?;
        }
    }
    let refused = refused.finish();
    if !refused.is_empty() {
        let refused = refused.iter().map(ToString::to_string).collect::<Vec<_>>();
        anyhow::bail!("Error loading configuration: {}", refused.join("\n\n"));
    }
    let notes = plugins::read_options(&mut settings.plugins, &settings.client.options);
    settings.notes.extend(notes);
    (settings.client.drivers, settings.client.fingerprints) = plugins::read_filters(&settings.client.options);
    settings.client.denied_users = plugins::denied_users(&settings.client.options);
    settings.client.log_sinks = plugins::log_sinks(&settings.client.options)
        .map_err(|why| anyhow::anyhow!("client.options: {why}"))?;
    if !environment.client_intro_token.is_empty() {
        settings.client.intro_token.clone_from(&environment.client_intro_token);
    }
    flags(&mut settings, args)?;
    unsupported_flags::check(&mut settings, args)?;
    if settings.name.is_empty() {
        settings.name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    }
    settings.check()?;
    tls::check(&settings, &places)?;
    let notes = cluster::notes(&settings);
    settings.notes.extend(notes);
    let exposures = settings.exposures();
    settings.notes.extend(exposures);
    Ok(settings)
}

/// What files and flags are merged into.
fn started_from(args: &Args, environment: &Environment) -> AgentSettings {
    let (consul, vault) = (args.switch(&DEV_CONSUL), args.switch(&DEV_VAULT));
    let is_dev = args.switch(&DEV) || consul || vault;
    let mut settings = if is_dev { AgentSettings::dev() } else { AgentSettings::defaults() };
    settings.consul_usual = ConsulConfig::of(environment);
    settings.consul = consul.then(|| system_flags::dev_consul(&settings.consul_usual));
    settings.vaults.extend(vault.then(|| (DEFAULT.to_string(), system_flags::dev_vault())));
    settings
}

/// The file, or the configuration files of the directory, sorted by name.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", path.display());
    if !path.metadata().with_context(unreadable)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().with_context(unreadable)? {
        let file = entry.with_context(unreadable)?.path();
        let known = file.extension().is_some_and(|kind| kind == "hcl" || kind == "json");
        if known && file.is_file() {
            files.push(file);
        }
        anyhow::ensure!(files.len() <= FILES_MAX, "{} holds more than {FILES_MAX} files", path.display());
    }
    files.sort();
    Ok(files)
}

/// What is wrong with the file goes to `refused`, so that the next one is read too.
///
/// # Errors
/// When it cannot be read at all.
fn merge_file(
    settings: &mut AgentSettings,
    file: PathBuf,
    places: &mut tls::Places,
    refused: &mut Refused,
) -> anyhow::Result<()> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {name}"))?;
    match Section::parse(&Source::new(name, text)) {
        Ok(top) => decode::file(settings, top, places, refused),
        Err(wrong) => refused.also(Err(wrong)),
    }
    settings.files.push(file);
    Ok(())
}

fn flags(settings: &mut AgentSettings, args: &Args) -> anyhow::Result<()> {
    let text = |flag, field: &mut String| {
        if let Some(value) = args.value(flag) {
            *field = value.to_string();
        }
    };
    let path = |flag| args.value(flag).map(PathBuf::from);
    text(&REGION, &mut settings.region);
    text(&DC, &mut settings.datacenter);
    text(&NODE, &mut settings.name);
    text(&NODE_CLASS, &mut settings.client.node_class);
    text(&NODE_POOL, &mut settings.client.node_pool);
    text(&CLIENT_INTRO_TOKEN, &mut settings.client.intro_token);
    text(&NETWORK_INTERFACE, &mut settings.client.network_interface);
    text(&AUTHORITATIVE_REGION, &mut settings.server.authoritative_region);
    text(&ACL_REPLICATION_TOKEN, &mut settings.server.replication_token);
    settings.acl.enabled = args.given_switch(&ACL_ENABLED).unwrap_or(settings.acl.enabled);
    settings.data_dir = path(&DATA_DIR).or(settings.data_dir.take());
    settings.client.state_dir = path(&STATE_DIR).or(settings.client.state_dir.take());
    settings.client.alloc_dir = path(&ALLOC_DIR).or(settings.client.alloc_dir.take());
    node_flags(settings, args)?;
    system_flags::merge(settings, args)?;
    settings.bind_addr = args.parsed(&BIND)?.unwrap_or(settings.bind_addr);
    settings.server.enabled = args.given_switch(&SERVER).unwrap_or(settings.server.enabled);
    settings.client.enabled = args.given_switch(&CLIENT).unwrap_or(settings.client.enabled);
    settings.log.json = args.given_switch(&LOG_JSON).unwrap_or(settings.log.json);
    let place = args.given_switch(&LOG_INCLUDE_LOCATION);
    settings.log.include_location = place.unwrap_or(settings.log.include_location);
    let expect = args.parsed(&BOOTSTRAP_EXPECT)?;
    settings.server.bootstrap_expect = expect.unwrap_or(settings.server.bootstrap_expect);
    joins(&mut settings.server, args)?;
    if let Some(level) = args.value(&LOG_LEVEL) {
        settings.log.level = ConfigValue::from_text(level)
            .with_context(|| format!("-log-level {level}: expected {}", tracing::Level::EXPECTED))?;
    }
    if let Some(servers) = args.value(&SERVERS) {
        settings.client.servers = servers.split(',').map(|server| server.trim().to_string()).collect();
    }
    for given in args.values(&META) {
        let (key, value) =
            given.split_once('=').with_context(|| format!("-meta {given}: expected KEY=VALUE"))?;
        settings.client.meta.insert(key.to_string(), value.to_string());
    }
    Ok(())
}

fn node_flags(settings: &mut AgentSettings, args: &Args) -> anyhow::Result<()> {
    let path = |flag| args.value(flag).map(PathBuf::from);
    settings.plugin_dir = path(&PLUGIN_DIR).or(settings.plugin_dir.take());
    let client = &mut settings.client;
    client.host_volumes_dir = path(&HOST_VOLUMES_DIR).or(client.host_volumes_dir.take());
    client.host_volume_plugin_dir = path(&HOST_VOLUME_PLUGIN_DIR).or(client.host_volume_plugin_dir.take());
    client.network_speed = args.parsed(&NETWORK_SPEED)?.unwrap_or(client.network_speed);
    if let Some(family) = args.value(&PREFERRED_ADDRESS_FAMILY) {
        client.preferred_address_family = ConfigValue::from_text(family).with_context(|| {
            format!("-preferred-address-family {family}: expected {}", AddressFamily::EXPECTED)
        })?;
    }
    Ok(())
}

fn joins(server: &mut ServerSettings, args: &Args) -> anyhow::Result<()> {
    server.join.start_join.extend_from_slice(args.values(&JOIN));
    server.join.retry_join.extend_from_slice(args.values(&RETRY_JOIN));
    let interval = args.parsed(&RETRY_INTERVAL)?;
    server.join.retry_interval = interval.unwrap_or(server.join.retry_interval);
    server.join.retry_max = args.parsed(&RETRY_MAX)?.unwrap_or(server.join.retry_max);
    if let Some(key) = args.value(&ENCRYPT) {
        // The message does not repeat the key, which is a secret.
        server.encrypt =
            Some(Key::from_text(key).with_context(|| format!("-encrypt: expected {}", Key::EXPECTED))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

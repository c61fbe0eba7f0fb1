//! How a server joins others, and the autopilot.

use anyhow::bail;
use base::Duration;
use jobspec::Diagnostics;
use jobspec::config::Section;
use model::Autopilot;
use server::gossip::{Key, TEXT_MAX};

use super::unsupported::{Refusal, Refused};
use super::value::ConfigValue;
use super::{AgentSettings, ServerSettings};

/// Most servers that `bootstrap_expect` may ask for.
const EXPECT_MAX: u32 = 99;

/// Most addresses in one list.
const ADDRESSES_MAX: usize = 64;

/// Keys of Nomad Enterprise, and their defaults.
const AUTOPILOT: [Refusal; 3] = [
    ("enable_redundancy_zones", "false", "of Nomad Enterprise"),
    ("disable_upgrade_migration", "false", "of Nomad Enterprise"),
    ("enable_custom_upgrades", "false", "of Nomad Enterprise"),
];

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JoinSettings {
    /// `HOST` or `HOST:PORT` of servers' gossip, tried once: at least one must answer.
    pub start_join: Vec<String>,
    /// As `start_join`, tried until one answers.
    pub retry_join: Vec<String>,
    pub retry_interval: Duration,
    /// Rounds before the agent stops; 0 means no limit.
    pub retry_max: u32,
    /// `HOST` or `HOST:PORT` of servers' RPC that are contacted directly: for networks without gossip. Nomad does not have this key.
    pub static_peers: Vec<String>,
}

impl JoinSettings {
    pub(crate) fn defaults() -> JoinSettings {
        JoinSettings {
            start_join: Vec::new(),
            retry_join: Vec::new(),
            retry_interval: Duration::from_secs(30),
            retry_max: 0,
            static_peers: Vec::new(),
        }
    }

    fn lists(&self) -> [(&'static str, &Vec<String>); 3] {
        [
            ("start_join", &self.start_join),
            ("retry_join", &self.retry_join),
            ("static_peers", &self.static_peers),
        ]
    }
}

/// The keys of `server_join`, which are also allowed in `server` itself.
pub(super) fn joins(server: &mut ServerSettings, section: &mut Section, refused: &mut Refused) {
    let join = &mut server.join;
    refused.also(addresses(section, "start_join", &mut join.start_join));
    refused.also(addresses(section, "retry_join", &mut join.retry_join));
    refused.set(section, "retry_interval", &mut join.retry_interval);
    refused.set(section, "retry_max", &mut join.retry_max);
}

pub(super) fn server_join(server: &mut ServerSettings, mut section: Section, refused: &mut Refused) {
    joins(server, &mut section, refused);
    refused.also(addresses(&mut section, "static_peers", &mut server.join.static_peers));
    refused.done(section);
}

pub(super) fn autopilot(autopilot: &mut Autopilot, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "cleanup_dead_servers", &mut autopilot.cleanup_dead_servers);
    refused.set(&mut section, "max_trailing_logs", &mut autopilot.max_trailing_logs);
    refused.set(&mut section, "min_quorum", &mut autopilot.min_quorum);
    let mut threshold = autopilot.last_contact_threshold();
    refused.set(&mut section, "last_contact_threshold", &mut threshold);
    let mut stabilization = autopilot.server_stabilization_time();
    refused.set(&mut section, "server_stabilization_time", &mut stabilization);
    (autopilot.last_contact_threshold_ns, autopilot.server_stabilization_ns) = (threshold.0, stabilization.0);
    refused.keys(&mut section, &AUTOPILOT);
    refused.done(section);
}

/// A list, or a single address: both forms are in use.
fn addresses(section: &mut Section, key: &str, field: &mut Vec<String>) -> Result<(), Diagnostics> {
    if let Some(Addresses(items)) = section.take(key)? {
        // Lists of servers of several files are joined.
        field.extend(items);
    }
    Ok(())
}

struct Addresses(Vec<String>);

impl<'de> serde::Deserialize<'de> for Addresses {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        use serde_json::Value;
        let what = "expected addresses, like [\"10.0.0.1\", \"server.lan:4648\"]";
        let text = |value| match value {
            Value::String(text) => Ok(text),
            _ => Err(D::Error::custom(what)),
        };
        match Value::deserialize(deserializer)? {
            Value::Array(items) => Ok(Addresses(items.into_iter().map(text).collect::<Result<_, _>>()?)),
            single => Ok(Addresses(vec![text(single)?])),
        }
    }
}

impl ConfigValue for Key {
    const EXPECTED: &'static str =
        "base64 of 16, 24 or 32 bytes, as `operator gossip keyring generate` prints it";

    fn from_text(text: &str) -> Option<Key> {
        Key::parse(text).ok()
    }
}

/// # Errors
/// The invalid field, and what was expected.
pub(super) fn check(settings: &AgentSettings) -> anyhow::Result<()> {
    let server = &settings.server;
    if !server.enabled {
        return Ok(());
    }
    if server.bootstrap_expect > EXPECT_MAX {
        bail!("server.bootstrap_expect = {}: at most {EXPECT_MAX}", server.bootstrap_expect);
    }
    let texts =
        [("name", &settings.name), ("region", &settings.region), ("datacenter", &settings.datacenter)];
    // An empty name is replaced by the host name later.
    if let Some((field, _)) = texts.iter().find(|(field, text)| {
        text.len() > TEXT_MAX || (text.is_empty() && *field != "name") || text.chars().any(char::is_control)
    }) {
        bail!("{field}: expected a text of at most {TEXT_MAX} bytes, in one line");
    }
    for (field, list) in server.join.lists() {
        if list.len() > ADDRESSES_MAX {
            bail!("server.server_join.{field}: at most {ADDRESSES_MAX} addresses");
        }
        if let Some(wrong) = list.iter().find(|address| !is_address(address)) {
            let why = if wrong.contains("provider=") { "looking in a cloud is not supported" } else { "" };
            let why = if why.is_empty() { "expected HOST or HOST:PORT" } else { why };
            bail!("server.server_join.{field}: \"{wrong}\": {why}");
        }
    }
    if server.join.retry_interval <= Duration::ZERO {
        bail!("server.server_join.retry_interval: expected a duration above zero");
    }
    let interval = server.scrub_interval;
    if interval != Duration::ZERO && interval < Duration::from_secs(1) {
        bail!("server.scrub_interval: expected a duration of a second at least, or 0s");
    }
    let introduction = &server.introduction;
    if introduction.default_ttl <= Duration::ZERO || introduction.max_ttl < introduction.default_ttl {
        bail!(
            "server.client_introduction: expected durations above zero, and max_identity_ttl not below \
             default_identity_ttl"
        );
    }
    match settings.autopilot.unfit() {
        Some((field, expected)) => bail!("autopilot: {field}: expected {expected}"),
        None => super::history::check(&settings.history),
    }
}

fn is_address(address: &str) -> bool {
    if address.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "1"));
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_fits = match bracketed {
        Some(ip) => ip.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(plain),
    };
    host_fits && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Notes for the operator about valid but unusual settings.
pub(super) fn notes(settings: &AgentSettings) -> Vec<String> {
    let server = &settings.server;
    if !server.enabled {
        return Vec::new();
    }
    let mut notes = Vec::new();
    match server.bootstrap_expect {
        0 => notes.push(
            "server.bootstrap_expect is not set: this server waits until a cluster adds it".to_string(),
        ),
        expect if expect % 2 == 0 => notes.push(format!(
            "server.bootstrap_expect = {expect}: an even number of servers survives no more failures than one fewer"
        )),
        _ => {}
    }
    notes.extend(federation_notes(settings));
    if server.encrypt.is_none() && server.bootstrap_expect != 1 {
        notes.push(
            "server.encrypt is not set: anyone who reaches the gossip port can impersonate a server".into(),
        );
        if !settings.tls.rpc && !settings.rpc_ip().to_canonical().is_loopback() {
            notes.push(
                "neither server.encrypt nor tls.rpc is set: servers on other hosts cannot prove themselves, and \
                 their calls are refused"
                    .into(),
            );
        }
    }
    notes
}

/// What is set for other regions and does nothing as it is.
fn federation_notes(settings: &AgentSettings) -> Vec<String> {
    let (region, token) = (&settings.server.authoritative_region, &settings.server.replication_token);
    let follows = !region.is_empty() && *region != settings.region;
    let mut notes = Vec::new();
    match (follows, settings.acl.enabled) {
        (true, false) => {
            notes.push("server.authoritative_region has no effect without acl.enabled".to_string());
        }
        (true, true) if token.is_empty() => notes.push(format!(
            "acl.replication_token is not set: what the region {region:?} decides does not come to this one"
        )),
        (false, _) if !token.is_empty() => notes.push(
            "acl.replication_token has no effect: server.authoritative_region names no other region"
                .to_string(),
        ),
        (_, _) => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_with_or_without_a_port() {
        for right in ["10.0.0.1", "10.0.0.1:4648", "server.lan", "server-1:1", "::1", "[::1]:4648"] {
            assert!(is_address(right), "{right}");
        }
        for wrong in ["", ":1", "a b", "a:0", "a:70000", "a:b", "http://a", "provider=aws x=y", "[x]:1"] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}

//! The flags of `agent`, and how defaults, files and flags are merged.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use base::Duration;
use jobspec::Source;
use jobspec::config::Section;
use server::gossip::Key;

use super::value::ConfigValue;
use super::{AgentSettings, ServerSettings, cluster, decode, plugins, unsupported_flags};
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
const SERVER: Flag<bool> = Flag::switch("server", "Run a server.");
const CLIENT: Flag<bool> = Flag::switch("client", "Run a client.");
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
const NODE_CLASS: Flag<String> = Flag::value("node-class", "NAME", "The class of the node.");
const NODE_POOL: Flag<String> = Flag::value("node-pool", "NAME", "The pool of the node.");
const META: Flag<Vec<String>> = Flag::values("meta", "KEY=VALUE", "Metadata of the node; may be repeated.");
const NETWORK_INTERFACE: Flag<String> =
    Flag::value("network-interface", "NAME", "The network interface whose address tasks use.");
const SERVERS: Flag<String> =
    Flag::value("servers", "HOST:PORT,…", "Servers that the client registers with.");
const LOG_LEVEL: Flag<String> = Flag::value("log-level", "LEVEL", "TRACE, DEBUG, INFO, WARN or ERROR.");
const LOG_JSON: Flag<bool> = Flag::switch("log-json", "Log one JSON object per line.");

pub(crate) const AGENT_FLAGS: FlagList = &[
    &CONFIG,
    &DEV,
    &SERVER,
    &CLIENT,
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
    &NODE_CLASS,
    &NODE_POOL,
    &META,
    &NETWORK_INTERFACE,
    &SERVERS,
    &LOG_LEVEL,
    &LOG_JSON,
];

/// Reads the agent's settings.
///
/// # Errors
/// A file that cannot be read or is invalid, an invalid flag, or settings that contradict each other.
pub(crate) fn read(args: &Args) -> anyhow::Result<AgentSettings> {
    let mut settings = if args.switch(&DEV) { AgentSettings::dev() } else { AgentSettings::defaults() };
    for path in args.values(&CONFIG) {
        for file in files(Path::new(path))? {
            merge_file(&mut settings, file)?;
        }
    }
    let notes = plugins::read_options(&mut settings.plugins, &settings.client.options);
    settings.notes.extend(notes);
    flags(&mut settings, args)?;
    unsupported_flags::check(&mut settings, args)?;
    if settings.name.is_empty() {
        settings.name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    }
    settings.check()?;
    let notes = cluster::notes(&settings);
    settings.notes.extend(notes);
    Ok(settings)
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

fn merge_file(settings: &mut AgentSettings, file: PathBuf) -> anyhow::Result<()> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {name}"))?;
    let source = Source::new(name, text);
    let merge = |settings: &mut AgentSettings| decode::file(settings, Section::parse(&source)?);
    merge(settings).map_err(|wrong| anyhow::anyhow!("Error loading configuration: {wrong}"))?;
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
    text(&NETWORK_INTERFACE, &mut settings.client.network_interface);
    settings.data_dir = path(&DATA_DIR).or(settings.data_dir.take());
    settings.client.state_dir = path(&STATE_DIR).or(settings.client.state_dir.take());
    settings.client.alloc_dir = path(&ALLOC_DIR).or(settings.client.alloc_dir.take());
    settings.bind_addr = args.parsed(&BIND)?.unwrap_or(settings.bind_addr);
    settings.server.enabled = args.given_switch(&SERVER).unwrap_or(settings.server.enabled);
    settings.client.enabled = args.given_switch(&CLIENT).unwrap_or(settings.client.enabled);
    settings.log.json = args.given_switch(&LOG_JSON).unwrap_or(settings.log.json);
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
mod tests {
    use super::*;
    use crate::flags::{parse, specs};

    /// Files by name and content, then flags, as one agent would read them.
    fn read_all(files: &[(&str, &str)], flags: &[&str]) -> Result<AgentSettings, String> {
        let directory = tempfile::tempdir().unwrap();
        let mut words = Vec::new();
        for (name, text) in files {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            words.push(format!("-config={}", path.display()));
        }
        words.extend(flags.iter().map(|flag| flag.to_string()));
        let settings = read(&parse(specs(&[AGENT_FLAGS]), &words).unwrap());
        let place = format!("{}/", directory.path().display());
        settings.map_err(|error| format!("{error:#}").replace(&place, ""))
    }

    const FULL: &str = r#"
# A server and a node.
region     = "eu"
datacenter = "fra1"
data_dir   = "/var/lib/sojourn"
bind_addr  = "10.0.0.1"
log_level  = "warn"

ports {
  http = 5646
}

server {
  enabled          = true
  bootstrap_expect = 1
  heartbeat_grace  = "15s"
}

client {
  enabled    = true
  node_class = "big"
  meta {
    "rack.row" = "7"
    owner      = "ops"
  }
  reserved {
    cpu            = 500
    reserved_ports = "22,80"
  }
  min_dynamic_port = 25000
}

plugin "raw_exec" {
  config {
    enabled = true
  }
}
"#;

    #[test]
    fn a_whole_file_is_read() {
        let settings = read_all(&[("a.hcl", FULL)], &[]).unwrap();
        assert_eq!((settings.region.as_str(), settings.datacenter.as_str()), ("eu", "fra1"));
        assert_eq!((settings.http_ip().to_string().as_str(), settings.ports.http), ("10.0.0.1", 5646));
        assert_eq!((settings.ports.rpc, settings.log.level), (4647, tracing::Level::WARN));
        assert_eq!(settings.server.heartbeat_grace, Duration::from_secs(15));
        assert_eq!(settings.client.meta["rack.row"], "7");
        assert_eq!(
            (settings.client.reserved.cpu_mhz, settings.client.reserved.ports.as_str()),
            (500, "22,80")
        );
        assert!(settings.plugins["raw_exec"]["enabled"] == true && settings.notes.is_empty());
    }

    #[test]
    fn json_means_the_same() {
        let json = r#"{
          "region": "eu", "datacenter": "fra1", "data_dir": "/var/lib/sojourn", "bind_addr": "10.0.0.1",
          "log_level": "warn", "ports": {"http": 5646},
          "server": [{"enabled": true, "bootstrap_expect": 1, "heartbeat_grace": "15s"}],
          "client": {"enabled": true, "node_class": "big", "meta": {"rack.row": "7", "owner": "ops"},
            "reserved": {"cpu": 500, "reserved_ports": "22,80"}, "min_dynamic_port": 25000},
          "plugin": {"raw_exec": {"config": {"enabled": true}}}
        }"#;
        let (mut json, hcl) =
            (read_all(&[("a.json", json)], &[]).unwrap(), read_all(&[("a.hcl", FULL)], &[]).unwrap());
        json.files.clone_from(&hcl.files);
        assert_eq!(json, hcl);
    }

    #[test]
    fn later_files_win_over_earlier_ones_and_flags_over_all() {
        let first = ("a.hcl", "region = \"one\"\ndatacenter = \"one\"\nclient { meta { a = \"1\" } }");
        let second = ("b.hcl", "region = \"two\"\nclient { meta { b = \"2\" } }");
        let settings =
            read_all(&[first, second], &["-dev", "-dc=three", "-meta", "c=3", "-log-level=error"]).unwrap();
        assert_eq!((settings.region.as_str(), settings.datacenter.as_str()), ("two", "three"));
        assert_eq!(settings.client.meta.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(settings.log.level, tracing::Level::ERROR);
        assert!(settings.dev && settings.server.enabled && settings.client.enabled);
        let off = [("a.hcl", "client { enabled = false }\nserver { enabled = false }")];
        let settings = read_all(&off, &["-dev"]).unwrap();
        assert!(settings.server.enabled && settings.client.enabled, "only a flag switches off");
        let settings = read_all(&off, &["-dev", "-client=false"]).unwrap();
        assert!(settings.server.enabled && !settings.client.enabled);
    }

    #[test]
    fn errors_show_their_position() {
        let cases = [
            ("regoin = \"eu\"", "a.hcl:1:1: unexpected key \"regoin\""),
            ("server {\n  enabled = true\n  foo = 1\n}", "a.hcl:3:3: unexpected key \"foo\""),
            ("client {\n  reserved { cpu = \"lots\" }\n}", "a.hcl:2:20: \"cpu\": expected a whole number"),
            ("ports { http = 70000 }", "a.hcl:1:16: \"http\": expected a whole number up to 65535"),
            ("server { heartbeat_grace = \"10\" }", "\"heartbeat_grace\": expected a duration, like \"30s\""),
            ("server { encrypt = \"x\" }", "a.hcl:1:20: \"encrypt\": expected base64 of 16, 24 or 32 bytes"),
            ("server { retry_join = 3 }", "a.hcl:1:23: \"retry_join\": expected addresses, like"),
            ("server { server_join { retry_join = [1] } }", "\"retry_join\": expected addresses, like"),
            ("server { server_join { retry_interval = 3 } }", "\"retry_interval\": expected a duration"),
            ("server { server_join { retry_max = -1 } }", "\"retry_max\": expected a whole number"),
            ("server { server_join { static = [] } }", "unexpected key \"static\""),
            (
                "server { retry_join = [\"a b\"] }",
                "server.server_join.retry_join: \"a b\": expected HOST or HOST:PORT",
            ),
            (
                "server { retry_join = [\"provider=aws\"] }",
                "\"provider=aws\": looking in a cloud is not supported",
            ),
            ("server { server_join { static_peers = [\":1\"] } }", "server.server_join.static_peers: \":1\""),
            (
                "server { retry_interval = \"0s\" }",
                "server.server_join.retry_interval: expected a duration above",
            ),
            ("server { scrub_interval = \"-1h\" }", "server.scrub_interval: expected a duration of a second"),
            ("server { bootstrap_expect = 100 }", "server.bootstrap_expect = 100: at most 99"),
            ("server { bootstrap_expect = -1 }", "\"bootstrap_expect\": expected a whole number"),
            (
                "autopilot { min_quorum = 100 }",
                "autopilot: MinQuorum: expected a number of servers, at most 99",
            ),
            (
                "autopilot { last_contact_threshold = \"0s\" }",
                "autopilot: LastContactThreshold: expected a duration",
            ),
            (
                "autopilot { server_stabilization_time = \"-1s\" }",
                "autopilot: ServerStabilizationTime: expected",
            ),
            ("autopilot { max_trailing_logs = \"x\" }", "\"max_trailing_logs\": expected a whole number"),
            ("autopilot { cleanup_dead_servers = 2 }", "\"cleanup_dead_servers\": expected true or false"),
            (
                "autopilot { enable_redundancy_zones = true }",
                "\"enable_redundancy_zones\": not supported yet",
            ),
            ("leave_on_terminate = \"maybe\"", "\"leave_on_terminate\": expected true or false"),
            ("region = \"\"", "region: expected a text of at most 96 bytes"),
            ("acl {\n  enabled = true\n}", "a.hcl:2:13: acl.enabled is not supported yet"),
            ("tls { http = true }", "a.hcl:1:14: tls.http is not supported yet"),
            ("vault { enabled = 1 }", "a.hcl:1:19: vault.enabled is not supported yet"),
            ("consul { address = \"10.0.0.1:8500\" }", "a.hcl:1:20: \"address\": not supported yet"),
            (
                "client { host_volume \"x\" { path = \"/\" } }",
                "a.hcl:1:10: \"host_volume\": not supported yet",
            ),
            ("keyring \"awskms\" { active = true }", "a.hcl:1:1: \"keyring\": not supported yet"),
            ("telemetry { statsd_address = \"x:1\" }", "\"statsd_address\": not supported yet"),
            (
                "limits { http_max_conns_per_client = -1 }",
                "\"http_max_conns_per_client\": expected a whole number",
            ),
            ("limits { rpc_handshake_timeout = \"x\" }", "\"rpc_handshake_timeout\": expected a duration"),
            ("limits { https_handshake_timeout = \"9s\" }", "\"https_handshake_timeout\": not supported yet"),
            ("plugin \"podman\" {}", "the driver \"podman\" is not part of this build yet"),
            (
                "plugin \"docker\" {\n  config {\n    allow_privileged = true\n  }\n}",
                "a.hcl:3:24: \"allow_privileged\": not supported yet",
            ),
            ("plugin \"docker\" { config { misspelt = 1 } }", "unexpected key \"misspelt\""),
            ("http_api_response_headers { \"a b\" = \"c\" }", "\"a b\" is not a header of HTTP"),
            ("server = 3", "a.hcl:1:10: \"server\" is a block"),
            ("log_level = \"loud\"", "\"log_level\": expected TRACE, DEBUG, INFO, WARN or ERROR"),
        ];
        for (text, message) in cases {
            let error = read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn contradicting_settings_are_rejected() {
        let cases: [(&[&str], &str); 9] = [
            (&[], "Must specify either server, client or dev mode for the agent."),
            (&["-server"], "data_dir is required"),
            (&["-server", "-data-dir=x"], "data_dir must be absolute"),
            (
                &["-server", "-data-dir=/x", "-bootstrap-expect=x"],
                "for flag -bootstrap-expect: expected a number",
            ),
            (
                &["-server", "-data-dir=/x", "-encrypt=secret"],
                "-encrypt: expected base64 of 16, 24 or 32 bytes",
            ),
            (&["-server", "-data-dir=/x", "-retry-join=a:b"], "server.server_join.retry_join: \"a:b\""),
            (
                &["-server", "-data-dir=/x", "-retry-interval=x"],
                "for flag -retry-interval: expected a duration",
            ),
            (&["-server", "-data-dir=/x", "-retry-max=x"], "for flag -retry-max: expected a number"),
            (&["-client", "-data-dir=/x"], "client.servers is required"),
        ];
        for (flags, message) in cases {
            let error = read_all(&[], flags).unwrap_err();
            assert!(error.contains(message), "{flags:?}: {error}");
        }
    }

    #[test]
    fn the_settings_for_joining_servers_are_read() {
        let hcl = r#"
server {
  bootstrap_expect = 3
  encrypt          = "AAECAwQFBgcICQoLDA0ODw=="
  server_join {
    retry_join     = ["10.0.0.1", "s2.lan:5648"]
    retry_interval = "5s"
    retry_max      = 7
    static_peers   = ["10.0.0.3"]
  }
}
autopilot {
  cleanup_dead_servers      = false
  last_contact_threshold    = "500ms"
  max_trailing_logs         = 9
  min_quorum                = 3
  server_stabilization_time = "2m"
}
leave_on_terminate = true
"#;
        let json = r#"{
          "server": {"bootstrap_expect": 3, "encrypt": "AAECAwQFBgcICQoLDA0ODw==",
            "server_join": {"retry_join": ["10.0.0.1", "s2.lan:5648"], "retry_interval": "5s", "retry_max": 7,
              "static_peers": ["10.0.0.3"]}},
          "autopilot": {"cleanup_dead_servers": false, "last_contact_threshold": "500ms", "max_trailing_logs": 9,
            "min_quorum": 3, "server_stabilization_time": "2m"},
          "leave_on_terminate": true
        }"#;
        let mut read = [("a.hcl", hcl), ("a.json", json)].map(|file| read_all(&[file], &["-dev"]).unwrap());
        for settings in &mut read {
            settings.files.clear();
            let join = &settings.server.join;
            assert_eq!(join.retry_join, ["10.0.0.1", "s2.lan:5648"]);
            assert_eq!((join.retry_interval, join.retry_max), (Duration::from_secs(5), 7));
            assert_eq!(join.static_peers, ["10.0.0.3"]);
            assert_eq!((settings.server.bootstrap_expect, settings.server.encrypt.is_some()), (3, true));
            let autopilot = &settings.autopilot;
            assert_eq!((autopilot.cleanup_dead_servers, autopilot.min_quorum), (false, 3));
            assert_eq!(autopilot.last_contact_threshold(), Duration::from_millis(500));
            assert_eq!(autopilot.server_stabilization_time(), Duration::from_secs(120));
            assert!(settings.leave_on_terminate && !settings.leave_on_interrupt);
            assert_eq!(settings.notes, Vec::<String>::new());
        }
        assert_eq!(read[0], read[1]);
        // The older keys, and flags, which add to files.
        let older = ("a.hcl", "server { retry_join = [\"a\"]\n retry_max = 2\n start_join = [\"b\"] }");
        let flags = ["-dev", "-retry-join=c", "-join", "d:1", "-retry-interval=1s", "-bootstrap-expect=4"];
        let settings = read_all(&[older], &flags).unwrap();
        assert_eq!(settings.server.join.retry_join, ["a", "c"]);
        assert_eq!(settings.server.join.start_join, ["b", "d:1"]);
        assert_eq!(settings.server.join.retry_interval, Duration::from_secs(1));
        assert!(settings.notes[0].contains("an even number") && settings.notes[1].contains("server.encrypt"));
    }

    #[test]
    fn limits_per_address_are_read() {
        let text = "limits {\n  http_max_conns_per_client = 100\n  rpc_max_conns_per_client = 0\n\
                    rpc_handshake_timeout = \"2s\"\n}\ntelemetry {\n  prometheus_metrics = false\n}";
        let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
        let limits = &settings.limits;
        assert_eq!((limits.http_max_conns_per_client, limits.rpc_max_conns_per_client), (100, 0));
        assert_eq!(limits.rpc_handshake_timeout, Duration::from_secs(2));
        let text = "http_api_response_headers {\n  Access-Control-Allow-Origin = \"*\"\n}";
        let with_headers = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
        assert_eq!(with_headers.response_headers["Access-Control-Allow-Origin"], "*");
        assert!(!settings.prometheus_metrics && AgentSettings::dev().prometheus_metrics);
    }

    #[test]
    fn what_is_switched_off_or_left_at_its_default_is_accepted() {
        let hcl = r#"
vault {
  enabled = false
  address = "https://vault.lan:8200"
}
acl {
  enabled   = "false"
  token_ttl = "30s"
}
tls {
  http      = false
  rpc       = false
  ca_file   = "/etc/ca.pem"
}
consul {
  address          = "127.0.0.1:8500"
  auto_advertise   = true
  client_auto_join = false
  tags             = []
}
telemetry {
  statsd_address                      = ""
  disable_dispatched_job_summary_metrics = false
}
ui {
  enabled = false
  consul { ui_url = "https://consul.lan" }
  label { text = "staging" }
}
keyring "aead" {
  active = true
}
plugin "docker" {}
plugin "docker" {
  config {
    allow_privileged = false
    endpoint         = "unix:///var/run/docker.sock"
    volumes { enabled = false }
    gc {
      image       = true
      image_delay = "3m"
    }
  }
}
plugin "exec" { config {} }
enable_debug  = false
enable_syslog = "false"
plugin_dir    = ""
server {
  raft_protocol      = 3
  rejoin_after_leave = false
  plan_rejection_tracker { enabled = false }
}
client {
  no_host_uuid  = true
  network_speed = 0
  cni_path      = "/opt/cni/bin"
  template {}
}
"#;
        let json = r#"{
          "vault": {"enabled": false}, "acl": {"enabled": false}, "tls": {"http": false}, "consul": {},
          "audit": {"enabled": false}, "sentinel": {}, "server": {"search": {}, "enabled_schedulers": []},
          "plugin": [{"docker": [{"config": [{"allow_privileged": false}]}]}, {"java": {}}]
        }"#;
        let settings = read_all(&[("a.hcl", hcl)], &["-dev"]).unwrap();
        assert_eq!(settings.notes, Vec::<String>::new());
        read_all(&[("a.json", json)], &["-dev"]).unwrap();
        read_all(&[("a.hcl", "consul {\n enabled = false\n address = \"10.0.0.1:8500\"\n}")], &["-dev"])
            .unwrap();
    }

    #[test]
    fn everything_that_is_not_supported_is_refused_at_once() {
        let text = "vault {\n  enabled = true\n}\nacl {\n  enabled = true\n}\nserver {\n  oidc_issuer = \"x\"\n}\n\
                    telemetry {\n  statsd_address = \"x:1\"\n}\nserver {\n  misspelt = 1\n}";
        let error = read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err();
        let heads: Vec<&str> = error.lines().filter(|line| line.contains("a.hcl:")).collect();
        assert_eq!(heads.len(), 5, "{error}");
        for line in ["a.hcl:2:13: vault.enabled", "a.hcl:5:13: acl.enabled", "a.hcl:8:17: \"oidc_issuer\""] {
            assert!(error.contains(line), "{error}");
        }
        assert!(error.contains("a.hcl:14:3: unexpected key \"misspelt\""), "{error}");
    }

    #[test]
    fn settings_without_effect_are_noted() {
        let text = "telemetry { disable_hostname = true }\nacl { enabled = false }\ndisable_update_check = true\n\
                    client { options { \"docker.volumes\" = \"1\" } }";
        let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
        assert_eq!(settings.notes.len(), 2, "{:?}", settings.notes);
        assert!(
            settings.notes[0].contains("disable_hostname") && settings.notes[1].contains("docker.volumes")
        );
    }

    #[test]
    fn a_directory_brings_its_files_in_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in
            [("2.hcl", "region = \"two\""), ("1.json", "{\"region\": \"one\"}"), ("0.txt", "?")]
        {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let words = ["-dev".to_string(), format!("-config={}", directory.path().display())];
        let settings = read(&parse(specs(&[AGENT_FLAGS]), &words).unwrap()).unwrap();
        assert_eq!((settings.region.as_str(), settings.files.len()), ("two", 2));
    }
}

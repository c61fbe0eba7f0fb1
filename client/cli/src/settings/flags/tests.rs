use model::event::ObjectKind;

use super::system_flags::SYSTEM_FLAGS;
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
    let settings =
        read(&parse(specs(&[AGENT_FLAGS, SYSTEM_FLAGS]), &words).unwrap(), &Environment::default());
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
  failover_heartbeat_ttl = "1m"
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
    assert_eq!(settings.server.heartbeats.grace, Duration::from_secs(15));
    assert_eq!(settings.server.heartbeats.failover_ttl, Duration::from_secs(60));
    assert_eq!(settings.client.meta["rack.row"], "7");
    assert_eq!((settings.client.reserved.cpu_mhz, settings.client.reserved.ports.as_str()), (500, "22,80"));
    assert_eq!(settings.plugins["raw_exec"]["enabled"], true);
    assert_eq!(settings.notes, settings.exposures());
}

#[test]
fn json_means_the_same() {
    let json = r#"{
          "region": "eu", "datacenter": "fra1", "data_dir": "/var/lib/sojourn", "bind_addr": "10.0.0.1",
          "log_level": "warn", "ports": {"http": 5646},
          "server": [{"enabled": true, "bootstrap_expect": 1, "heartbeat_grace": "15s",
            "failover_heartbeat_ttl": "1m"}],
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
fn history_is_merged_key_by_key() {
    let default = read_all(&[], &["-dev"]).unwrap().history.settings();
    assert_eq!((default.retention, default.archive), (server::RETENTION, None));
    let hcl = "history {\n  memory = \"1MiB\"\n  min_age = \"90d\"\n  archive {\n    path = \"/old\"\n  }\n}";
    let json = r#"{"history": {"max_bytes": "200GB", "keep": ["job", "acl"], "keep_max_bytes": "2GiB", "archive": {"max_bytes": "2TB"}}}"#;
    let read = |files: &[(&str, &str)]| read_all(files, &["-dev"]).unwrap().history.settings();
    let expected = server::HistorySettings {
        memory: 1 << 20,
        retention: server::Retention {
            bytes: 200_000_000_000,
            age: Some(std::time::Duration::from_secs(90 * 24 * 60 * 60)),
        },
        archive: Some(server::Archive::in_folder("/old", Some(2_000_000_000_000))),
        keep: [ObjectKind::Job, ObjectKind::Acl].into_iter().collect(),
        keep_max_bytes: 2 << 30,
        ..server::HistorySettings::default()
    };
    assert_eq!(read(&[("a.hcl", hcl), ("b.json", json)]), expected);
    assert_eq!(read(&[("a.json", json), ("b.hcl", hcl)]), expected);
    let again = "history {\n  min_age = \"1h\"\n  archive {\n    path = \"/other\"\n  }\n}";
    let changed = read(&[("a.hcl", hcl), ("b.json", json), ("c.hcl", again)]);
    assert_eq!(changed.retention.age, Some(std::time::Duration::from_secs(3600)));
    let archive = server::Archive::in_folder("/other", Some(2_000_000_000_000));
    assert_eq!((changed.memory, changed.archive), (1 << 20, Some(archive)));
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
        (
            "history { keep = \"job\" }",
            "a.hcl:1:18: \"keep\": invalid type: string \"job\", expected a sequence",
        ),
        (
            "history { keep = [\"job\", \"jobs\"] }",
            "history.keep: \"jobs\": expected kinds of facts among job, variable",
        ),
        ("history { keep_max_bytes = \"1MiB\" }", "history.keep_max_bytes: expected at least 64MiB"),
        ("history { min_age = \"-1d\" }", "a.hcl:1:21: \"min_age\": expected a duration, like \"90d\" or"),
        ("history { min_age = 90 }", "\"min_age\": expected a duration, like \"90d\" or"),
        ("history { max_bytes = \"lots\" }", "\"max_bytes\": expected a size, like \"100GB\""),
        ("history { archive { } }", "history.archive.path: expected a path that begins with /"),
        (
            "history { archive { path = \"old\" } }",
            "history.archive.path: expected a path that begins with /",
        ),
        (
            "history {\n  archive {\n    path = \"/old\"\n    max_bytes = 0\n  }\n}",
            "history.archive.max_bytes: expected more than 0",
        ),
        (
            "history {\n  archive {\n    path = \"/old\"\n    level = 3\n  }\n}",
            "a.hcl:4:5: unexpected key \"level\"",
        ),
        ("server { job_max_count = -1 }", "\"job_max_count\": expected a whole number"),
        ("server { scrub_interval = \"-1h\" }", "server.scrub_interval: expected a duration of a second"),
        ("server { bootstrap_expect = 100 }", "server.bootstrap_expect = 100: at most 99"),
        ("server { bootstrap_expect = -1 }", "\"bootstrap_expect\": expected a whole number"),
        ("autopilot { min_quorum = 100 }", "autopilot: MinQuorum: expected a number of servers, at most 99"),
        (
            "autopilot { last_contact_threshold = \"0s\" }",
            "autopilot: LastContactThreshold: expected a duration",
        ),
        ("autopilot { server_stabilization_time = \"-1s\" }", "autopilot: ServerStabilizationTime: expected"),
        ("autopilot { max_trailing_logs = \"x\" }", "\"max_trailing_logs\": expected a whole number"),
        ("autopilot { cleanup_dead_servers = 2 }", "\"cleanup_dead_servers\": expected true or false"),
        ("autopilot { enable_redundancy_zones = true }", "\"enable_redundancy_zones\": not supported: of"),
        ("leave_on_terminate = \"maybe\"", "\"leave_on_terminate\": expected true or false"),
        ("region = \"\"", "region: expected a text of at most 96 bytes"),
        (
            "acl {\n  token_min_expiration_ttl = 1\n  enabled = 3\n}",
            "a.hcl:3:13: \"enabled\": expected true or false",
        ),
        ("tls { http = true }", "a.hcl:1:14: tls.cert_file: the certificate of this agent is required"),
        (
            "tls {\n  rpc = true\n  cert_file = \"/none.pem\"\n  key_file = \"/none.pem\"\n}",
            "a.hcl:3:15: tls.cert_file: cannot read /none.pem: No such file",
        ),
        ("tls { tls_min_version = \"tls11\" }", "a.hcl:1:25: \"tls_min_version\": expected tls12 or tls13"),
        (
            "tls { tls_cipher_suites = \"TLS_RSA_WITH_AES_128_CBC_SHA\" }",
            "a.hcl:1:27: \"tls_cipher_suites\": the cipher suite \"TLS_RSA_WITH_AES_128_CBC_SHA\" is not supported",
        ),
        ("tls { htp = true }", "a.hcl:1:7: unexpected key \"htp\""),
        ("vault { token = \"x\" }", "a.hcl:1:17: \"token\": not supported: tasks log in"),
        ("consul { grpc_address = \"10.0.0.1:8502\" }", "a.hcl:1:25: \"grpc_address\": not supported: no"),
        (
            "client { host_network \"x\" { cidr = \"nowhere\" } }",
            "host_network \"x\": cidr: expected networks like 10.0.0.0/8, not \"nowhere\"",
        ),
        ("client { artifact { http_max_size = \"1XB\" } }", "\"http_max_size\": expected a size"),
        ("client { artifact { git_timeout = \"0s\" } }", "git_timeout = 0s: expected more than 0s"),
        ("keyring \"awskms\" { active = true }", "a.hcl:1:1: \"keyring\": not supported: "),
        ("telemetry { statsd_address = \"x:1\" }", "\"statsd_address\": not supported: "),
        ("server { sinks { deny = [\"nowhere\"] } }", "\"deny\": [0]: expected an address or a network"),
        (
            "limits { http_proxies = [\"nowhere\"] }",
            "\"http_proxies\": [0]: expected an address or a network",
        ),
        (
            "limits { http_max_conns_per_client = -1 }",
            "\"http_max_conns_per_client\": expected a whole number",
        ),
        ("limits { rpc_handshake_timeout = \"x\" }", "\"rpc_handshake_timeout\": expected a duration"),
        ("limits { https_handshake_timeout = \"x\" }", "\"https_handshake_timeout\": expected a duration"),
        ("plugin \"lxc\" { arg = 1 }", "unexpected key \"arg\""),
        (
            "plugin \"docker\" {\n  config {\n    windows_allow_insecure_container_admin = true\n  }\n}",
            "a.hcl:3:46: \"windows_allow_insecure_container_admin\": not supported: ",
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
        (&["-server", "-data-dir=/x", "-encrypt=secret"], "-encrypt: expected base64 of 16, 24 or 32 bytes"),
        (&["-server", "-data-dir=/x", "-retry-join=a:b"], "server.server_join.retry_join: \"a:b\""),
        (&["-server", "-data-dir=/x", "-retry-interval=x"], "for flag -retry-interval: expected a duration"),
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
    let limits = read_all(&[], &["-dev"]).unwrap().limits;
    assert_eq!(limits.http(), listener::AddressLimit::default());
    let text = "limits {\n  http_max_conns_per_client = 9\n  http_proxies = [\"10.0.0.7\", \"fd00::/8\"]\n  rpc_max_conns_per_client = 0\n\
                rpc_handshake_timeout = \"2s\"\n}\ntelemetry {\n  prometheus_metrics = false\n}";
    let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
    let limits = &settings.limits;
    assert_eq!((limits.http_max_conns_per_client, limits.rpc_max_conns_per_client), (9, 0));
    let proxies = limits.http_proxies.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(proxies, ["10.0.0.7/32", "fd00::/8"]);
    assert_eq!(limits.rpc_handshake_timeout, Duration::from_secs(2));
    let text = "http_api_response_headers {\n  Access-Control-Allow-Origin = \"*\"\n}";
    let with_headers = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
    assert_eq!(with_headers.response_headers["Access-Control-Allow-Origin"], "*");
    assert!(!settings.prometheus_metrics && AgentSettings::dev().prometheus_metrics);
}

#[test]
fn the_web_page_is_on_unless_it_is_switched_off() {
    let settings = read_all(&[], &["-dev"]).unwrap();
    assert!(settings.ui.enabled && settings.ui.show_cli_hints);
    let text = "ui {\n  enabled = false\n  show_cli_hints = \"false\"\n  label { text = \"staging\" }\n}";
    let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
    assert!(!settings.ui.enabled && !settings.ui.show_cli_hints);
    assert_eq!(settings.notes, ["ui.label has no effect: the web page has nothing like it"]);
    let wrong = read_all(&[("a.hcl", "ui {\n  enabld = false\n}")], &["-dev"]).unwrap_err().to_string();
    assert!(wrong.contains("enabld"), "{wrong}");
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
    read_all(&[("a.hcl", "consul {\n enabled = false\n address = \"10.0.0.1:8500\"\n}")], &["-dev"]).unwrap();
}

#[test]
fn everything_that_is_not_supported_is_refused_at_once() {
    let text = "vault {\n  token = \"x\"\n}\nserver {\n  upgrade_version = \"x\"\n}\nserver {\n  license_path = \"x\"\n}\n\
                telemetry {\n  statsd_address = \"x:1\"\n}\nserver {\n  misspelt = 1\n}";
    let error = read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err();
    let heads: Vec<&str> = error.lines().filter(|line| line.contains("a.hcl:")).collect();
    assert_eq!(heads.len(), 5, "{error}");
    for line in ["a.hcl:2:11: \"token\"", "a.hcl:5:21: \"upgrade_version\"", "a.hcl:8:18: \"license_path\""] {
        assert!(error.contains(line), "{error}");
    }
    assert!(error.contains("a.hcl:14:3: unexpected key \"misspelt\""), "{error}");
}

#[test]
fn settings_without_effect_are_noted() {
    let text = "telemetry { use_node_name = true }\nacl { enabled = false }\ndisable_update_check = true\n\
                client { options { \"docker.volumes\" = \"1\" } }";
    let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
    assert_eq!(settings.notes.len(), 2, "{:?}", settings.notes);
    assert!(settings.notes[0].contains("use_node_name") && settings.notes[1].contains("docker.volumes"));
}

#[test]
fn telemetry_is_read() {
    let text = "enable_debug = true\ntelemetry {\n  disable_hostname = true\n  collection_interval = \"5s\"\n  \
                publish_node_metrics = true\n  publish_allocation_metrics = true\n}\n\
                data_dir = \"/d\"\nserver { enabled = true }";
    let settings = read_all(&[("a.hcl", text)], &[]).unwrap();
    let telemetry = &settings.telemetry;
    assert!(settings.enable_debug && telemetry.disable_hostname);
    assert!(telemetry.publish_node_metrics && telemetry.publish_allocation_metrics);
    assert_eq!(telemetry.collection_interval, base::Duration::from_secs(5));
    assert!(settings.notes.iter().all(|note| !note.contains("telemetry")), "{:?}", settings.notes);
    let dev = read_all(&[], &["-dev"]).unwrap();
    assert!(dev.enable_debug && dev.telemetry.publish_node_metrics && !dev.telemetry.disable_hostname);
}

#[test]
fn a_directory_brings_its_files_in_order_of_their_names() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("2.hcl", "region = \"two\""), ("1.json", "{\"region\": \"one\"}"), ("0.txt", "?")] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let words = ["-dev".to_string(), format!("-config={}", directory.path().display())];
    let settings = read(&parse(specs(&[AGENT_FLAGS]), &words).unwrap(), &Environment::default()).unwrap();
    assert_eq!((settings.region.as_str(), settings.files.len()), ("two", 2));
}

#[test]
fn thresholds_of_garbage_collection_are_read() {
    let text = "server {\n  eval_gc_threshold = \"2h\"\n  batch_eval_gc_threshold = \"30h\"\n\
                deployment_gc_threshold = \"3h\"\n  root_key_gc_interval = \"20m\"\n\
                root_key_gc_threshold = \"2h\"\n  root_key_rotation_threshold = \"100h\"\n\
                acl_token_gc_threshold = \"1h\"\n  csi_volume_claim_gc_interval = \"5m\"\n}";
    let settings = read_all(&[("a.hcl", text)], &["-dev"]).unwrap();
    let (leftovers, keys) = (settings.server.garbage.leftovers, &settings.server.root_keys);
    let hours = |hours: i64| Duration::from_secs(hours * 3600);
    assert_eq!((leftovers.evals, leftovers.batch_evals), (hours(2), hours(30)));
    assert_eq!((leftovers.deployments, keys.every), (hours(3), Duration::from_secs(1200)));
    assert_eq!((keys.remove_after, keys.rotate_after), (hours(2), hours(100)));
    assert_eq!(settings.notes.len(), 2, "{:?}", settings.notes);
    assert!(settings.notes[0].contains("acl_token_gc_threshold has no effect: tokens are forgotten when"));
    for (text, message) in [
        ("server { eval_gc_threshold = \"-1s\" }", "server.eval_gc_threshold = -1s: expected at least 0s"),
        (
            "server { root_key_gc_interval = \"0s\" }",
            "server.root_key_gc_interval = 0s: expected at least 1s",
        ),
        (
            "server { oidc_issuer = \"cluster.example\" }",
            "server.oidc_issuer: expected an address like https://cluster.example, got \"cluster.example\"",
        ),
        ("server { csi_plugin_gc_threshold = \"x\" }", "\"csi_plugin_gc_threshold\": expected a duration"),
    ] {
        let refused = read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err();
        assert!(refused.contains(message), "{refused}");
    }
}

#[test]
fn the_scheduler_of_a_new_cluster_is_configured_in_a_file() {
    let text = "server {\n  default_scheduler_config {\n    scheduler_algorithm = \"spread\"\n\
                memory_oversubscription_enabled = true\n    preemption_config {\n\
                service_scheduler_enabled = true\n      system_scheduler_enabled = false\n    }\n  }\n}";
    let rules = read_all(&[("a.hcl", text)], &["-dev"]).unwrap().server.scheduler;
    assert_eq!(rules.algorithm, model::Algorithm::Spread);
    assert!(rules.memory_oversubscription && rules.preempting.service && !rules.preempting.system);
    let wrong = "server { default_scheduler_config { scheduler_algorithm = \"best\" } }";
    let refused = read_all(&[("a.hcl", wrong)], &["-dev"]).unwrap_err();
    assert!(
        refused.contains("a.hcl:1:59: \"scheduler_algorithm\": expected \"binpack\" or \"spread\""),
        "{refused}"
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once_for_all_files() {
    let first = "region = 3\nserver {\n  heartbeat_grace = \"x\"\n  num_schedulers = \"y\"\n  misspelt = 1\n}\n\
                 client {\n  host_network \"x\" {}\n  gc_interval = \"z\"\n  reserved { cpu = \"lots\" }\n}";
    let second = "vault { token = \"x\" }";
    let third = "ports {\n";
    let files = [("a.hcl", first), ("b.hcl", second), ("c.hcl", third)];
    let refused = read_all(&files, &["-dev"]).unwrap_err();
    let heads: Vec<&str> = refused.lines().filter(|line| line.contains(".hcl:")).collect();
    let places: Vec<String> = heads
        .iter()
        .map(|line| line.split(": ").find(|part| part.contains(".hcl")).unwrap().to_string())
        .collect();
    assert_eq!(
        places,
        [
            "a.hcl:3:21",
            "a.hcl:4:20",
            "a.hcl:5:3",
            "a.hcl:8:3",
            "a.hcl:9:17",
            "a.hcl:10:20",
            "b.hcl:1:17",
            "c.hcl:1:1",
        ],
        "{refused}"
    );
}

mod audit;
mod networks;
mod nodes;
mod servers;

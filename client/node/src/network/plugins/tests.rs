use std::os::unix::fs::PermissionsExt;

use super::super::request::Mode;
use super::super::rules::Forward;
use super::*;

/// A plugin that writes down how it was called, and answers as it should.
const PLUGIN: &str = r#"#!/bin/sh
here=$(dirname "$0")
input=$(cat)
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["0.3.1", "0.4.0", "1.0.0"]}'; exit;;
esac
echo "$CNI_COMMAND $(basename "$0") $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS" >> "$here/calls"
echo "$input" > "$here/$(basename "$0").$CNI_COMMAND"
if [ -e "$here/fail-$CNI_COMMAND" ]; then
    echo '{"code": 100, "msg": "no luck", "details": "today"}'
    exit 1
fi
if [ "$CNI_COMMAND" = ADD ]; then
    cat <<END
{"cniVersion": "1.0.0",
 "interfaces": [{"name": "br0"}, {"name": "eth0", "sandbox": "$CNI_NETNS"}],
 "ips": [{"interface": 1, "address": "fd00::2/64"}, {"interface": 1, "address": "10.9.0.2/24"}],
 "dns": {"nameservers": ["10.9.0.1"]}}
END
fi
"#;

struct Plugins {
    directory: tempfile::TempDir,
    settings: NetworkSettings,
}

impl Plugins {
    fn new(config: &Value) -> Plugins {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["first", "second"] {
            std::fs::write(at(name), PLUGIN).unwrap();
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::create_dir(at("config")).unwrap();
        std::fs::write(at("config/10-net.conflist"), config.to_string()).unwrap();
        let settings = NetworkSettings {
            cni_path: vec![directory.path().to_path_buf()],
            cni_config_dir: at("config"),
            ..NetworkSettings::default()
        };
        Plugins { directory, settings }
    }

    fn chain(&self) -> Result<Chain, NetworkError> {
        configured(&self.settings, "net", &request())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn calls(&self) -> Vec<String> {
        let calls = std::fs::read_to_string(self.at("calls")).unwrap_or_default();
        calls.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    }

    fn input(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.at(name)).unwrap()).unwrap()
    }
}

fn request() -> Request {
    Request {
        alloc_id: "a1".into(),
        mode: Mode::Plugins("net".into()),
        ports: vec![Forward { host: None, host_port: 20001, port: 80 }],
        isolated: None,
        driver: String::new(),
        hostname: None,
        args: vec![("IgnoreUnknown".into(), "true".into()), ("NOMAD_JOB_ID".into(), "web".into())],
    }
}

fn list(version: &str) -> Value {
    json!({"name": "net", "cniVersion": version, "plugins": [
        {"type": "first", "answer": 42},
        {"type": "second", "capabilities": {"portMappings": true}}
    ]})
}

#[test]
fn plugins_are_called_in_their_order_and_undone_in_the_other() {
    let plugins = Plugins::new(&list("0.4.0"));
    let mut chain = plugins.chain().unwrap();
    // Any path that exists.
    let namespace = plugins.at("config");
    let found = add(&plugins.settings, "a1", &mut chain, &namespace).unwrap();
    assert_eq!((found.interface.as_str(), found.address.as_str()), ("eth0", "10.9.0.2"));
    assert_eq!(found.address_v6, "fd00::2");
    assert_eq!(found.dns.unwrap().servers.0, ["10.9.0.1"]);
    let (first, second) = (plugins.input("first.ADD"), plugins.input("second.ADD"));
    assert_eq!(
        (&first["answer"], &first["name"], &first["prevResult"]),
        (&json!(42), &json!("net"), &Value::Null)
    );
    assert_eq!(second["runtimeConfig"]["portMappings"][1]["protocol"], "udp");
    assert_eq!(second["prevResult"]["ips"][0]["address"], "fd00::2/64");
    assert!(check(&plugins.settings, "a1", &chain, &namespace));
    remove(&plugins.settings, "a1", &chain, &namespace).unwrap();
    assert_eq!(plugins.input("first.DEL")["prevResult"], chain.result);
    let expected = ["ADD first", "ADD second", "CHECK first", "CHECK second", "DEL second", "DEL first"];
    assert_eq!(plugins.calls(), expected);
    let calls = std::fs::read_to_string(plugins.at("calls")).unwrap();
    assert!(calls.starts_with("ADD first a1 eth0 IgnoreUnknown=true;NOMAD_JOB_ID=web\n"), "{calls}");
}

#[test]
fn a_plugin_that_fails_is_quoted_and_what_was_done_is_undone() {
    let plugins = Plugins::new(&list("1.0.0"));
    std::fs::write(plugins.at("fail-ADD"), "").unwrap();
    let mut chain = plugins.chain().unwrap();
    let error = add(&plugins.settings, "a1", &mut chain, &plugins.at("config")).unwrap_err();
    assert_eq!(error.0, "CNI plugin \"first\" ADD: no luck: today");
    assert_eq!(plugins.calls(), ["ADD first", "DEL second", "DEL first"].repeat(3));
}

#[test]
fn the_newest_common_version_is_spoken() {
    let of = |config: Value| Plugins::new(&config).chain().map(|chain| chain.version).map_err(|e| e.0);
    assert_eq!(of(list("0.4.0")), Ok("0.4.0".to_string()));
    let mut several = list("0.3.1");
    several["cniVersions"] = json!(["0.4.0", "1.0.0", "1.1.0"]);
    assert_eq!(of(several), Ok("1.0.0".to_string()));
    let unknown = of(list("0.1.0")).unwrap_err();
    assert!(unknown.contains("cniVersion 0.1.0 is none of"), "{unknown}");
    let newer = of(list("1.1.0")).unwrap_err();
    assert!(newer.contains("the plugin \"first\" has none of the versions 1.1.0"), "{newer}");
    let mut missing = list("0.4.0");
    missing["plugins"][0]["type"] = json!("absent");
    let missing = of(missing).unwrap_err();
    assert!(missing.contains("CNI plugin \"absent\" VERSION: it is not installed in cni_path"), "{missing}");
}

#[test]
fn configurations_are_found_by_name() {
    let plugins = Plugins::new(&list("0.4.0"));
    let single = json!({"name": "one", "cniVersion": "0.4.0", "type": "first"});
    std::fs::write(plugins.at("config/20.conf"), single.to_string()).unwrap();
    std::fs::write(plugins.at("config/30.conf"), single.to_string()).unwrap();
    std::fs::write(plugins.at("config/40.json"), "{}").unwrap();
    std::fs::write(plugins.at("config/50.txt"), "x").unwrap();
    let found = configurations(&plugins.settings);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["net", "one"]);
    assert_eq!(found["one"]["plugins"][0]["type"], "first");
    let error = configured(&plugins.settings, "other", &request()).unwrap_err();
    assert!(error.0.starts_with("no network \"other\" is configured in cni_config_dir"), "{error}");
    assert!(!can_bridge(&plugins.settings));
    assert!(installed(&plugins.settings).contains_key("second"));
}

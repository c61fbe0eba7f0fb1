//! What nodes are introduced with, and the volumes that they have.

use keyring::{Enforcement, IntroductionSettings};

use super::*;

#[test]
fn the_introduction_token_comes_from_the_flag_the_environment_or_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.hcl");
    std::fs::write(&file, "client { intro_token = \"file\" }").unwrap();
    let token = |variable: &str, flags: &[&str]| {
        let words = [&["-dev", "-config", file.to_str().unwrap()], flags].concat();
        let words: Vec<String> = words.into_iter().map(str::to_string).collect();
        let environment = Environment { client_intro_token: variable.to_string(), ..Environment::default() };
        read(&parse(specs(&[AGENT_FLAGS]), &words).unwrap(), &environment).unwrap().client.intro_token
    };
    assert_eq!(token("", &[]), "file");
    assert_eq!(token("variable", &[]), "variable");
    assert_eq!(token("variable", &["-client-intro-token=flag"]), "flag");
}

#[test]
fn what_introduces_a_node_is_read_and_checked() {
    let read = |content: &str| {
        read_all(&[("a.hcl", &format!("server {{ client_introduction {{ {content} }} }}"))], &["-dev"])
    };
    let settings = read("enforcement = \"strict\"\ndefault_identity_ttl = \"1m\"").unwrap();
    let introduction = settings.server.introduction;
    assert_eq!(
        (introduction.enforcement, introduction.default_ttl),
        (Enforcement::Strict, Duration::from_secs(60))
    );
    assert_eq!(read("").unwrap().server.introduction, IntroductionSettings::default());
    let refused = read("enforcement = \"all\"").unwrap_err();
    assert!(refused.contains("a.hcl:1:46: ") && refused.contains("none, warn or strict"), "{refused}");
    let refused = read("default_identity_ttl = \"1h\"").unwrap_err();
    assert!(refused.contains("max_identity_ttl not below"), "{refused}");
}

#[test]
fn host_volumes_are_read_by_name_and_later_ones_win() {
    let hcl = "client {\n host_volume \"a\" {\n path = \"/a\"\n }\n host_volume \"b\" {\n path = \"/b\"\n read_only = true\n }\n}";
    let json = r#"{"client": {"host_volume": {"a": {"path": "/c"}}}}"#;
    let volumes = read_all(&[("a.hcl", hcl), ("b.json", json)], &["-dev"]).unwrap().client.host_volumes;
    let seen: Vec<_> = volumes
        .iter()
        .map(|(name, volume)| (name.as_str(), volume.path.to_str().unwrap(), volume.read_only))
        .collect();
    assert_eq!(seen, [("a", "/c", false), ("b", "/b", true)]);
    let relative =
        read_all(&[("a.hcl", "client { host_volume \"a\" { path = \"a\" } }")], &["-dev"]).unwrap_err();
    assert!(
        relative.contains("host_volume \"a\": expected a name, and a path that begins with /"),
        "{relative}"
    );
}

#[test]
fn users_for_tasks_are_a_range_above_root() {
    let read =
        |content: &str| read_all(&[("a.hcl", &format!("client {{ users {{ {content} }} }}"))], &["-dev"]);
    let users = read("dynamic_user_min = 1000\nhome_dir = \"/home/task\"").unwrap().client.dynamic_users;
    assert_eq!((users.uid_min, users.uid_max), (1000, 89_999));
    assert_eq!(users.home_dir, Some("/home/task".into()));
    for wrong in ["dynamic_user_min = 0", "dynamic_user_max = 79999", "dynamic_user_max = 4294967295"] {
        let refused = read(wrong).unwrap_err();
        assert!(refused.contains("expected two numbers above 0"), "{refused}");
    }
    assert!(read("home_dir = \"x\"").unwrap_err().contains("a path that begins with /"));
    assert!(read("uid = 1").unwrap_err().contains("uid"));
}

#[test]
fn a_node_says_of_its_host_what_the_operator_says() {
    let file = "client {\n network_speed = 40\n preferred_address_family = \"ipv6\"\n no_host_uuid = false\n\
                nomad_service_discovery = false\n client_min_port = 14000\n cpu_disable_dmidecode = true\n\
                alloc_mounts_dir = \"/m\"\n ephemeral_disk_quota = true\n}";
    let settings = read_all(&[("a.hcl", file)], &["-dev"]).unwrap();
    let client = &settings.client;
    assert_eq!((client.network_speed, client.preferred_address_family), (40, AddressFamily::Ipv6));
    assert!(client.id_of_host && !client.nomad_service_discovery);
    let noted = |text: &str| settings.notes.iter().any(|note| note.contains(text));
    assert!(noted("client.client_min_port has no effect: plugins listen on sockets of the file system"));
    assert!(noted("client.alloc_mounts_dir has no effect: nothing is mounted there"));
    assert!(client.ephemeral_disk_quota && !read_all(&[], &["-dev"]).unwrap().client.ephemeral_disk_quota);
    assert!(noted("client.cpu_disable_dmidecode has no effect: dmidecode is never run"));
    let flags = ["-dev", "-network-speed=10", "-preferred-address-family=ipv4", "-plugin-dir=/p"];
    let settings = read_all(&[("a.hcl", file)], &flags).unwrap();
    assert_eq!((settings.client.network_speed, settings.plugin_dir), (10, Some("/p".into())));
    assert_eq!(settings.client.preferred_address_family, AddressFamily::Ipv4);
    let settings = read_all(
        &[],
        &["-dev", "-host-volumes-dir=/v", "-host-volume-plugin-dir=/w", "-log-include-location"],
    );
    let settings = settings.unwrap();
    assert_eq!(settings.client.host_volumes_dir, Some("/v".into()));
    assert_eq!(settings.client.host_volume_plugin_dir, Some("/w".into()));
    assert!(settings.log.include_location);
    let paths = "client { artifact { filesystem_isolation_extra_paths = [\"d:rx:/opt\", \"x:r:/x\"] } }";
    let wrong = read_all(&[("a.hcl", paths)], &["-dev"]).unwrap_err();
    assert!(
        wrong.contains("filesystem_isolation_extra_paths: \"x:r:/x\": expected KIND:MODE:PATH"),
        "{wrong}"
    );
    let wrong = read_all(&[], &["-dev", "-preferred-address-family=v6"]).unwrap_err();
    assert_eq!(wrong, "-preferred-address-family v6: expected ipv4 or ipv6");
}

#[test]
fn a_consul_block_begins_with_what_consuls_own_variables_say() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file\n").unwrap();
    let given = [
        ("CONSUL_HTTP_ADDR", "10.0.0.9:8501"),
        ("CONSUL_HTTP_TOKEN_FILE", file.path().to_str().unwrap()),
        ("CONSUL_HTTP_SSL", "true"),
        ("CONSUL_HTTP_SSL_VERIFY", "false"),
        ("CONSUL_CACERT", "/ca.pem"),
        ("CONSUL_NAMESPACE", "ours"),
    ];
    let environment = Environment::read(given.map(|(name, value)| (name.into(), value.into())).into_iter());
    let read = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        read(&parse(specs(&[AGENT_FLAGS, SYSTEM_FLAGS]), &words).unwrap(), &environment).unwrap()
    };
    assert_eq!(read(&["-dev"]).consul, None);
    let consul = read(&["-dev", "-consul-auth=a:b"]).consul.unwrap();
    assert_eq!(
        (consul.url(), consul.own_token().unwrap()),
        ("https://10.0.0.9:8501".into(), "from a file".into())
    );
    assert!(!consul.verify_ssl && consul.ca_file == Path::new("/ca.pem") && consul.namespace == "ours");
    let given = read(&["-dev", "-consul-address=http://here:1", "-consul-token=mine"]).consul.unwrap();
    assert_eq!((given.url(), given.own_token().unwrap()), ("http://here:1".into(), "mine".into()));
    let dev = read(&["-dev-consul"]).consul.unwrap();
    assert!(dev.task_identity.is_some() && dev.address == "10.0.0.9:8501");
}

#[test]
fn flags_about_consul_and_vault_stand_for_their_blocks() {
    let file = "consul {\n address = \"10.0.0.1:8500\"\n client_failures_before_warning = 2\n}";
    let flags = [
        "-dev",
        "-consul-token=secret",
        "-consul-verify-ssl=false",
        "-consul-server-failures-before-critical=4",
        "-vault-enabled",
        "-vault-address=https://vault:8200",
        "-vault-ca-path=/ca",
    ];
    let settings = read_all(&[("a.hcl", file)], &flags).unwrap();
    let consul = settings.consul.unwrap();
    assert_eq!((consul.address.as_str(), consul.token.as_str()), ("10.0.0.1:8500", "secret"));
    assert_eq!((consul.client_failures.before_warning, consul.server_failures.before_critical), (2, 4));
    assert!(!consul.verify_ssl);
    let vault = &settings.vaults["default"];
    assert!(vault.enabled && vault.ca_path == std::path::Path::new("/ca"));
    assert_eq!(vault.address, "https://vault:8200");
    let wrong = read_all(&[], &["-dev", "-consul-client-failures-before-warning=x"]).unwrap_err();
    assert!(wrong.contains("-consul-client-failures-before-warning: expected a number"), "{wrong}");
    assert_eq!(read_all(&[], &["-dev"]).unwrap().consul, None);
}

#[test]
fn consul_and_vault_in_development_have_identities_for_their_tasks() {
    let settings = read_all(&[], &["-dev-consul", "-dev-vault"]).unwrap();
    assert!(settings.dev && settings.server.enabled);
    let identity = settings.consul.unwrap().task_identity.unwrap();
    assert_eq!((identity.audience, identity.ttl.0), (vec!["consul.io".to_string()], 3_600_000_000_000));
    let vault = &settings.vaults["default"];
    assert_eq!((vault.enabled, vault.address.as_str()), (true, "http://localhost:8200"));
    assert_eq!(vault.default_identity.as_ref().unwrap().audience, ["vault.io"]);
}

#[test]
fn a_node_looks_for_its_cloud_as_the_operator_says() {
    let file = "client {\n fingerprint \"env_gce\" {\n retry_attempts = -1\n exit_on_failure = true\n }\n}";
    let settings = read_all(&[("a.hcl", file)], &["-dev"]).unwrap();
    let address = |name: &str| (name == "DO_ENV_URL").then(|| "http://10.0.0.1/".to_string());
    let probes = crate::settings::clouds_with_addresses(&settings.client.clouds, address);
    let gce = &probes["env_gce"];
    assert_eq!((gce.retry_attempts, gce.exit_on_failure, gce.retry_interval.as_secs()), (-1, true, 2));
    assert_eq!(probes["env_digitalocean"].address.as_deref(), Some("http://10.0.0.1/"));
    for (text, message) in [
        ("fingerprint \"cpu\" {}", "fingerprint \"cpu\": expected one of env_aws, env_azure"),
        ("fingerprint \"env_aws\" { retry_interval = \"0s\" }", "retry_interval = 0s: expected more than 0s"),
    ] {
        let wrong = read_all(&[("a.hcl", &format!("client {{ {text} }}"))], &["-dev"]).unwrap_err();
        assert!(wrong.contains(message), "{wrong}");
    }
}

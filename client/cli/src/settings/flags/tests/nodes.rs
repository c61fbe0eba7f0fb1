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

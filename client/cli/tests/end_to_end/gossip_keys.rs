//! The key of gossip is replaced while servers run, and a restart keeps the new one.

use serde_json::json;

use super::cluster::Host;
use super::support::{Agent, AgentConfig, http, until};

const OLD: &str = "AAECAwQFBgcICQoLDA0ODw==";
const NEW: &str = "//////////////////////////////////////////8=";

#[test]
fn a_gossip_key_is_replaced_without_losing_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = [Host::local(), Host::local()];
    let configs = [0, 1].map(|nth: usize| {
        let config = AgentConfig::member(directory.path(), &format!("server-{nth}"), &hosts[nth], &hosts);
        let file = config.home.join("agent.hcl");
        let text = std::fs::read_to_string(&file).unwrap();
        let encrypted = text.replace("  num_schedulers", &format!("  encrypt = \"{OLD}\"\n  num_schedulers"));
        std::fs::write(file, encrypted).unwrap();
        config
    });
    let [first, second] = configs.each_ref().map(AgentConfig::launch);
    until_both_are_alive(&configs);

    let keyring = |words: &[&str]| first.run(&[&["operator", "gossip", "keyring"], words].concat());
    let listed = keyring(&["list"]).expect_success();
    assert_eq!(listed.lines().last().unwrap().split_whitespace().collect::<Vec<_>>(), [OLD, "2/2"]);
    let refused = keyring(&["install", "AAEC"]).expect_failure();
    assert!(refused.contains("Key: expected base64 of 16, 24 or 32 bytes: these are 3"), "{refused}");
    let refused = keyring(&["use", NEW]).expect_failure();
    assert!(refused.contains("server-1.global has not installed the key"), "{refused}");

    assert!(keyring(&["install", NEW]).expect_success().ends_with("The key is installed on 2 servers.\n"));
    assert!(keyring(&["use", NEW]).expect_success().ends_with("The key is in use on 2 servers.\n"));
    let refused = http::put(configs[1].http, "/v1/agent/keyring/remove", &json!({"Key": NEW})).unwrap();
    assert_eq!(refused.status, 500);
    assert!(refused.body.contains("server-0.global encrypts with the key"), "{}", refused.body);
    assert!(keyring(&["remove", OLD]).expect_success().ends_with("The key is removed on 2 servers.\n"));

    // Its configuration still has the old key.
    let second: Agent = second.kill().launch();
    until_both_are_alive(&configs);
    assert!(second.log().contains("server.encrypt is ignored"), "{}", second.log());
    let listed = http::get(configs[1].http, "/v1/agent/keyring/list").unwrap();
    assert_eq!(listed.json(), json!({"Messages": null, "Keys": {NEW: 2}, "NumNodes": 2}));
    for config in &configs {
        let stored = std::fs::read_to_string(config.home.join("data/server/serf.keyring")).unwrap();
        assert_eq!(stored, format!("[\"{NEW}\"]\n"));
    }
}

fn until_both_are_alive(configs: &[AgentConfig; 2]) {
    let alive = |config: &AgentConfig| {
        let answer = http::get(config.http, "/v1/agent/members").ok()?;
        let members = answer.json()["Members"].as_array()?.clone();
        Some(members.iter().filter(|member| member["Status"] == "alive").count())
    };
    until("both servers are alive", || configs.iter().all(|config| alive(config) == Some(2)));
}

//! Access control as its users meet it: switched on, bootstrapped, and handed out in parts.

use serde_json::Value;

use super::support::{AgentConfig, CommandOutput, eventually, sojourn, text};

fn run_as(config: &AgentConfig, token: &str, words: &[&str]) -> CommandOutput {
    config.user(&sojourn()).env("NOMAD_TOKEN", token).args(words).output().unwrap().into()
}

fn json(output: CommandOutput) -> Value {
    serde_json::from_str(&output.expect_success()).unwrap()
}

#[test]
fn a_cluster_is_bootstrapped_and_its_users_do_what_their_policies_say() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server");
    let client = AgentConfig::client(directory.path(), "client", &server);
    for config in [&server, &client] {
        let file = config.home.join("agent.hcl");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, text + "acl {\n  enabled = true\n}\n").unwrap();
    }
    let _running = [server.start(), client.start()];

    let root = eventually("the cluster has a key to seal secrets with", || {
        let made = run_as(&server, "", &["acl", "bootstrap", "-json"]);
        (made.code == 0).then(|| json(made))
    });
    let root = text(&root["SecretID"]);
    let again = run_as(&server, "", &["acl", "bootstrap"]).expect_failure();
    assert!(again.contains("ACL bootstrap already done (reset index: "), "{again}");

    let rules = directory.path().join("readers.hcl");
    std::fs::write(&rules, "node { policy = \"read\" }\nagent { policy = \"read\" }\n").unwrap();
    let rules = rules.to_str().unwrap();
    run_as(&server, &root, &["acl", "policy", "apply", "readers", rules]).expect_success();
    run_as(&server, &root, &["acl", "role", "create", "-name=staff", "-policy=readers"]).expect_success();
    let create = ["acl", "token", "create", "-json", "-name=ci", "-role-name=staff"];
    let token = json(run_as(&server, &root, &create));
    let (accessor, reader) = (text(&token["AccessorID"]), text(&token["SecretID"]));

    // Through the server, and through an agent that passes on what it does not know itself.
    for config in [&server, &client] {
        eventually("the node is there", || {
            let nodes = run_as(config, &reader, &["node", "status", "-json"]);
            (nodes.code == 0 && json(nodes).as_array().is_some_and(|nodes| nodes.len() == 1)).then_some(())
        });
        run_as(config, &reader, &["agent-info"]).expect_success();
        let own = run_as(config, &reader, &["acl", "token", "self"]).expect_success();
        assert!(own.contains(&accessor), "{own}");
        for (token, words) in [
            ("", &["node", "status"][..]),
            ("", &["agent-info"]),
            (&reader, &["system", "gc"]),
            (&reader, &["acl", "token", "list"]),
            (&reader, &["acl", "policy", "apply", "readers", rules]),
        ] {
            let refused = run_as(config, token, words).expect_failure();
            assert!(refused.contains("Permission denied"), "{words:?}: {refused}");
        }
    }

    let renamed = ["acl", "token", "update", "-name=robot", &accessor];
    let renamed = run_as(&server, &root, &renamed).expect_success();
    assert!(renamed.contains("= robot\n") && renamed.contains("  staff\n"), "{renamed}");
    run_as(&server, &root, &["acl", "token", "delete", &accessor]).expect_success();
    let gone = run_as(&server, &reader, &["node", "status"]).expect_failure();
    assert!(gone.contains("ACL token not found"), "{gone}");
}

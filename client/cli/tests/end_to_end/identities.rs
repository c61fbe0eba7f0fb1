//! What tasks and nodes prove themselves with, as their owners see it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::end_to_end::support::{AgentConfig, eventually, job, text};

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token has three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn key_of(token: &str) -> String {
    let header = token.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    text(&header["kid"])
}

#[test]
fn a_task_is_given_its_tokens_and_whoever_verifies_them_the_keys() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let server = server_config.start();
    let client = AgentConfig::client(directory.path(), "client", &server_config).start();
    server.wait_for_a_ready_node();
    let mut wanted = job("speaks", json!({"command": "/bin/sleep", "args": ["3600"]}));
    let task = &mut wanted["TaskGroups"][0]["Tasks"][0];
    task["Identity"] = json!({"Env": true, "File": true});
    task["Identities"] =
        json!([{"Name": "bank", "Audience": ["bank.io"], "TTL": 3_600_000_000_000_u64, "File": true}]);
    server.register(&wanted);
    let alloc = server.running("speaks");
    let read = |script: &str| {
        let ran = server.run(&["alloc", "exec", "-i=false", "-t=false", &alloc, "sh", "-c", script]);
        ran.expect_success()
    };
    let token = read("cat $NOMAD_SECRETS_DIR/nomad_token");
    assert_eq!(read("printf %s $NOMAD_TOKEN"), token);
    let own = claims(&token);
    assert_eq!(own["sub"], "global:default:speaks:group:main:default");
    assert_eq!((&own["nomad_allocation_id"], &own["exp"]), (&json!(alloc), &Value::Null));
    let keys = server.get("/.well-known/jwks.json");
    assert!(keys["keys"].as_array().unwrap().iter().any(|key| key["kid"] == key_of(&token).as_str()));
    let bank = claims(&read("cat $NOMAD_SECRETS_DIR/nomad_bank.jwt"));
    assert_eq!((&bank["aud"], &bank["nomad_task"]), (&json!(["bank.io"]), &json!("main")));

    let node = text(&server.get("/v1/nodes")[0]["ID"]);
    let identity = || {
        let shown = server.run(&["node", "identity", "get", "-json", &node[..8]]);
        (shown.code == 0).then(|| serde_json::from_str::<Value>(&shown.stdout).unwrap())
    };
    let before = eventually("the node has an identity", identity);
    assert_eq!(before["Claims"]["nomad_node_id"], node.as_str());
    server.run(&["node", "identity", "renew", &node[..8]]).expect_success();
    eventually("it has another one", || {
        identity().filter(|now| now["Claims"]["jti"] != before["Claims"]["jti"])
    });
    drop(client);
}

#[test]
fn a_new_node_shows_its_introduction_where_the_servers_insist() {
    let directory = tempfile::tempdir().unwrap();
    let server_config = AgentConfig::server(directory.path(), "server");
    let file = server_config.home.join("agent.hcl");
    let strict = "server {\n  client_introduction {\n    enforcement = \"strict\"\n  }\n}\n";
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + strict).unwrap();
    let server = server_config.start();
    let client_config = AgentConfig::client(directory.path(), "client", &server_config);
    let client = client_config.start();
    eventually("it is refused", || client.log().contains("Permission denied").then_some(()));
    client.kill();
    assert_eq!(server.get("/v1/nodes"), json!([]));

    // The cluster draws its first key a moment after it was founded.
    let token = eventually("a token is signed", || {
        let shown = server.run(&["node", "intro", "create", "-node-name=client"]);
        (shown.code == 0).then(|| shown.stdout.trim().lines().last().unwrap().to_string())
    });
    let state = client_config.home.join("data/client");
    std::fs::write(state.join("intro_token.jwt"), token).unwrap();
    let client = client_config.start();
    server.wait_for_a_ready_node();
    drop(client);
}

//! What tasks and nodes prove themselves with, as their owners see it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::end_to_end::support::{AgentConfig, CommandOutput, eventually, http, job, sojourn, text};

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

/// A cluster whose workloads prove themselves elsewhere, and here the other party is the cluster itself.
#[test]
fn tasks_log_in_with_tokens_of_an_ed25519_key_that_others_find_by_the_issuer() {
    let directory = tempfile::tempdir().unwrap();
    let config = AgentConfig::server_and_client(directory.path(), "one");
    let issuer = format!("http://{}", config.http);
    let file = config.home.join("agent.hcl");
    let words = format!("server {{\n  oidc_issuer = \"{issuer}\"\n}}\nacl {{\n  enabled = true\n}}\n");
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + &words).unwrap();
    let _running = config.start();
    let run = |token: &str, words: &[&str]| -> CommandOutput {
        config.user(&sojourn()).env("NOMAD_TOKEN", token).args(words).output().unwrap().into()
    };
    let root = eventually("the cluster has a key to seal secrets with", || {
        let made = run("", &["acl", "bootstrap", "-json"]);
        (made.code == 0).then(|| text(&serde_json::from_str::<Value>(&made.stdout).unwrap()["SecretID"]))
    });
    eventually("there is a key to sign with, which is to be another one", || {
        let listed = run(&root, &["operator", "root", "keyring", "list", "-verbose"]);
        listed.stdout.contains("RS256").then_some(())
    });
    let refused = run(&root, &["operator", "root", "keyring", "rotate", "-algo=dsa"]).expect_failure();
    assert!(refused.contains("invalid algo \"dsa\": expected rs256, eddsa or aes256-gcm"), "{refused}");
    let rotated =
        run(&root, &["operator", "root", "keyring", "rotate", "-algo=eddsa", "-json"]).expect_success();
    let rotated: Value = serde_json::from_str(&rotated).unwrap();
    assert_eq!(rotated["SigningAlgorithm"], "EdDSA");
    let listed = run(&root, &["operator", "root", "keyring", "list", "-verbose"]).expect_success();
    assert!(listed.contains("EdDSA") && listed.contains("RS256"), "{listed}");

    let discovery = http::get(config.http, "/.well-known/openid-configuration").unwrap().json();
    let expected = json!({
        "issuer": issuer, "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "EdDSA"],
    });
    assert_eq!(discovery, expected);

    let method = directory.path().join("method.json");
    let own = json!({
        "OIDCDiscoveryURL": issuer, "BoundAudiences": ["ci"], "SigningAlgs": ["EdDSA"],
        "ClaimMappings": {"nomad_job_id": "job"},
    });
    std::fs::write(&method, own.to_string()).unwrap();
    let method = format!("-config=@{}", method.display());
    let words = ["-name=jobs", "-type=JWT", "-token-locality=local", "-max-token-ttl=10m", &method];
    run(&root, &[&["acl", "auth-method", "create"][..], &words].concat()).expect_success();
    let words = ["-auth-method=jobs", "-selector=value.job == speaks", "-bind-type=management"];
    run(&root, &[&["acl", "binding-rule", "create"][..], &words].concat()).expect_success();

    let mut wanted = job("speaks", json!({"command": "/bin/sleep", "args": ["3600"]}));
    wanted["TaskGroups"][0]["Tasks"][0]["Identities"] =
        json!([{"Name": "ci", "Audience": ["ci"], "File": true}]);
    let file = directory.path().join("job.json");
    std::fs::write(&file, json!({"Job": wanted}).to_string()).unwrap();
    eventually("the job is placed", || {
        let ran = run(&root, &["job", "run", "-json", file.to_str().unwrap()]);
        (ran.code == 0).then_some(())
    });
    let exec = ["alloc", "exec", "-i=false", "-t=false", "-job", "speaks", "sh", "-c"];
    let token = eventually("the task has its token", || {
        let ran = run(&root, &[&exec[..], &["cat $NOMAD_SECRETS_DIR/nomad_ci.jwt"]].concat());
        (ran.code == 0).then_some(ran.stdout)
    });
    assert_eq!((key_of(&token), text(&claims(&token)["iss"])), (text(&rotated["KeyID"]), issuer));
    let login = |token: &str| run("", &["login", "-method=jobs", &format!("-login-token={token}")]);
    login(&token).expect_success();

    // It goes on proving who it is when the cluster signs with RSA again.
    run(&root, &["operator", "root", "keyring", "rotate", "-algo=rs256"]).expect_success();
    login(&token).expect_success();
    let (content, signature) = token.trim().rsplit_once('.').unwrap();
    let forged = format!("{content}.{}", signature.chars().rev().collect::<String>());
    let refused = login(&forged).expect_failure();
    assert!(refused.contains("401"), "{refused}");
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

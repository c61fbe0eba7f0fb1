//! An agent with a Vault, or what stands for one: see [`super::support::vault`]. The servers add the identity, sign it, and the
//! node logs in with it.

use serde_json::{Value, json};

use super::support::vault::FakeVault;
use super::support::{AgentConfig, eventually, job};

#[test]
fn a_job_with_a_vault_block_gets_its_token_and_its_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let (fake, west) = (FakeVault::start(), FakeVault::start());
    fake.change(|state| state.old.insert("app".into(), json!({"user": "bob"})));
    let block = format!(
        "vault {{\n  enabled = true\n  address = \"http://{}\"\n  create_from_role = \"nomad\"\n  default_identity {{\n    \
         aud = [\"vault.io\"]\n    ttl = \"1h\"\n  }}\n}}\nvault \"west\" {{\n  enabled = true\n  address = \"http://{}\"\n  \
         jwt_auth_backend_path = \"jwt-nomad\"\n  namespace = \"team\"\n}}\n",
        fake.address, west.address
    );
    let mut agent = AgentConfig::server_and_client(directory.path(), "one").with(&block).start();
    agent.wait_for_a_ready_node();
    eventually("the node has both", || {
        let node = agent.get("/v1/nodes")[0]["ID"].as_str()?.to_string();
        let attributes = agent.get(&format!("/v1/node/{node}"))["Attributes"].clone();
        let version = Value::from("1.18.3");
        (attributes["vault.version"] == version && attributes["vault.west.version"] == version).then_some(())
    });

    let seen = directory.path().join("seen");
    let line = format!(
        "echo $VAULT_TOKEN $(cat $NOMAD_SECRETS_DIR/vault_token) $VAULT_ADDR $(cat $NOMAD_TASK_DIR/conf) > {}.part; \
         mv {0}.part {0}; exec sleep 3600",
        seen.display()
    );
    let mut wanted = job("shop", json!({"command": "/bin/sh", "args": ["-c", line]}));
    let task = &mut wanted["TaskGroups"][0]["Tasks"][0];
    task["Vault"] = json!({"Role": "shop"});
    let text = "{{ with secret \"old/app\" }}{{ .Data.user }}{{ end }}";
    task["Templates"] = json!([{"EmbeddedTmpl": text, "DestPath": "local/conf"}]);
    agent.register(&wanted);
    agent.running("shop");
    let expected = format!("hvs.1 hvs.1 http://{} bob\n", fake.address);
    let text = eventually("the output", || std::fs::read_to_string(&seen).ok());
    assert_eq!(text, expected);
    let identities = agent.get("/v1/job/shop")["TaskGroups"][0]["Tasks"][0]["Identities"].clone();
    assert_eq!(
        (&identities[0]["Name"], &identities[0]["Audience"]),
        (&json!("vault_default"), &json!(["vault.io"]))
    );
    let (role, _, jwt) = fake.change(|state| state.logins[0].clone());
    assert_eq!(role, "shop");
    let claims = claims(&jwt);
    assert_eq!((&claims["aud"], &claims["nomad_job_id"]), (&json!(["vault.io"]), &json!("shop")));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);

    // Another Vault, for which the job brings the identity.
    let mut other = job("other", json!({"command": "/bin/sh", "args": ["-c", "exec sleep 3600"]}));
    let task = &mut other["TaskGroups"][0]["Tasks"][0];
    task["Vault"] = json!({"Cluster": "west"});
    task["Identities"] = json!([{"Name": "vault_west", "Audience": ["west.io"]}]);
    agent.register(&other);
    agent.running("other");
    let login = west.change(|state| state.logins[0].clone());
    assert_eq!((login.0.as_str(), login.1.as_str()), ("", "team"));

    agent.run(&["job", "stop", "-detach", "shop"]).expect_success();
    eventually("the token is revoked", || fake.change(|state| (state.revoked == ["hvs.1"]).then_some(())));
    agent.run(&["job", "stop", "-detach", "other"]).expect_success();
    eventually("the other token is revoked", || {
        west.change(|state| (state.revoked == ["hvs.1"]).then_some(()))
    });
    assert!(agent.interrupt().success());
}

/// What a token says of itself.
fn claims(jwt: &str) -> Value {
    use base64::Engine;
    let part = jwt.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

//! Policies, roles and tokens over HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY, bootstrap, draw_root_key, empty, with_token};
use crate::support::{Cluster, assert_holds};

const READ: &str = r#"namespace "default" { policy = "read" }"#;

#[tokio::test]
async fn the_first_token_is_made_once() {
    let cluster = empty().await;
    let first = bootstrap(&cluster).await;
    let made = json!({"Name": "Bootstrap Token", "Type": "management", "Global": true, "ExpirationTTL": ""});
    assert_holds(&first.json(), &made);
    // Nomad's servers say so, and other people's tools rely on that.
    assert_eq!(first.json().get("ExpirationTime"), Some(&Value::Null));
    let index = first.index();
    bootstrap(&cluster).await.refused(400, &format!("ACL bootstrap already done (reset index: {index})"));
}

#[tokio::test]
async fn who_bootstraps_a_cluster_that_has_no_key_yet_waits_for_it() {
    let cluster = Cluster::start_with(|agent| agent.access.enabled = true).await;
    let (first, ()) = tokio::join!(bootstrap(&cluster), draw_root_key(&cluster));
    assert_eq!(first.status, 200, "{}", first.text());
}

#[tokio::test]
async fn the_first_token_is_made_again_with_the_index_in_the_file() {
    let dir = std::env::temp_dir().join(format!("acl-reset-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("acl-bootstrap-reset");
    let known = file.clone();
    let guarded = Guarded::start_with(move |agent| agent.access.reset_file = Some(known)).await;
    let first =
        guarded.get(&guarded.root, "/v1/acl/token/self").await.json()["CreateIndex"].as_u64().unwrap();
    std::fs::write(&file, format!("{}\n", first + 1)).unwrap();
    bootstrap(&guarded.cluster)
        .await
        .refused(400, &format!("ACL bootstrap already done (reset index: {first})"));
    std::fs::write(&file, "soon").unwrap();
    assert_eq!(bootstrap(&guarded.cluster).await.status, 500);
    std::fs::write(&file, format!("{first}\n")).unwrap();
    let again = bootstrap(&guarded.cluster).await;
    assert_eq!(again.status, 200, "{}", again.text());
    assert_ne!(again.json()["SecretID"], json!(guarded.root));
    // Once is enough: the index in the file is not the last one any more.
    assert_eq!(bootstrap(&guarded.cluster).await.status, 400);
    std::fs::remove_dir_all(dir).unwrap();
}

#[tokio::test]
async fn a_given_secret_becomes_that_of_the_first_token() {
    let cluster = empty().await;
    let ask = async |secret: &str| {
        let body = json!({"BootstrapSecret": secret});
        cluster.send(with_token(NOBODY, axum::http::Method::PUT, "/v1/acl/bootstrap", &body)).await
    };
    ask("hunter2").await.refused(400, "invalid acl token");
    let own = "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11";
    assert_eq!(ask(own).await.json()["SecretID"], own);
    // I10: the secret is in no batch of the log.
    for batch in cluster.journal.batches() {
        let bytes = batch.bytes();
        assert!(!bytes.windows(own.len()).any(|part| part == own.as_bytes()));
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_named() {
    let guarded = Guarded::start().await;
    let wrong: [(Value, &str); 9] = [
        (json!({"Type": "client"}), "client token missing policies or roles"),
        (json!({"Type": "root"}), "invalid token type \"root\": expected client or management"),
        (
            json!({"Type": "management", "Policies": ["a"]}),
            "management token cannot be associated with policies or roles",
        ),
        (json!({"Type": "client", "Roles": [{"Name": "none"}]}), "cannot find role none"),
        (
            json!({"Type": "client", "Policies": ["a"], "Name": "x".repeat(257)}),
            "invalid token name: expected at most 256 bytes",
        ),
        (
            json!({"Type": "client", "Policies": ["a"], "ExpirationTTL": "1s"}),
            "expiration time cannot be less than 1m0s in the future (and was 1s)",
        ),
        (
            json!({"Type": "client", "Policies": ["a"], "ExpirationTTL": "48h"}),
            "expiration time cannot be more than 24h0m0s in the future (and was 48h0m0s)",
        ),
        (
            json!({"Type": "management", "SecretID": "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11"}),
            "only a client token with an accessor can bring its own secret",
        ),
        (
            json!({"AccessorID": "8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11", "Type": "management"}),
            "cannot find token 8f1d8f9c-1c2e-4b1a-9a51-0d1d3f6d5f11",
        ),
    ];
    let before = guarded.cluster.journal.batches().len();
    for (token, why) in wrong {
        guarded.put(&guarded.root, "/v1/acl/token", &token).await.refused(400, why);
    }
    assert_eq!(guarded.cluster.journal.batches().len(), before);
}

#[tokio::test]
async fn tokens_are_changed_listed_and_deleted_by_who_manages() {
    let guarded = Guarded::start().await;
    let (root, secret) = (&guarded.root, guarded.caller("reader", READ).await);
    let own = guarded.get(&secret, "/v1/acl/token/self").await.json();
    assert_holds(&own, &json!({"Name": "reader", "SecretID": secret, "Policies": ["reader"], "Roles": null}));
    let path = format!("/v1/acl/token/{}", own["AccessorID"].as_str().unwrap());
    assert_eq!(guarded.get(&secret, &path).await.json(), own, "its own");
    guarded.get(NOBODY, &path).await.refused(403, "Permission denied");
    guarded.get(&secret, "/v1/acl/tokens").await.refused(403, "Permission denied");
    let list = guarded.get(root, "/v1/acl/tokens").await.json();
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert!(list.as_array().unwrap().iter().all(|stub| stub.get("SecretID").is_none()), "{list}");

    let mut changed = own.clone();
    changed["Name"] = json!("renamed");
    guarded.put(&secret, &path, &changed).await.refused(403, "Permission denied");
    assert_eq!(guarded.put(root, &path, &changed).await.json()["Name"], "renamed");
    changed["Type"] = json!("management");
    changed["Policies"] = json!([]);
    guarded.put(root, &path, &changed).await.refused(400, "cannot change the type of a token");
    assert_eq!(guarded.delete(root, &path).await.status, 200);
    assert_eq!(guarded.delete(root, &path).await.status, 400);
    guarded.get(root, &path).await.refused(404, "ACL token not found");
}

#[tokio::test]
async fn a_token_that_has_expired_is_worth_nothing() {
    let guarded = Guarded::start_with(|agent| agent.access.ttl_min = base::Duration::ZERO).await;
    guarded.policy("reader", READ).await;
    let wanted = json!({"Name": "short", "Type": "client", "Policies": ["reader"], "ExpirationTTL": "300ms"});
    let token = guarded.token(&wanted).await;
    let secret = token["SecretID"].as_str().unwrap();
    let end = async {
        while guarded.get(secret, "/v1/jobs").await.status == 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), end).await.unwrap();
    guarded.get(secret, "/v1/jobs").await.refused(403, "ACL token expired");
}

#[tokio::test]
async fn a_role_gives_what_its_policies_say() {
    let guarded = Guarded::start().await;
    let root = &guarded.root;
    guarded.policy("reader", READ).await;
    let refused = json!({"Name": "r", "Policies": [{"Name": "none"}]});
    guarded.put(root, "/v1/acl/role", &refused).await.refused(400, "cannot find policy none");
    let role = guarded
        .put(root, "/v1/acl/role", &json!({"Name": "r", "Policies": [{"Name": "reader"}]}))
        .await
        .json();
    let id = role["ID"].as_str().unwrap();
    let token = guarded.token(&json!({"Type": "client", "Roles": [{"Name": "r"}]})).await;
    assert_eq!(token["Roles"], json!([{"ID": id, "Name": "r"}]));
    let secret = token["SecretID"].as_str().unwrap();
    assert_eq!(guarded.get(secret, "/v1/jobs").await.status, 200);
    assert_eq!(guarded.get(secret, "/v1/acl/role/name/r").await.json()["ID"], id);
    assert_eq!(guarded.get(secret, "/v1/acl/roles").await.json().as_array().unwrap().len(), 1);
    assert_eq!(guarded.get(secret, "/v1/acl/policy/self").await.json()[0]["Name"], "reader");
    let other = guarded.caller("other", r#"node { policy = "read" }"#).await;
    guarded.get(&other, &format!("/v1/acl/role/{id}")).await.refused(403, "Permission denied");
    assert_eq!(guarded.get(&other, "/v1/acl/roles").await.json(), json!([]));
    assert_eq!(guarded.delete(root, &format!("/v1/acl/role/{id}")).await.status, 200);
    guarded.get(secret, "/v1/jobs").await.refused(403, "Permission denied");
}

#[tokio::test]
async fn rules_that_cannot_be_understood_are_refused() {
    let guarded = Guarded::start().await;
    let put = async |rules: &str| {
        guarded.put(&guarded.root, "/v1/acl/policy/p", &json!({"Name": "p", "Rules": rules})).await
    };
    for rules in ["", "namespace", "namespace \"a\" { policy = \"rule\" }", "nodes { policy = \"read\" }"] {
        let got = put(rules).await;
        assert_eq!(got.status, 400, "{rules}: {}", got.text());
        assert!(got.text().starts_with("failed to parse rules: "), "{}", got.text());
    }
    let json_rules = r#"{"namespace": {"default": {"policy": "read"}}}"#;
    assert_eq!(put(json_rules).await.status, 200);
    let shown = guarded.get(&guarded.root, "/v1/acl/policy/p").await.json();
    assert_eq!(shown["Rules"], json_rules);
    assert_eq!(shown["RulesJSON"]["Namespaces"][0]["Name"], "default");
    guarded.get(&guarded.root, "/v1/acl/policy/q").await.refused(404, "ACL policy not found");
}

#[tokio::test]
async fn a_one_time_token_is_exchanged_once() {
    let guarded = Guarded::start().await;
    let reader = guarded.caller("reader", READ).await;
    guarded.put(NOBODY, "/v1/acl/token/onetime", &json!({})).await.refused(403, "Permission denied");
    let made = guarded.put(&reader, "/v1/acl/token/onetime", &json!({})).await.json();
    let exchange = json!({"OneTimeSecretID": made["OneTimeToken"]["OneTimeSecretID"]});
    let token = guarded.put(NOBODY, "/v1/acl/token/onetime/exchange", &exchange).await.json();
    assert_eq!(token["Token"]["SecretID"], json!(reader));
    guarded.put(NOBODY, "/v1/acl/token/onetime/exchange", &exchange).await.refused(403, "Permission denied");
}

#[tokio::test]
async fn without_access_control_there_is_nothing_of_it() {
    let cluster = Cluster::start().await;
    for path in ["/v1/acl/policies", "/v1/acl/tokens", "/v1/acl/roles", "/v1/acl/none"] {
        cluster.get(path).await.refused(400, "ACL support disabled");
    }
    let own = cluster.get("/v1/acl/token/self").await.json();
    assert_holds(
        &own,
        &json!({"AccessorID": "acls-disabled", "Name": "ACLs disabled token", "Type": "client"}),
    );
    assert_holds(&cluster.get("/v1/acl/access").await.json(), &json!({"Management": true, "Agent": "write"}));
}

/// Agents of Nomad ask for these in the name of their callers.
#[tokio::test]
async fn policies_and_roles_are_shown_to_who_has_them() {
    let guarded = Guarded::start().await;
    let (gate, reader) = (&guarded.cluster.gate, guarded.caller("reader", READ).await);
    guarded.policy("other", READ).await;
    let role = json!({"Name": "staff", "Policies": [{"Name": "other"}]});
    let role =
        guarded.put(&guarded.root, "/v1/acl/role", &role).await.json()["ID"].as_str().unwrap().to_string();
    let member = json!({"Name": "m", "Type": "client", "Roles": [{"ID": role}]});
    let member = guarded.token(&member).await["SecretID"].as_str().unwrap().to_string();
    let policies = async |token: &str, names: Option<&[&str]>| {
        let names: Option<Vec<String>> = names.map(|names| names.iter().map(ToString::to_string).collect());
        let found = gate.policies(token, names.as_deref()).await.map_err(|refused| refused.status.as_u16());
        found.map(|found| found.into_iter().map(|policy| policy.name).collect::<Vec<_>>())
    };
    assert_eq!(policies(&reader, None).await, Ok(vec!["reader".to_string()]));
    // One that is not there is no secret, and gives nothing.
    assert_eq!(policies(&reader, Some(&["reader", "gone"])).await, Ok(vec!["reader".to_string()]));
    assert_eq!(policies(&reader, Some(&["other"])).await, Err(403));
    assert_eq!(policies(NOBODY, Some(&["other"])).await, Err(403));
    assert_eq!(policies(&member, Some(&["other"])).await, Ok(vec!["other".to_string()]));
    assert_eq!(policies(&guarded.root, Some(&["other", "reader"])).await.unwrap().len(), 2);
    let roles = async |token: &str| {
        gate.roles(token, std::slice::from_ref(&role)).await.map(|roles| roles.len()).ok()
    };
    assert_eq!(
        (roles(&member).await, roles(&reader).await, roles(&guarded.root).await),
        (Some(1), None, Some(1))
    );
    let token = gate.token(&member).await.unwrap().unwrap();
    assert_eq!((token.secret_id.as_str(), token.roles[0].name.as_str()), ("", "staff"));
    assert_eq!(gate.token(NOBODY).await.unwrap(), None);
}

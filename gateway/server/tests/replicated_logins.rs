//! How one logs in everywhere is decided in one region: auth methods for tokens of all regions, and their binding rules.

use serde_json::{Value, json};

use crate::provider::{TestKey, seconds};
use crate::regions::Federation;
use crate::replicated::{Region, following};

const READS_NODES: &str = "node { policy = \"read\" }";

fn method(name: &str, locality: &str, key: &TestKey) -> Value {
    json!({
        "Name": name, "Type": "JWT", "TokenLocality": locality, "MaxTokenTTL": "30m",
        "Config": {
            "JWTValidationPubKeys": [key.public_pem()], "BoundAudiences": ["sojourn"],
            "ClaimMappings": {"sub": "user"},
        },
    })
}

/// Its id.
async fn bind(region: &Region, method: &str, selector: &str) -> String {
    let rule =
        json!({"AuthMethod": method, "Selector": selector, "BindType": "policy", "BindName": "readers"});
    let made = region.done("PUT", "/v1/acl/binding-rule", &rule).await.json();
    made["ID"].as_str().unwrap().to_string()
}

fn login(method: &str, key: &TestKey) -> Value {
    let claims = json!({"sub": "alice", "aud": "sojourn", "exp": seconds() + 60});
    json!({"AuthMethodName": method, "LoginToken": key.sign(&claims)})
}

async fn has_readers(us: &Region) {
    us.done("PUT", "/v1/acl/policy/readers", &json!({"Name": "readers", "Rules": READS_NODES})).await;
    us.until_there("/v1/acl/policy/readers", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_logs_in_for_all_regions_is_answered_where_that_is_decided() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    has_readers(&us).await;
    let key = TestKey::new("k1");
    us.done("PUT", "/v1/acl/auth-method", &method("corp", "global", &key)).await;
    eu.until_there("/v1/acl/auth-method/corp", true).await;
    us.until_there("/v1/acl/auth-method/corp", true).await;
    let id = bind(&us, "corp", "value.user == alice").await;
    let rule = format!("/v1/acl/binding-rule/{id}");
    us.until_there(&rule, true).await;
    for path in ["/v1/acl/auth-method/corp", rule.as_str()] {
        let (mut here, mut there) = (
            us.done("GET", path, &Value::Null).await.json(),
            eu.done("GET", path, &Value::Null).await.json(),
        );
        for own in ["CreateIndex", "ModifyIndex", "Hash"] {
            (here[own], there[own]) = (Value::Null, Value::Null);
        }
        assert_eq!(here, there, "{path}");
    }

    let token = us.done("PUT", "/v1/acl/login", &login("corp", &key)).await.json();
    assert_eq!(token["Global"], true);
    let (accessor, secret) = (token["AccessorID"].as_str().unwrap(), token["SecretID"].as_str().unwrap());
    assert_eq!(eu.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 200, "it was made there");
    us.until_there(&format!("/v1/acl/token/{accessor}"), true).await;
    assert_eq!(us.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 200);

    // Changes come too, and what belongs to a method goes with it.
    us.done("PUT", &rule, &json!({"ID": id, "Description": "the office"})).await;
    let described = async || us.send("GET", &rule, &Value::Null).await.json()["Description"] == "the office";
    us.place.until("the rule is described", described).await;
    us.done("PUT", "/v1/acl/auth-method/corp", &json!({"Name": "corp", "MaxTokenTTL": "1h"})).await;
    let longer = async || {
        us.send("GET", "/v1/acl/auth-method/corp", &Value::Null).await.json()["MaxTokenTTL"] == "1h0m0s"
    };
    us.place.until("tokens live longer", longer).await;
    us.done("DELETE", "/v1/acl/auth-method/corp", &Value::Null).await;
    us.until_there("/v1/acl/auth-method/corp", false).await;
    us.until_there(&rule, false).await;
    assert_eq!(us.send("PUT", "/v1/acl/login", &login("corp", &key)).await.status, 400);
    // There it holds for nobody until its method is back.
    eu.until_there(&rule, true).await;
    eu.done("PUT", "/v1/acl/auth-method", &method("corp", "global", &key)).await;
    us.until_there(&rule, true).await;
    us.done("DELETE", &rule, &Value::Null).await;
    eu.until_there(&rule, false).await;
    us.until_there(&rule, false).await;
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_for_tokens_of_one_region_stays_there() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    has_readers(&us).await;
    let key = TestKey::new("k1");
    us.done("PUT", "/v1/acl/auth-method", &method("office", "local", &key)).await;
    let own = format!("/v1/acl/binding-rule/{}", bind(&us, "office", "").await);
    eu.done("PUT", "/v1/acl/auth-method", &method("plant", "local", &key)).await;
    let of_plant = format!("/v1/acl/binding-rule/{}", bind(&eu, "plant", "").await);
    // What is for all comes after it, so the others have been seen and left.
    eu.done("PUT", "/v1/acl/auth-method", &method("corp", "global", &key)).await;
    let of_corp = format!("/v1/acl/binding-rule/{}", bind(&eu, "corp", "").await);
    us.until_there(&of_corp, true).await;
    us.until_there(&own, true).await;
    assert_eq!(us.names("/v1/acl/auth-methods", "Name").await, ["corp", "office"]);
    assert_eq!(eu.names("/v1/acl/auth-methods", "Name").await, ["corp", "plant"]);
    assert_eq!(us.send("GET", &of_plant, &Value::Null).await.status, 404);

    let token = us.done("PUT", "/v1/acl/login", &login("office", &key)).await.json();
    let secret = token["SecretID"].as_str().unwrap();
    assert_eq!(token["Global"], false);
    assert_eq!(us.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 200);
    assert_eq!(eu.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 403);

    // A name that both have: each keeps its own, and the log says why.
    eu.done("PUT", "/v1/acl/auth-method", &method("office", "global", &key)).await;
    let second = format!("/v1/acl/binding-rule/{}", bind(&eu, "corp", "value.user == bob").await);
    us.until_there(&second, true).await;
    let kept = us.done("GET", "/v1/acl/auth-method/office", &Value::Null).await.json();
    assert_eq!(kept["TokenLocality"], "local");
    us.done("DELETE", "/v1/acl/auth-method/office", &Value::Null).await;
    // It is taken over once the name is free.
    us.until_there("/v1/acl/auth-method/office", true).await;
    let taken_over = us.done("GET", "/v1/acl/auth-method/office", &Value::Null).await.json();
    assert_eq!(taken_over["TokenLocality"], "global");
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_method_moves_to_another_one() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    let key = TestKey::new("k1");
    let default = |name: &str, is: bool| {
        let mut method = method(name, "global", &key);
        method["Default"] = json!(is);
        method
    };
    eu.done("PUT", "/v1/acl/auth-method", &default("b", true)).await;
    us.until_there("/v1/acl/auth-method/b", true).await;
    eu.done("PUT", "/v1/acl/auth-method/b", &default("b", false)).await;
    eu.done("PUT", "/v1/acl/auth-method", &default("a", true)).await;
    us.until_there("/v1/acl/auth-method/a", true).await;
    let list = us.done("GET", "/v1/acl/auth-methods", &Value::Null).await.json();
    assert_eq!((&list[0]["Default"], &list[1]["Default"]), (&json!(true), &json!(false)));
    federation.shutdown([eu.place, us.place]).await;
}

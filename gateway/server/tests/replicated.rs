//! What one region decides for another one: passed on, copied, and deleted again.

use serde_json::{Value, json};

use crate::regions::{Answer, Federation, Place};

pub(crate) struct Region {
    pub(crate) place: Place,
    /// The secret of a management token that is good in both.
    pub(crate) token: String,
}

impl Region {
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send_as(&self.token, method, path, body).await
    }

    pub(crate) async fn send_as(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.place.send(method, path, &text, &format!("X-Nomad-Token: {token}\r\n")).await
    }

    pub(crate) async fn done(&self, method: &str, path: &str, body: &Value) -> Answer {
        let answer = self.send(method, path, body).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
        answer
    }

    pub(crate) async fn names(&self, path: &str, field: &str) -> Vec<String> {
        let list = self.done("GET", path, &Value::Null).await.json();
        let names = list.as_array().unwrap().iter().map(|object| object[field].as_str().unwrap().to_string());
        names.collect()
    }

    pub(crate) async fn until_there(&self, path: &str, there: bool) {
        let status = if there { 200 } else { 404 };
        let is_so = async || self.send("GET", path, &Value::Null).await.status == status;
        self.place.until(&format!("{path} is {status}"), is_so).await;
    }
}

/// The region `us` follows `eu`.
pub(crate) async fn following(federation: &mut Federation) -> (Region, Region) {
    let eu = federation.start("eu", 1, true).await;
    let token = eu.bootstrap().await;
    federation.follow("eu", &token);
    let us = federation.start("us", 1, true).await;
    us.join(&eu).await;
    let (eu, us) = (Region { place: eu, token: token.clone() }, Region { place: us, token });
    us.place
        .until("the first token is good", async || {
            us.send("GET", "/v1/nodes", &Value::Null).await.status == 200
        })
        .await;
    (eu, us)
}

const POLICY: &str = "node { policy = \"read\" }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_authoritative_region_has_comes_to_the_others_and_goes_with_it() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    // Written at the other region: it is passed on.
    us.done("PUT", "/v1/acl/policy/readers", &json!({"Name": "readers", "Rules": POLICY})).await;
    eu.until_there("/v1/acl/policy/readers", true).await;
    us.until_there("/v1/acl/policy/readers", true).await;
    let role = json!({"Name": "watchers", "Policies": [{"Name": "readers"}]});
    let role = us.done("PUT", "/v1/acl/role", &role).await.json()["ID"].as_str().unwrap().to_string();
    let role_path = format!("/v1/acl/role/{role}");
    us.until_there(&role_path, true).await;
    us.done("PUT", "/v1/namespace/shop", &json!({"Name": "shop", "Description": "sells"})).await;
    us.done("PUT", "/v1/node/pool/gpu", &json!({"Name": "gpu", "Description": "fast"})).await;
    us.until_there("/v1/namespace/shop", true).await;
    us.until_there("/v1/node/pool/gpu", true).await;
    assert_eq!(us.done("GET", "/v1/namespace/shop", &Value::Null).await.json()["Description"], "sells");
    let token = json!({"Name": "eyes", "Type": "client", "Global": true, "Roles": [{"ID": role}]});
    let made = us.done("PUT", "/v1/acl/token", &token).await.json();
    let (accessor, secret) = (made["AccessorID"].as_str().unwrap(), made["SecretID"].as_str().unwrap());
    let token_path = format!("/v1/acl/token/{accessor}");
    us.until_there(&token_path, true).await;
    let copied = us.done("GET", &token_path, &Value::Null).await.json();
    assert_eq!((&copied["SecretID"], &copied["Global"]), (&json!(secret), &json!(true)));
    for region in [&eu, &us] {
        assert_eq!(region.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 200);
        assert_eq!(region.send_as(secret, "GET", "/v1/acl/tokens", &Value::Null).await.status, 403);
    }
    // Changes come too.
    us.done(
        "PUT",
        &token_path,
        &json!({"AccessorID": accessor, "Name": "more eyes", "Type": "client", "Global": true,
        "Policies": ["readers"]}),
    )
    .await;
    let changed = async || us.send("GET", &token_path, &Value::Null).await.json()["Name"] == "more eyes";
    us.place.until("the token has its new name", changed).await;

    for path in [&token_path, &role_path, "/v1/acl/policy/readers", "/v1/namespace/shop", "/v1/node/pool/gpu"]
    {
        us.done("DELETE", path, &Value::Null).await;
        eu.until_there(path, false).await;
        us.until_there(path, false).await;
    }
    assert_eq!(us.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 403);
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_one_region_stays_there() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    us.done("PUT", "/v1/acl/policy/readers", &json!({"Name": "readers", "Rules": POLICY})).await;
    us.until_there("/v1/acl/policy/readers", true).await;
    let local = json!({"Name": "here", "Type": "client", "Policies": ["readers"]});
    let made = us.done("PUT", "/v1/acl/token", &local).await.json();
    let (accessor, secret) = (made["AccessorID"].as_str().unwrap(), made["SecretID"].as_str().unwrap());
    assert_eq!(us.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 200);
    assert_eq!(eu.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 403);
    let there = json!({"Name": "there", "Type": "client", "Policies": ["readers"]});
    eu.done("PUT", "/v1/acl/token", &there).await;
    // What is global comes after it, so the other one has been seen and left.
    let both = json!({"Name": "both", "Type": "client", "Policies": ["readers"], "Global": true});
    let both =
        eu.done("PUT", "/v1/acl/token", &both).await.json()["AccessorID"].as_str().unwrap().to_string();
    us.until_there(&format!("/v1/acl/token/{both}"), true).await;
    let mut names = us.names("/v1/acl/tokens", "Name").await;
    names.sort();
    assert_eq!(names, ["Bootstrap Token", "both", "here"]);
    us.done("DELETE", &format!("/v1/acl/token/{accessor}"), &Value::Null).await;
    assert_eq!(us.send_as(secret, "GET", "/v1/nodes", &Value::Null).await.status, 403);
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_was_away_catches_up() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    for name in ["first", "second"] {
        us.done("PUT", &format!("/v1/namespace/{name}"), &json!({"Name": name})).await;
        us.until_there(&format!("/v1/namespace/{name}"), true).await;
    }
    let Region { place, token } = us;
    let place = federation.stop(place).await;
    eu.done("DELETE", "/v1/namespace/first", &Value::Null).await;
    eu.done("PUT", "/v1/namespace/third", &json!({"Name": "third"})).await;
    let us = Region { place: federation.resume(place, true).await, token };
    // It is alone, and goes on with what it has.
    assert_eq!(us.names("/v1/namespaces", "Name").await, ["default", "first", "second"]);
    let job = json!({"ID": "web", "Namespace": "second", "TaskGroups": [{"Name": "group", "Tasks": [
        {"Name": "task", "Driver": "raw_exec", "Config": {"command": "/bin/true"}}]}]});
    us.done("PUT", "/v1/jobs", &json!({"Job": job})).await;
    let refused = us.send("PUT", "/v1/namespace/fourth", &json!({"Name": "fourth"})).await;
    assert_eq!((refused.status, refused.body.as_str()), (500, "No path to region"));
    us.place.join(&eu.place).await;
    us.until_there("/v1/namespace/third", true).await;
    us.until_there("/v1/namespace/first", false).await;
    assert_eq!(us.names("/v1/namespaces", "Name").await, ["default", "second", "third"]);
    assert_eq!(us.done("GET", "/v1/job/web?namespace=second", &Value::Null).await.json()["Region"], "us");
    federation.shutdown([eu.place, us.place]).await;
}

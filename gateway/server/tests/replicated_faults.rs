//! Following a region where that is not easy: many objects, certificates, a token without rights, a region that goes back in time.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};

use base::Rng;
use serde_json::{Value, json};

use crate::regions::Federation;
use crate::replicated::{Region, following};

/// More than a page, a batch or a window of anything here.
const MANY: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_objects_come_and_go() {
    let mut federation = Federation::default();
    let eu = federation.start("eu", 1, true).await;
    let token = eu.bootstrap().await;
    let eu = Region { place: eu, token: token.clone() };
    eu.done("PUT", "/v1/acl/auth-method", &json!({
        "Name": "corp", "Type": "OIDC", "TokenLocality": "global", "MaxTokenTTL": "30m",
        "Config": {"OIDCDiscoveryURL": "https://id.example", "OIDCClientID": "sojourn", "OIDCClientSecret": "s3cr3t",
            "AllowedRedirectURIs": ["http://localhost:4649/oidc/callback"]},
    }))
    .await;
    for number in 0..MANY {
        let name = format!("n{number}");
        eu.done("PUT", &format!("/v1/namespace/{name}"), &json!({"Name": name})).await;
        let rule = json!({"AuthMethod": "corp", "BindType": "management", "Description": name});
        eu.done("PUT", "/v1/acl/binding-rule", &rule).await;
    }
    federation.follow("eu", &token);
    let us = federation.start("us", 1, true).await;
    us.join(&eu.place).await;
    let us = Region { place: us, token };
    let count = async |path: &str| {
        let answer = us.send("GET", path, &Value::Null).await;
        if answer.status == 200 { answer.json().as_array().unwrap().len() } else { 0 }
    };
    us.place
        .until("all is here", async || {
            count("/v1/namespaces").await == MANY + 1 && count("/v1/acl/binding-rules").await == MANY
        })
        .await;
    eu.done("DELETE", "/v1/acl/auth-method/corp", &Value::Null).await;
    for number in 0..MANY {
        eu.done("DELETE", &format!("/v1/namespace/n{number}"), &Value::Null).await;
    }
    us.place
        .until("all is gone", async || {
            count("/v1/namespaces").await == 1
                && count("/v1/acl/binding-rules").await == 0
                && count("/v1/acl/auth-methods").await == 0
        })
        .await;
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_that_know_each_other_by_certificates_follow_too() {
    let mut federation = Federation::certified();
    let (eu, us) = following(&mut federation).await;
    us.done("PUT", "/v1/namespace/shop", &json!({"Name": "shop"})).await;
    us.until_there("/v1/namespace/shop", true).await;
    // One whose certificate is of another authority gets nothing, whatever its token.
    federation.change_authority();
    let mars = federation.start("mars", 1, true).await;
    mars.join(&eu.place).await;
    let known = async || mars.get("/v1/regions").await.json() == json!(["eu", "mars", "us"]);
    mars.until("it knows the others", known).await;
    let asked = format!("X-Nomad-Token: {}\r\n", eu.token);
    let answer = mars.send("GET", "/v1/namespaces?region=eu", "", &asked).await;
    assert_eq!(answer.status, 500);
    assert!(answer.body.starts_with("No path to region"), "{}", answer.body);
    assert_eq!(mars.server.control.state().namespaces.names(), ["default"]);
    federation.shutdown([eu.place, us.place, mars]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_without_all_rights_changes_nothing_and_is_named_in_the_log() {
    let log = Log::start();
    let mut federation = Federation::default();
    let eu = federation.start("eu", 1, true).await;
    let eu = Region { token: eu.bootstrap().await, place: eu };
    eu.done(
        "PUT",
        "/v1/acl/policy/all",
        &json!({"Name": "all", "Rules": "namespace \"*\" { policy = \"write\" }"}),
    )
    .await;
    let weak = json!({"Name": "weak", "Type": "client", "Policies": ["all"]});
    let weak = eu.done("PUT", "/v1/acl/token", &weak).await.json()["SecretID"].as_str().unwrap().to_string();
    eu.done("PUT", "/v1/namespace/theirs", &json!({"Name": "theirs"})).await;
    // It had rights of its own before.
    let us = federation.start("us", 1, true).await;
    let us = Region { token: us.bootstrap().await, place: us };
    us.done("PUT", "/v1/namespace/ours", &json!({"Name": "ours"})).await;
    let Region { place, token } = us;
    let stopped = federation.stop(place).await;
    federation.follow("eu", &weak);
    let us = Region { place: federation.resume(stopped, true).await, token };
    us.place.join(&eu.place).await;
    let refused = "acl.replication_token: expected a management token of the authoritative region";
    let lists = ["policies", "roles", "tokens", "namespaces", "node pools", "auth methods and binding rules"];
    for list in lists {
        let what = format!("what=\"{list}\"");
        let is_said = async || log.has(&["WARN", &what, "from=\"eu\"", refused]);
        us.place.until("the log names the token", is_said).await;
    }
    assert_eq!(us.names("/v1/namespaces", "Name").await, ["default", "ours"]);
    assert_eq!(us.names("/v1/acl/tokens", "Name").await, ["Bootstrap Token"]);
    federation.shutdown([eu.place, us.place]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_was_set_back_is_followed_back() {
    let mut federation = Federation::default();
    let (eu, us) = following(&mut federation).await;
    eu.done("PUT", "/v1/namespace/before", &json!({"Name": "before", "Description": "old"})).await;
    us.until_there("/v1/namespace/before", true).await;
    let token = format!("X-Nomad-Token: {}\r\n", eu.token);
    let (head, saved) = eu.place.exchange("GET", "/v1/operator/snapshot", b"", &token).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let saved = if is_chunked { unchunked(&saved) } else { saved };
    eu.done("PUT", "/v1/namespace/before", &json!({"Name": "before", "Description": "new"})).await;
    for name in ["after-1", "after-2"] {
        eu.done("PUT", &format!("/v1/namespace/{name}"), &json!({"Name": name})).await;
        us.until_there(&format!("/v1/namespace/{name}"), true).await;
    }
    let (head, body) = eu.place.exchange("PUT", "/v1/operator/snapshot", &saved, &token).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}{}", String::from_utf8_lossy(&body));
    assert_eq!(eu.names("/v1/namespaces", "Name").await, ["before", "default"]);
    us.until_there("/v1/namespace/after-1", false).await;
    us.until_there("/v1/namespace/after-2", false).await;
    let is_old =
        async || us.send("GET", "/v1/namespace/before", &Value::Null).await.json()["Description"] == "old";
    us.place.until("it is as it was", is_old).await;
    federation.shutdown([eu.place, us.place]).await;
}

/// What may differ between regions.
const OWN: [&str; 2] = ["CreateIndex", "ModifyIndex"];

/// The lists of what one region decides for all.
async fn lists(region: &Region) -> Vec<Value> {
    let mut all = Vec::new();
    for path in ["/v1/namespaces", "/v1/acl/policies", "/v1/node/pools", "/v1/acl/auth-methods"] {
        let mut list = region.done("GET", path, &Value::Null).await.json();
        for object in list.as_array_mut().unwrap() {
            OWN.iter().for_each(|own| object[own] = Value::Null);
            // It is of the record with its secrets, and of the time it came here.
            if path == "/v1/acl/auth-methods" {
                object["Hash"] = Value::Null;
            }
        }
        all.push(list);
    }
    all
}

/// Writes or deletes something at the authoritative region, which says that it has done so.
async fn decide(eu: &Region, rng: &mut Rng, there: &mut BTreeSet<String>) {
    let (name, text) = (format!("n{}", rng.below(5)), format!("text {}", rng.below(1_000)));
    let path = match rng.below(4) {
        0 => format!("/v1/namespace/{name}"),
        1 => format!("/v1/acl/policy/{name}"),
        2 => format!("/v1/node/pool/{name}"),
        _ => format!("/v1/acl/auth-method/{name}"),
    };
    if there.contains(&path) && rng.below(2) == 0 {
        eu.done("DELETE", &path, &Value::Null).await;
        there.remove(&path);
        return;
    }
    let body = json!({
        "Name": name, "Description": text, "Rules": "node { policy = \"read\" }",
        "Type": "OIDC", "TokenLocality": "global", "MaxTokenTTL": format!("{}m", rng.below(50) + 2),
        "Config": {"OIDCDiscoveryURL": "https://id.example", "OIDCClientID": text,
            "AllowedRedirectURIs": ["http://localhost:4649/oidc/callback"]},
    });
    let to =
        if path.contains("auth-method") && !there.contains(&path) { "/v1/acl/auth-method" } else { &path };
    eu.done("PUT", to, &body).await;
    there.insert(path);
}

/// The other region goes on by itself.
async fn work_alone(us: &Region, job: &str) {
    let task = json!({"Name": "task", "Driver": "raw_exec", "Config": {"command": "/bin/true"}});
    let job = json!({"ID": job, "TaskGroups": [{"Name": "group", "Tasks": [task]}]});
    us.done("PUT", "/v1/jobs", &json!({"Job": job})).await;
    us.done("PUT", "/v1/acl/token", &json!({"Name": "own", "Type": "management"})).await;
    let refused = us.send("PUT", "/v1/namespace/n0", &json!({"Name": "n0"})).await;
    assert_eq!((refused.status, refused.body.as_str()), (500, "No path to region"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_during_a_cut_is_everywhere_after_it() {
    const CUTS: usize = 3;
    let mut rng = Rng::stream(7, "cuts");
    let mut federation = Federation::default();
    let (eu, mut us) = following(&mut federation).await;
    let mut there = BTreeSet::new();
    for cut in 0..CUTS {
        for _ in 0..rng.below(12) {
            decide(&eu, &mut rng, &mut there).await;
        }
        // The cut comes while it is still on its way.
        let Region { place, token } = us;
        let stopped = federation.stop(place).await;
        us = Region { place: federation.resume(stopped, true).await, token };
        for _ in 0..rng.below(12) {
            decide(&eu, &mut rng, &mut there).await;
        }
        work_alone(&us, &format!("job-{cut}")).await;
        us.place.join(&eu.place).await;
        us.place.until("both are alike", async || lists(&us).await == lists(&eu).await).await;
    }
    assert_eq!(us.names("/v1/jobs", "ID").await.len(), CUTS);
    assert_eq!(eu.done("GET", "/v1/jobs", &Value::Null).await.json(), json!([]));
    let tokens = us.names("/v1/acl/tokens", "Name").await;
    assert_eq!(tokens.iter().filter(|name| *name == "own").count(), CUTS);
    federation.shutdown([eu.place, us.place]).await;
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|part| part == b"\r\n") {
        let length =
            std::str::from_utf8(&body[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(length) = length.filter(|length| *length > 0) else { break };
        whole.extend(&body[end + 2..end + 2 + length]);
        body = &body[end + 2 + length + 2..];
    }
    whole
}

/// What this process logs from when it is started: of all tests that run beside this one, too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> Log {
        static LOG: LazyLock<Log> = LazyLock::new(|| {
            let log = Log::default();
            let to = log.clone();
            let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || to.clone());
            subscriber.with_max_level(tracing::Level::WARN).init();
            log
        });
        LOG.clone()
    }

    /// One of its lines has all of these words.
    fn has(&self, words: &[&str]) -> bool {
        let text = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(&text);
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

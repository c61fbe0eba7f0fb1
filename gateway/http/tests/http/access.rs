//! Who may do what: every route, and what each right opens and hides.

use std::collections::BTreeSet;
use std::path::Path;

use axum::http::{Method, StatusCode};
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY};
use crate::support::{job_json, node_id};

/// What answers anybody, and why that is right.
const OPEN: &[&str] = &[
    // Pages and documents that are the same everywhere.
    "GET /",
    "GET /ui",
    "GET /ui/",
    "GET /ui/x",
    "GET /v1/openapi.json",
    // Which agents there are, and how they are: what Nomad shows everybody.
    "GET /v1/status/leader",
    "GET /v1/status/peers",
    "GET /v1/regions",
    "GET /v1/agent/health",
    "GET /v1/metrics",
    // Public keys.
    "GET /.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
    // Lists of what is the caller's, or what the caller may see: empty for nobody.
    "GET /v1/namespaces",
    "GET /v1/node/pools",
    "GET /v1/volumes",
    "GET /v1/acl/policies",
    "GET /v1/acl/policy/self",
    "GET /v1/acl/roles",
    "GET /v1/acl/token/self",
    "GET /v1/acl/access",
    "PUT /v1/search",
    "POST /v1/search",
    "PUT /v1/search/fuzzy",
    "POST /v1/search/fuzzy",
    // Who logs in has no token yet. Without a proof there is none.
    "GET /v1/acl/auth-methods",
    "PUT /v1/acl/login",
    "POST /v1/acl/login",
    "PUT /v1/acl/oidc/auth-url",
    "POST /v1/acl/oidc/auth-url",
    "PUT /v1/acl/oidc/complete-auth",
    "POST /v1/acl/oidc/complete-auth",
    // Nothing but how it is called.
    "GET /v1/operator/license",
    // Sockets: who calls is looked at once they are open, because browsers send it then.
    "GET /v1/client/allocation/{id}/exec",
    // The node of the agent looks at the token, which is none of access control.
    "GET /v1/client/allocation/{id}/snapshot",
    "GET /v1/job/{id}/action",
    // Who brings a secret gets what it stands for: this one stands for nothing, and is refused.
    "PUT /v1/acl/bootstrap",
    "POST /v1/acl/bootstrap",
];

/// Every path in the sources of the routes, with ids of what is there.
fn paths() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for dir in ["routes", "routes/acl", "events"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(dir);
        for file in std::fs::read_dir(dir).unwrap() {
            let file = file.unwrap().path();
            if file.is_file() {
                let text = std::fs::read_to_string(file).unwrap();
                let quoted =
                    text.split('"').filter(|part| part.starts_with("/v1/") || part.starts_with("/.well"));
                found.extend(quoted.filter(|path| !path.ends_with('\\')).map(str::to_string));
            }
        }
    }
    found.extend(["/", "/ui", "/ui/", "/ui/x"].map(str::to_string));
    found
}

/// An id that nothing has.
const NONE: &str = "00000000-0000-0000-0000-0000000000a1";

fn filled(path: &str) -> String {
    let id = match path.split('/').nth(2).unwrap_or_default() {
        "job" => "web".to_string(),
        "node" => node_id(1).to_string(),
        "namespace" | "namespaces" => "default".to_string(),
        _ => NONE.to_string(),
    };
    let mut filled = String::new();
    for part in path.split('/').skip(1) {
        filled.push('/');
        filled.push_str(if part.starts_with('{') { &id } else { part });
    }
    if filled.starts_with("/v1/client/fs/") {
        filled.push_str("?path=x&task=x&type=stdout&offset=0");
    }
    filled
}

/// What passes a document on to where it is looked at.
fn body(path: &str) -> Value {
    match path {
        _ if path.ends_with("/tag") => json!({"Version": 0}),
        _ => json!({
            "Job": job_json("web"), "JobID": "web", "JobHCL": "job \"a\" {}", "JobVersion": 0, "Count": 1,
            "Target": {"Group": "web"}, "Eligibility": "eligible", "DrainSpec": {"Deadline": 1},
            "EvalIDs": ["00000000-0000-0000-0000-0000000000e1"], "Name": path.rsplit('/').next(), "Prefix": "a", "Text": "web",
            "Jobs": [{"ID": "web"}], "DeploymentID": NONE, "HealthyAllocationIDs": [NONE], "ScheduleState": "pause",
            "Volumes": [{"ID": NONE}], "Volume": {"Name": "x"}, "All": true, "Scan": "all",
            "LastContactThreshold": "1s", "MaxTrailingLogs": 1, "ServerStabilizationTime": "10s", "AccessorID": NONE, "ID": NONE,
        }),
    }
}

#[tokio::test]
async fn no_route_answers_who_has_no_right() {
    let guarded = Guarded::start().await;
    guarded.cluster.node(1).await;
    guarded.put(&guarded.root, "/v1/jobs", &json!({"Job": job_json("web")})).await;
    // In a namespace that nobody asks about.
    let stranger = guarded.caller("stranger", r#"namespace "elsewhere" { policy = "write" }"#).await;
    let before = guarded.cluster.journal.batches().len();
    let all = paths();
    assert!(all.len() > 150, "{} paths", all.len());
    let mut wrong = Vec::new();
    for route in &all {
        let path = &filled(route);
        for method in [Method::GET, Method::PUT, Method::POST, Method::DELETE] {
            for (who, token) in [("nobody", NOBODY), ("a stranger", stranger.as_str())] {
                // What a token may do for itself is no right of others.
                if route == "/v1/acl/token/onetime" && token == stranger {
                    continue;
                }
                let sends = method == Method::PUT || method == Method::POST || route == "/v1/evaluations";
                let body = if sends { body(path) } else { Value::Null };
                let got = guarded.send(token, method.clone(), path, &body).await;
                let is_fine = match got.status {
                    StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                        true
                    }
                    StatusCode::NOT_FOUND
                        if matches!(got.text(), "Invalid method" | "resource not found") =>
                    {
                        true
                    }
                    // What somebody may see elsewhere is not there here.
                    StatusCode::NOT_FOUND if token == stranger => true,
                    StatusCode::OK if token == stranger && got.text() == "[]" => true,
                    // It names no allocation that one could see.
                    StatusCode::BAD_REQUEST if got.text() == "must provide a valid alloc id" => true,
                    _ => OPEN.contains(&format!("{method} {route}").as_str()),
                };
                if !is_fine {
                    wrong.push(format!("{method} {path} as {who}: {} {}", got.status, got.text()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(guarded.cluster.journal.batches().len(), before, "nothing was written");
}

const READ: &str = r#"namespace "default" { policy = "read" }"#;

/// A server with the job `web` in `default` and `dev`.
async fn two_namespaces() -> Guarded {
    let guarded = Guarded::start().await;
    guarded.put(&guarded.root, "/v1/namespace/dev", &json!({"Name": "dev"})).await;
    for namespace in ["default", "dev"] {
        let mut job = job_json("web");
        job["Namespace"] = json!(namespace);
        let got = guarded.put(&guarded.root, "/v1/jobs", &json!({"Job": job})).await;
        assert_eq!(got.status, 200, "{}", got.text());
    }
    guarded
}

#[tokio::test]
async fn a_reader_of_one_namespace_sees_that_one_and_changes_nothing() {
    let guarded = two_namespaces().await;
    let reader = guarded.caller("reader", READ).await;
    let jobs = async |token: &str, query: &str| {
        let got = guarded.get(token, &format!("/v1/jobs{query}")).await;
        got.json().as_array().map(Vec::len)
    };
    assert_eq!(jobs(&guarded.root, "?namespace=*").await, Some(2));
    assert_eq!((jobs(&reader, "").await, jobs(&reader, "?namespace=*").await), (Some(1), Some(1)));
    guarded.get(&reader, "/v1/jobs?namespace=dev").await.refused(403, "Permission denied");
    guarded.get(&reader, "/v1/job/web?namespace=dev").await.refused(403, "Permission denied");
    // What is found by an id looks as if it was not there.
    let evals = guarded.get(&guarded.root, "/v1/evaluations?namespace=*").await.json();
    for eval in evals.as_array().unwrap() {
        let path = format!("/v1/evaluation/{}", eval["ID"].as_str().unwrap());
        let status = guarded.get(&reader, &path).await.status;
        assert_eq!(status, if eval["Namespace"] == "default" { 200 } else { 404 });
        assert_eq!(guarded.get(NOBODY, &path).await.status, 403);
    }
    let before = guarded.cluster.journal.batches().len();
    guarded.delete(&reader, "/v1/job/web").await.refused(403, "Permission denied");
    guarded
        .put(&reader, "/v1/jobs", &json!({"Job": job_json("web")}))
        .await
        .refused(403, "Permission denied");
    guarded.get(&reader, "/v1/nodes").await.refused(403, "Permission denied");
    assert_eq!(guarded.cluster.journal.batches().len(), before);
}

#[tokio::test]
async fn the_namespace_of_the_job_counts_and_not_that_of_the_request() {
    let guarded = two_namespaces().await;
    let writer = guarded.caller("writer", r#"namespace "default" { policy = "write" }"#).await;
    let mut job = job_json("web");
    let got = guarded.put(&writer, "/v1/jobs", &json!({"Job": job})).await;
    assert_eq!(got.status, 200, "{}", got.text());
    job["Namespace"] = json!("dev");
    for path in ["/v1/jobs", "/v1/job/web/plan"] {
        guarded
            .put(&writer, path, &json!({"Job": job, "Diff": true}))
            .await
            .refused(403, "Permission denied");
    }
}

#[tokio::test]
async fn a_job_needs_the_rights_to_what_it_mounts() {
    let guarded = two_namespaces().await;
    let submits = r#"namespace "default" { capabilities = ["submit-job"] }"#;
    let mounts = |policy: &str| format!("{submits} host_volume \"data\" {{ policy = \"{policy}\" }}");
    let plain = guarded.caller("plain", submits).await;
    let reads = guarded.caller("reads", &mounts("read")).await;
    let writes = guarded.caller("writes", &mounts("write")).await;
    let job = |read_only: bool| {
        let mut job = job_json("web");
        job["TaskGroups"][0]["Volumes"] =
            json!({"v": {"Name": "v", "Type": "host", "Source": "data", "ReadOnly": read_only}});
        json!({"Job": job})
    };
    let status = async |token: &str, read_only: bool| {
        guarded.put(token, "/v1/jobs", &job(read_only)).await.status.as_u16()
    };
    assert_eq!((status(&plain, true).await, status(&plain, false).await), (403, 403));
    assert_eq!((status(&reads, true).await, status(&reads, false).await), (200, 403));
    assert_eq!((status(&writes, true).await, status(&writes, false).await), (200, 200));
}

#[tokio::test]
async fn rights_end_with_the_policy_and_with_the_token() {
    let guarded = two_namespaces().await;
    let reader = guarded.caller("reader", READ).await;
    let other = guarded.token(&json!({"Name": "b", "Type": "client", "Policies": ["reader"]})).await;
    assert_eq!(guarded.get(&reader, "/v1/jobs").await.status, 200);
    guarded.policy("reader", r#"namespace "dev" { policy = "read" }"#).await;
    guarded.get(&reader, "/v1/jobs").await.refused(403, "Permission denied");
    assert_eq!(guarded.get(&reader, "/v1/jobs?namespace=dev").await.status, 200);
    guarded.delete(&guarded.root, "/v1/acl/policy/reader").await;
    guarded.get(&reader, "/v1/jobs?namespace=dev").await.refused(403, "Permission denied");
    let accessor = other["AccessorID"].as_str().unwrap();
    guarded.delete(&guarded.root, &format!("/v1/acl/token/{accessor}")).await;
    guarded.get(other["SecretID"].as_str().unwrap(), "/v1/jobs").await.refused(403, "ACL token not found");
}

#[tokio::test]
async fn who_waits_loses_the_answer_with_the_right() {
    let guarded = two_namespaces().await;
    let reader = guarded.caller("reader", READ).await;
    let index = guarded.get(&reader, "/v1/jobs").await.index();
    let path = format!("/v1/jobs?index={index}&wait=60s");
    let mut waiting = std::pin::pin!(guarded.get(&reader, &path));
    // It is in its wait once it has not answered at first.
    assert!(waiting.as_mut().now_or_never().is_none());
    guarded.policy("reader", r#"namespace "dev" { policy = "read" }"#).await;
    guarded.put(&guarded.root, "/v1/jobs", &json!({"Job": job_json("another")})).await;
    waiting.await.refused(403, "Permission denied");
}

#[tokio::test]
async fn everybody_has_the_policy_that_is_called_anonymous() {
    let guarded = two_namespaces().await;
    guarded.get(NOBODY, "/v1/jobs").await.refused(403, "Permission denied");
    guarded.policy("anonymous", READ).await;
    assert_eq!(guarded.get(NOBODY, "/v1/jobs").await.json().as_array().unwrap().len(), 1);
    assert_eq!(guarded.get(NOBODY, "/v1/acl/policy/anonymous").await.status, 200);
    // A token that is worth nothing is not the same as none.
    guarded.get(&node_id(9).to_string(), "/v1/jobs").await.refused(403, "ACL token not found");
}

#[tokio::test]
async fn a_rule_about_a_pool_hides_its_nodes() {
    let guarded = Guarded::start().await;
    guarded.put(&guarded.root, "/v1/node/pool/gpu", &json!({"Name": "gpu"})).await;
    let (plain, gpu) = (guarded.cluster.node(1).await, guarded.cluster.node_in(2, "gpu").await);
    let nodes = r#"node { policy = "read" }"#;
    let all = guarded.caller("all", nodes).await;
    let some = guarded.caller("some", &format!("{nodes} node_pool \"gpu\" {{ policy = \"deny\" }}")).await;
    let seen = async |token: &str| guarded.get(token, "/v1/nodes").await.json().as_array().unwrap().len();
    assert_eq!((seen(&all).await, seen(&some).await), (2, 1));
    assert_eq!(guarded.get(&some, &format!("/v1/node/{plain}")).await.status, 200);
    assert_eq!(guarded.get(&some, &format!("/v1/node/{gpu}")).await.status, 404);
    guarded
        .put(&all, &format!("/v1/node/{plain}/eligibility"), &json!({"Eligibility": "ineligible"}))
        .await
        .refused(403, "Permission denied");
}

#[tokio::test]
async fn a_search_finds_what_may_be_seen() {
    let guarded = two_namespaces().await;
    guarded.cluster.node(1).await;
    let reader = guarded.caller("reader", READ).await;
    let fuzzy = json!({"Text": "web", "Context": "all"});
    let found = guarded.put(&reader, "/v1/search/fuzzy?namespace=*", &fuzzy).await.json();
    assert_eq!(found["Matches"]["jobs"], json!([{"ID": "web", "Scope": ["default", "web"]}]));
    let everything = guarded.put(&reader, "/v1/search?namespace=*", &json!({"Prefix": ""})).await.json();
    assert_eq!(everything["Matches"]["namespaces"], json!(["default"]));
    assert_eq!(everything["Matches"].get("nodes"), None);
    guarded
        .put(&reader, "/v1/search", &json!({"Prefix": "", "Context": "nodes"}))
        .await
        .refused(403, "Permission denied");
}

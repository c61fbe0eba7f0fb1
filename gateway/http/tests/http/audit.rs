use std::path::Path;
use std::time::Duration;

use ::audit::{Audit, AuditSettings, Filter, Sink};
use axum::http::Method;
use monitor::LogFileSettings;
use serde_json::{Value, json};

use crate::guarded::{bootstrap, with_root_key, with_token};
use crate::provider::{TestKey, seconds};
use crate::support::Cluster;

fn settings(path: &Path, is_enforced: bool) -> AuditSettings {
    let (rotate_bytes, rotate_after) = (0, Duration::from_secs(3600));
    let file = LogFileSettings { path: path.to_path_buf(), rotate_bytes, rotate_after, keep: 0, mode: 0o600 };
    let metrics = Filter { endpoints: vec!["/v1/metrics".to_string()], ..Filter::default() };
    AuditSettings { sink: Sink::File(file), is_enforced, filters: vec![metrics] }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(::audit::verify(text.as_bytes(), None).is_ok());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_request_is_recorded_before_and_after_with_who_and_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(settings(&path, true)).unwrap();
    let cluster = with_root_key(Cluster::audited(audit, |agent| agent.access.enabled = true).await).await;
    let first = bootstrap(&cluster).await.json();
    let secret = first["SecretID"].as_str().unwrap();
    let accessor = first["AccessorID"].as_str().unwrap();
    cluster.get("/v1/metrics").await;
    let namespace = json!({"Name": "ops"});
    let made = with_token(secret, Method::PUT, "/v1/namespace?namespace=ops", &namespace);
    let made = cluster.send(made).await;
    let refused = cluster.get("/v1/jobs?namespace=ops").await;
    refused.refused(403, "Permission denied");

    let lines = lines(&path);
    let told = |line: &Value| {
        let (payload, request) = (&line["payload"], &line["payload"]["request"]);
        format!(
            "{} {} {} in {} by {}: {} {}",
            payload["stage"].as_str().unwrap(),
            request["operation"].as_str().unwrap(),
            request["endpoint"].as_str().unwrap(),
            request["namespace"]["id"].as_str().unwrap(),
            payload["auth"]["accessor_id"].as_str().unwrap_or("nobody"),
            payload["response"]["status_code"],
            payload["response"]["error"].as_str().unwrap_or_default(),
        )
    };
    let summary: Vec<String> = lines.iter().map(told).collect();
    assert_eq!(
        summary,
        [
            "OperationReceived PUT /v1/acl/bootstrap in default by nobody: null ".to_string(),
            "OperationComplete PUT /v1/acl/bootstrap in default by nobody: 200 ".to_string(),
            format!("OperationReceived PUT /v1/namespace in ops by {accessor}: null "),
            format!("OperationComplete PUT /v1/namespace in ops by {accessor}: 200 "),
            "OperationReceived GET /v1/jobs in ops by nobody: null ".to_string(),
            "OperationComplete GET /v1/jobs in ops by nobody: 403 Permission denied".to_string(),
        ]
    );
    let effect = made.headers["x-nomad-index"].to_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(lines[3]["payload"]["response"]["index"], effect, "the index that the write led to");
    assert_eq!(lines[2]["payload"]["request"]["id"], lines[3]["payload"]["request"]["id"]);
    assert_eq!(lines[5]["payload"]["response"].get("index"), None);
    assert!(!std::fs::read_to_string(&path).unwrap().contains(secret));
}

/// `/dev/full` takes no byte.
#[tokio::test]
async fn what_cannot_be_recorded_is_not_done_where_that_is_enforced() {
    for (is_enforced, status) in [(true, 500), (false, 200)] {
        let audit = Audit::open(settings(Path::new("/dev/full"), is_enforced)).unwrap();
        let cluster = Cluster::audited(audit, |_| {}).await;
        let before = cluster.control.state().index;
        let answer = cluster.put("/v1/namespace", &json!({"Name": "ops"})).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        let has_changed = cluster.control.state().index > before;
        assert_eq!(has_changed, !is_enforced);
    }
}

#[tokio::test]
async fn a_login_is_recorded_without_what_proves_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let audit = Audit::open(settings(&path, true)).unwrap();
    let cluster = with_root_key(Cluster::audited(audit, |agent| agent.access.enabled = true).await).await;
    let root = bootstrap(&cluster).await.json()["SecretID"].as_str().unwrap().to_string();
    let key = TestKey::new("k");
    let method = json!({
        "Name": "ci", "Type": "JWT", "TokenLocality": "local", "MaxTokenTTL": "10m",
        "Config": {"JWTValidationPubKeys": [key.public_pem()]},
    });
    let rule = json!({"AuthMethod": "ci", "BindType": "management"});
    for (path, body) in [("/v1/acl/auth-method", method), ("/v1/acl/binding-rule", rule)] {
        let made = cluster.send(with_token(&root, Method::PUT, path, &body)).await;
        assert_eq!(made.status, 200, "{}", made.text());
    }
    let proof = key.sign(&json!({"exp": seconds() + 60}));
    let login = |token: &str| json!({"AuthMethodName": "ci", "LoginToken": token});
    let forged = TestKey::new("k").sign(&json!({"exp": seconds() + 60}));
    let token = cluster.put("/v1/acl/login", &login(&proof)).await;
    cluster.put("/v1/acl/login", &login(&forged)).await.refused(401, "no known key has signed the token");
    let lines = lines(&path);
    let outcome = |line: &Value| {
        (line["payload"]["request"]["endpoint"].clone(), line["payload"]["response"]["status_code"].clone())
    };
    let login = json!("/v1/acl/login");
    let [.., good, _, bad] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((outcome(good), outcome(bad)), ((login.clone(), json!(200)), (login, json!(401))));
    let written = std::fs::read_to_string(&path).unwrap();
    let secret = token.json()["SecretID"].as_str().unwrap().to_string();
    assert!(!written.contains(&secret) && !written.contains(&proof[..40]));
}

//! Sinks of the event stream: what may be asked of them, and who may.

use axum::http::Method;
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, Got, assert_holds};

const SINK: &str = "/v1/event/sink/billing";

fn refused(got: &Got, status: u16, why: &str) {
    assert_eq!(got.status.as_u16(), status, "{}", got.text());
    assert!(got.text().contains(why), "{}", got.text());
}

#[tokio::test]
async fn a_sink_is_made_changed_stopped_and_deleted() {
    let cluster = Cluster::start().await;
    cluster.job("before").await;
    let wanted = json!({"Kind": "webhook", "URL": "https://example.com/", "Topics": ["Job"],
        "SecretVariable": "sinks/billing"});
    let made = cluster.put(SINK, &wanted).await.json();
    let expected = json!({"Name": "billing", "Kind": "webhook", "URL": "https://example.com/", "Status": "running",
        "SecretVariable": "sinks/billing", "SecretNamespace": "default", "MaxAttempts": 10, "Timeout": "30s",
        "Topics": ["Job"], "Namespace": "default", "From": "now", "Cursor": "sink.billing", "LagBatches": 0});
    assert_holds(&made, &expected);
    assert_eq!(
        cluster.put(SINK, &wanted).await.json()["ModifyIndex"],
        made["ModifyIndex"],
        "nothing changed"
    );
    cluster.job("a").await;
    let listed = cluster.get("/v1/event/sinks").await.json();
    assert_eq!(listed[0]["LagBatches"].as_u64().map(|lag| lag > 0), Some(true), "{listed}");
    assert_eq!(cluster.put(&format!("{SINK}/pause"), &Value::Null).await.json()["Status"], "paused");
    assert_eq!(cluster.put(&format!("{SINK}/retry"), &Value::Null).await.json()["Status"], "running");
    refused(&cluster.put(&format!("{SINK}/skip"), &Value::Null).await, 409, "is not parked");
    assert_eq!(cluster.get("/v1/event/sinks?prefix=x").await.json(), json!([]));
    let gone = cluster.delete(SINK).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    refused(&cluster.get(SINK).await, 404, "event sink \"billing\" not found");
    assert_eq!(cluster.get("/v1/event/cursors").await.json(), json!([]));
}

#[tokio::test]
async fn what_no_sink_can_be_is_refused_and_changes_nothing() {
    let cluster = Cluster::start().await;
    let cases = [
        (json!({}), "Kind: expected webhook, nats or file"),
        (json!({"Kind": "webhook"}), "URL: expected"),
        (
            json!({"Kind": "webhook", "URL": "http://a/", "Subject": "x"}),
            "Subject: is of sinks of the kind nats",
        ),
        (json!({"Kind": "file", "SecretVariable": "a"}), "SecretVariable: a file has no use for it"),
        (json!({"Kind": "file", "MaxBytes": 1}), "MaxBytes: expected"),
        (json!({"Kind": "file", "Topics": ["Jobs"]}), "Topics: no event has the topic \"Jobs\""),
        (json!({"Kind": "file", "Filter": "Topic =="}), "Filter: "),
        (json!({"Kind": "file", "MaxAttempts": 1000}), "MaxAttempts: expected 1 to 100"),
        (json!({"Kind": "file", "Path": "/etc/passwd"}), "unknown field `Path`"),
    ];
    let before = cluster.journal.batches().len();
    for (wanted, why) in cases {
        refused(&cluster.put(SINK, &wanted).await, 400, why);
    }
    assert_eq!(cluster.journal.batches().len(), before);
}

/// A sink sends what it is asked for to wherever it is asked to, with what a variable holds: only management may say so.
#[tokio::test]
async fn operators_may_stop_sinks_and_only_management_may_make_them() {
    let guarded = Guarded::start().await;
    let operator = guarded.caller("operator", r#"operator { policy = "write" }"#).await;
    let reader = guarded.caller("reader", r#"operator { policy = "read" }"#).await;
    let wanted = json!({"Kind": "file"});
    let send = async |token: &str, method: Method, path: &str, body: &Value| {
        guarded.send(token, method, path, body).await.status.as_u16()
    };
    for token in [NOBODY, &reader, &operator] {
        assert_eq!(send(token, Method::PUT, SINK, &wanted).await, 403);
    }
    assert_eq!(send(&guarded.root, Method::PUT, SINK, &wanted).await, 200);
    assert_eq!(send(&reader, Method::GET, SINK, &Value::Null).await, 200);
    let pause = format!("{SINK}/pause");
    assert_eq!(send(&reader, Method::POST, &pause, &Value::Null).await, 403);
    assert_eq!(send(&operator, Method::POST, &pause, &Value::Null).await, 200);
    assert_eq!(send(&operator, Method::DELETE, SINK, &Value::Null).await, 403);
    assert_eq!(send(&guarded.root, Method::DELETE, SINK, &Value::Null).await, 200);
}

//! Sinks of the event stream: what may be asked of them, and who may.

use axum::http::Method;
use base::Time;
use delivery::Failed;
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
        (json!({}), "Kind: expected webhook, nats, kafka, file, syslog or otlp"),
        (json!({"Kind": "webhook"}), "URL: expected"),
        (
            json!({"Kind": "webhook", "URL": "http://a/", "Subject": "x"}),
            "Subject: is of sinks of the kind nats",
        ),
        (json!({"Kind": "file", "SecretVariable": "a"}), "SecretVariable: a file has no use for it"),
        (json!({"Kind": "webhook", "URL": "http://a/", "TLS": true}), "TLS: is of sinks of the kind nats"),
        (
            json!({"Kind": "syslog", "Address": "a:1", "Transport": "sctp"}),
            "Transport: expected udp, tcp or tls",
        ),
        (
            json!({"Kind": "syslog", "Address": "a:1", "Facility": "local9"}),
            "Facility: expected one of kern,",
        ),
        (json!({"Kind": "syslog", "Address": "a"}), "Address: expected HOST:PORT"),
        (json!({"Kind": "otlp"}), "URL: expected"),
        (
            json!({"Kind": "otlp", "URL": "http://a/", "Signal": "spans"}),
            "Signal: expected logs or traces, not \"spans\"",
        ),
        (
            json!({"Kind": "webhook", "URL": "http://a/", "Signal": "traces"}),
            "Signal: is of sinks of the kind otlp, and Kind is \"webhook\"",
        ),
        (json!({"Kind": "kafka", "Subject": "events"}), "Address: expected HOST:PORT, or several"),
        (json!({"Kind": "kafka", "Address": "a:9092"}), "Subject: expected a topic of Kafka"),
        (json!({"Kind": "kafka", "URL": "http://a/"}), "URL: is of sinks of the kind webhook or otlp"),
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

#[tokio::test]
async fn sinks_of_all_kinds_are_shown_as_they_were_asked_for() {
    let cluster = Cluster::start().await;
    let syslog =
        cluster.put("/v1/event/sink/s", &json!({"Kind": "syslog", "Address": "logs:601"})).await.json();
    let expected = json!({"Kind": "syslog", "Address": "logs:601", "Transport": "tcp", "Facility": "local0",
        "AppName": "sojourn"});
    assert_holds(&syslog, &expected);
    let wanted = json!({"Kind": "syslog", "Address": "logs:514", "Transport": "udp", "Facility": "daemon",
        "AppName": "prod"});
    assert_holds(&cluster.put("/v1/event/sink/s", &wanted).await.json(), &wanted);
    let wanted = json!({"Kind": "otlp", "URL": "https://collector/v1/logs"});
    assert_holds(&cluster.put("/v1/event/sink/o", &wanted).await.json(), &wanted);
    assert_eq!(cluster.get("/v1/event/sink/o").await.json()["Signal"], "logs");
    let wanted = json!({"Kind": "otlp", "URL": "https://collector/v1/traces", "Signal": "traces"});
    assert_holds(&cluster.put("/v1/event/sink/o", &wanted).await.json(), &wanted);
    let wanted = json!({"Kind": "nats", "Address": "nats:4222", "Subject": "events", "TLS": true});
    assert_holds(&cluster.put("/v1/event/sink/n", &wanted).await.json(), &wanted);
    let wanted = json!({"Kind": "kafka", "Address": "a:9092,b:9092", "Subject": "events", "TLS": true});
    assert_holds(&cluster.put("/v1/event/sink/k", &wanted).await.json(), &wanted);
}

/// What the server that sends knows stands in its answers and its metrics, and an answer without says that it does not know.
#[tokio::test]
async fn failures_are_seen_before_a_sink_is_parked() {
    let cluster = Cluster::start().await;
    cluster.put(SINK, &json!({"Kind": "webhook", "URL": "https://example.com/"})).await;
    cluster.job("a").await;
    let unknown = cluster.get(SINK).await.json();
    assert_holds(&unknown, &json!({"Reported": false, "Failures": 0}));
    let failed =
        Failed { what: "3.0@9f3c2a71".into(), why: "it answered 500".into(), at: Time::from_secs(7) };
    cluster.sinks.arrived("billing");
    cluster.sinks.failed("billing", failed, 2, Some(Time::from_secs(9)));
    let expected = json!({"Reported": true, "Sent": 1, "Failures": 1, "FailedAttempts": 2, "Status": "running",
        "NextAttemptAt": "1970-01-01T00:00:09Z", "LastFailureAt": "1970-01-01T00:00:07Z",
        "LastFailureEvent": "3.0@9f3c2a71", "LastFailureReason": "it answered 500"});
    assert_holds(&cluster.get(SINK).await.json(), &expected);
    assert_holds(&cluster.get("/v1/event/sinks").await.json()[0], &expected);
    let text = cluster.get("/v1/metrics?format=prometheus").await;
    for line in [
        "# TYPE sojourn_sinks_lag_batches gauge\nsojourn_sinks_lag_batches{sink=\"billing\",host=\"one\"} ",
        "sojourn_sinks_lag_seconds{sink=\"billing\",host=\"one\"} ",
        "sojourn_sinks_parked{sink=\"billing\",host=\"one\"} 0\n",
        "sojourn_sinks_attempts{sink=\"billing\",host=\"one\"} 2\n",
    ] {
        assert!(text.text().contains(line), "{line} in {}", text.text());
    }
}

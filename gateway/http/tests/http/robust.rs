//! Wrong requests: answered with a 4xx that names the mistake, and the log stays as it is.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Method;
use futures_util::stream;
use serde_json::{Value, json};

use crate::support::{Cluster, got, request};

/// A job with many kinds of blocks, in the canonical form.
const JOB: &str = include_str!("../../../jobspec/tests/data/golden/dynamic-everything.json");

/// A place in a document: as a JSON pointer, and as messages write it.
type Place = (String, String);

fn places(value: &Value, pointer: &str, path: &str, found: &mut Vec<Place>) {
    found.push((pointer.to_string(), path.to_string()));
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            places(value, &format!("{pointer}/{name}"), &format!("{path}.{name}"), found);
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| {
            places(value, &format!("{pointer}/{at}"), &format!("{path}[{at}]"), found);
        }),
        _ => {}
    }
}

#[tokio::test]
async fn a_wrong_type_in_any_field_of_a_job_is_named_and_changes_nothing() {
    let cluster = Cluster::start().await;
    let job: Value = serde_json::from_str(JOB).unwrap();
    let mut all = Vec::new();
    places(&job, "", "Job", &mut all);
    // What is below belongs to a driver: it may be of any type.
    all.retain(|(_, path)| !path.contains(".Config."));
    assert!(all.len() > 300, "{} places", all.len());
    let before = cluster.journal.batches().len();
    for (at, (pointer, path)) in all.iter().enumerate().skip(1) {
        let mut wrong = job.clone();
        let place = wrong.pointer_mut(pointer).unwrap();
        // Nothing is both: a field takes at most one of the two.
        *place = if place.is_array() { json!({ "a": [] }) } else { json!([[{}]]) };
        let (way, body) = match at % 4 {
            0 => ("/v1/jobs", json!({ "Job": wrong })),
            1 => ("/v1/validate/job", json!({ "Job": wrong })),
            2 => ("/v1/job/everything/plan", json!({ "Job": wrong, "Diff": true })),
            _ => ("/v1/job/everything", json!({ "Job": wrong })),
        };
        let got = cluster.put(way, &body).await;
        assert_eq!(got.status, 400, "{way} {path}: {}", got.text());
        assert!(got.text().starts_with(path.as_str()), "{way} {path}: {}", got.text());
    }
    assert_eq!(cluster.journal.batches().len(), before, "the log has not moved");
}

#[tokio::test]
async fn a_wrong_type_in_any_other_request_is_named_and_changes_nothing() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    cluster.job("web").await;
    let node = format!("/v1/node/{node}");
    let requests = [
        ("/v1/search", json!({"Prefix": "a", "Context": "all"})),
        ("/v1/search/fuzzy", json!({"Text": "a", "Context": "all"})),
        ("/v1/jobs/parse", json!({"JobHCL": "x", "Variables": "", "Canonicalize": true})),
        ("/v1/job/web/evaluate", json!({"JobID": "web", "EvalOptions": {"ForceReschedule": true}})),
        ("/v1/job/web/revert", json!({"JobID": "web", "JobVersion": 1, "EnforcePriorVersion": 2})),
        ("/v1/job/web/stable", json!({"JobID": "web", "JobVersion": 1, "Stable": true})),
        (
            "/v1/job/web/scale",
            json!({"Count": 1, "Target": {"Group": "web"}, "Message": "m", "Error": false, "Meta": {}}),
        ),
        ("/v1/job/web/dispatch", json!({"Payload": "", "Meta": {"a": "b"}, "IdPrefixTemplate": "x"})),
        ("/v1/job/web/versions/one/tag", json!({"Version": 1, "Description": "d"})),
        (
            &format!("{node}/drain"),
            json!({"DrainSpec": {"Deadline": 1, "IgnoreSystemJobs": true}, "MarkEligible": true, "Meta": {}}),
        ),
        (&format!("{node}/eligibility"), json!({"Eligibility": "eligible"})),
        (
            "/v1/namespace/x",
            json!({"Name": "x", "Description": "d", "Meta": {"a": "b"}, "Capabilities": {"EnabledTaskDrivers": ["a"]}}),
        ),
        ("/v1/node/pool/x", json!({"Name": "x", "Description": "d", "Meta": {"a": "b"}})),
        (
            "/v1/operator/scheduler/configuration",
            json!({"SchedulerAlgorithm": "spread", "MemoryOversubscriptionEnabled": true}),
        ),
    ];
    let before = cluster.journal.batches().len();
    for (way, right) in &requests {
        let mut all = Vec::new();
        places(right, "", "", &mut all);
        for (pointer, path) in all.iter().skip(1) {
            let mut wrong = right.clone();
            let place = wrong.pointer_mut(pointer).unwrap();
            *place = if place.is_array() { json!({ "a": [] }) } else { json!([[{}]]) };
            let got = cluster.put(way, &wrong).await;
            assert_eq!(got.status, 400, "{way} {path}: {}", got.text());
            let name = path.trim_start_matches('.');
            assert!(got.text().contains(name), "{way} {path}: {}", got.text());
        }
    }
    assert_eq!(cluster.journal.batches().len(), before, "the log has not moved");
}

#[tokio::test]
async fn a_nested_body_is_refused_by_every_route_that_takes_one() {
    let cluster = Cluster::start().await;
    let deep = format!("{{\"Job\": {}1{}}}", "{\"a\":[".repeat(50_000), "]}".repeat(50_000));
    for way in
        ["/v1/jobs", "/v1/validate/job", "/v1/job/a/plan", "/v1/search", "/v1/jobs/parse", "/v1/namespace"]
    {
        let got = cluster.send(request(Method::PUT, way, Body::from(deep.clone()))).await;
        assert_eq!(got.status, 400, "{way}: {}", got.text());
        assert!(got.text().contains("recursion limit"), "{way}: {}", got.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let cluster = Cluster::start().await;
    let trickle = stream::unfold(0, |sent| async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), sent + 1))
    });
    let slow = request(Method::PUT, "/v1/jobs", Body::from_stream(trickle));
    got(cluster.app.clone(), slow).await.refused(408, "the request body did not come within 64 seconds");
}

//! What led to an event, and what followed from it.

use axum::http::Method;
use base::Index;
use model::document::Allocation;
use model::{AllocId, Command, EvalId};
use serde_json::{Value, json};

use crate::guarded::{Guarded, NOBODY, with_token};
use crate::support::{Cluster, assert_holds, job_json};

/// A job that was registered over HTTP under a name, and whose allocation runs.
async fn running(cluster: &Cluster) -> AllocId {
    running_as(cluster, NOBODY).await
}

async fn running_as(cluster: &Cluster, token: &str) -> AllocId {
    let node = cluster.node(1).await;
    let mut register = with_token(token, Method::PUT, "/v1/jobs", &json!({"Job": job_json("web")}));
    register.headers_mut().insert("x-sojourn-request-id", REQUEST.parse().unwrap());
    let registered = cluster.send(register).await.json();
    let eval: EvalId = registered["EvalID"].as_str().unwrap().parse().unwrap();
    let alloc = cluster.place(eval, "web", node, 7).await;
    let running =
        Allocation { id: alloc.to_string(), client_status: "running".to_string(), ..Allocation::default() };
    cluster.submit(Command::UpdateAllocs { node, updates: vec![running] }).await;
    alloc
}

fn events(chain: &Value) -> Vec<&str> {
    chain["Facts"].as_array().unwrap().iter().map(|fact| fact["Event"].as_str().unwrap()).collect()
}

const REQUEST: &str = "11111111-2222-3333-4444-555555555555";

#[tokio::test]
async fn a_report_is_followed_back_to_the_request_and_forth_from_it() {
    let cluster = Cluster::start().await;
    let alloc = running(&cluster).await;
    let told = cluster.get(&format!("/v1/allocation/{alloc}/history")).await.json();
    let report = &told["Transitions"][1];
    let causes = cluster.get(&format!("/v1/event/{}:{}/causes", report["Index"], report["Ordinal"])).await;
    assert_eq!(Index(causes.index()), cluster.control.state().index);
    let causes = causes.json();
    assert_eq!(
        events(&causes),
        ["AllocReported", "AllocsPlaced", "PlanCommitted", "EvalCreated", "JobRegistered"]
    );
    let facts = causes["Facts"].as_array().unwrap();
    assert_holds(&facts[0]["Causes"][0], &json!({"ID": facts[1]["ID"], "How": "allocation"}));
    let root = json!({"Root": "request", "RequestID": REQUEST, "Actor": "anonymous", "Command": "RegisterJob",
        "Object": "job/default/web", "Depth": 4});
    assert_holds(&facts[4], &root);
    let trace = REQUEST.replace('-', "");
    assert_holds(&causes, &json!({"CutShort": false, "Gone": false, "Hidden": 0, "TraceID": trace}));

    let effects = cluster.get(&format!("/v1/event/{REQUEST}/effects")).await.json();
    assert_eq!(events(&effects)[..2], ["JobRegistered", "EvalCreated"]);
    assert_eq!(effects["TraceID"], *trace);
    assert!(events(&effects).contains(&"AllocReported"), "{effects}");

    // The same event as the stream names it: a position among what is listed, not among the facts.
    let placed = facts[1]["Index"].as_u64().unwrap();
    let path = format!("/v1/event/stream?from={placed}&to={placed}&topic=Allocation&view=full");
    let line = cluster.get(&path).await;
    let line: Value = serde_json::from_str(line.text().lines().last().unwrap()).unwrap();
    let event = &line["Events"][0];
    assert_eq!(event["Fact"], facts[1]["ID"]);
    assert_ne!(event["ID"].as_str().unwrap().replace('.', ":"), facts[1]["ID"].as_str().unwrap());
    let of_event = cluster.get(&format!("/v1/event/{}/causes", event["ID"].as_str().unwrap())).await.json();
    assert_eq!(events(&of_event)[0], "AllocsPlaced");

    // Of the past: what came later had not happened.
    let then = cluster.get(&format!("/v1/event/{REQUEST}/effects?as_of={placed}")).await.json();
    assert!(!events(&then).contains(&"AllocReported"), "{then}");
}

#[tokio::test]
async fn what_is_no_event_is_refused() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let text = "is not the id of an event (42.0), of a fact in the log (42:0) or of a request";
    for id in ["web", "7", "1:", ":1", "1:x", "1.x", "1:99999999"] {
        let got = cluster.get(&format!("/v1/event/{id}/causes")).await;
        got.refused(400, &format!("id: {id:?} {text}"));
    }
    cluster.get("/v1/event/2:77/causes").await.refused(404, "event not found");
    cluster.get("/v1/event/2.77/effects").await.refused(404, "event not found");
    let newest = cluster.control.state().index;
    let ahead = cluster.get("/v1/event/99999:0/causes").await;
    ahead.refused(400, &format!("id: 99999:0 is still to come: the newest index is {newest}"));
    let unknown = "request not found: it changed nothing, or its batch is no longer kept";
    cluster.get(&format!("/v1/event/{REQUEST}/effects")).await.refused(404, unknown);
    cluster
        .get("/v1/event/2:0/causes?filter=x==1")
        .await
        .refused(400, "this list cannot be filtered: `filter` is not expected");
    let other = cluster.get("/v1/event/2.0@00000000/causes").await;
    other.refused(400, "the position is in the stream of another cluster: begin anew");
}

#[tokio::test]
async fn who_may_see_a_namespace_sees_its_facts_and_no_others() {
    let guarded = Guarded::start().await;
    let cluster = &guarded.cluster;
    let alloc = running_as(cluster, &guarded.root).await;
    let own = guarded.caller("own", "namespace \"default\" { policy = \"read\" }").await;
    let other = guarded.caller("other", "namespace \"other\" { policy = \"read\" }").await;
    let nodes = guarded.caller("nodes", "node { policy = \"read\" }").await;
    let told = guarded.get(&own, &format!("/v1/allocation/{alloc}/history")).await.json();
    let report = &told["Transitions"][1];
    let path = format!("/v1/event/{}:{}/causes", report["Index"], report["Ordinal"]);
    let causes = guarded.get(&own, &path).await.json();
    assert_eq!(events(&causes).last(), Some(&"JobRegistered"));
    let denied = "Permission denied";
    for token in [other.as_str(), nodes.as_str(), NOBODY] {
        guarded.get(token, &path).await.refused(403, denied);
    }
    // Who registered a node, or changed a token, is not for readers of jobs.
    let mut kinds = std::collections::BTreeMap::new();
    for batch in cluster.journal.batches() {
        for (ordinal, row) in batch.rows().enumerate() {
            let event = batch.event(&row).unwrap().name();
            kinds.entry(event).or_insert(format!("/v1/event/{}:{ordinal}/causes", batch.index()));
        }
    }
    guarded.get(&own, &kinds["NodeRegistered"]).await.refused(403, denied);
    assert_eq!(guarded.get(&nodes, &kinds["NodeRegistered"]).await.status, 200);
    for token in [&own, &nodes] {
        guarded.get(token, &kinds["AclTokenCreated"]).await.refused(403, denied);
    }
    assert_eq!(guarded.get(&guarded.root, &kinds["AclTokenCreated"]).await.status, 200);
}

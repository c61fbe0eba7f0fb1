//! How the scheduler works, and pools of nodes.

use serde_json::json;

use crate::support::{Cluster, assert_holds, job_json};

const CONFIGURATION: &str = "/v1/operator/scheduler/configuration";
const SCAN: &str = "/v1/operator/scheduler/scan";

#[tokio::test]
async fn the_schedulers_configuration_is_set_against_what_was_seen() {
    let cluster = Cluster::start().await;
    let first = cluster.get(CONFIGURATION).await;
    let index = first.json()["SchedulerConfig"]["ModifyIndex"].as_u64().unwrap();
    let expected = json!({
        "SchedulerAlgorithm": "binpack",
        "PreemptionConfig": {
            "SystemSchedulerEnabled": true, "SysBatchSchedulerEnabled": false,
            "BatchSchedulerEnabled": false, "ServiceSchedulerEnabled": false,
        },
        "MemoryOversubscriptionEnabled": false, "RejectJobRegistration": false, "PauseEvalBroker": false,
        "NodeLimitForFeasibilityChecks": 0, "CreateIndex": index, "ModifyIndex": index,
    });
    assert_eq!(first.json()["SchedulerConfig"], expected);
    assert_eq!(first.index(), index);
    let wanted = json!({
        "SchedulerAlgorithm": "spread", "MemoryOversubscriptionEnabled": true,
        "PreemptionConfig": {"ServiceSchedulerEnabled": true}, "NodeLimitForFeasibilityChecks": 20,
    });
    let late = cluster.put(&format!("{CONFIGURATION}?cas={}", index + 5), &wanted).await;
    assert_eq!(late.json(), json!({"Updated": false, "Index": index}));
    assert_eq!(cluster.get(CONFIGURATION).await.json()["SchedulerConfig"], expected);
    let set = cluster.put(&format!("{CONFIGURATION}?cas={index}"), &wanted).await;
    assert_eq!(set.json(), json!({"Updated": true, "Index": set.index()}));
    let now = json!({"SchedulerConfig": {
        "SchedulerAlgorithm": "spread", "MemoryOversubscriptionEnabled": true,
        "PreemptionConfig": {"ServiceSchedulerEnabled": true, "SystemSchedulerEnabled": false},
        "NodeLimitForFeasibilityChecks": 20, "CreateIndex": index, "ModifyIndex": set.index(),
    }});
    assert_holds(&cluster.get(CONFIGURATION).await.json(), &now);
    assert_holds(&cluster.restarted().await.get(CONFIGURATION).await.json(), &now);
}

#[tokio::test]
async fn a_configuration_that_makes_no_sense_names_its_field() {
    let cluster = Cluster::start().await;
    let before = cluster.control.state().index;
    let refused = cluster.put(CONFIGURATION, &json!({"SchedulerAlgorithm": "best"})).await;
    refused.refused(400, "invalid SchedulerAlgorithm \"best\": expected binpack or spread");
    let large = cluster.put(CONFIGURATION, &json!({"NodeLimitForFeasibilityChecks": 1_u64 << 40})).await;
    large.refused(400, "invalid NodeLimitForFeasibilityChecks 1099511627776: expected a number below 2^32");
    let scan = cluster.put(SCAN, &json!({"Scan": "some"})).await;
    scan.refused(400, "invalid Scan \"some\": expected all or sample");
    assert_eq!(cluster.control.state().index, before);
}

#[tokio::test]
async fn whether_nodes_are_sampled_is_set_apart_and_stays() {
    let cluster = Cluster::start().await;
    assert_eq!(cluster.get(SCAN).await.json(), json!({"Scan": "all"}));
    assert_eq!(cluster.put(SCAN, &json!({"Scan": "sample"})).await.json()["Updated"], true);
    cluster.put(CONFIGURATION, &json!({"SchedulerAlgorithm": "spread"})).await;
    assert_eq!(cluster.get(SCAN).await.json(), json!({"Scan": "sample"}));
    cluster.put(SCAN, &json!({"Scan": "all"})).await;
    let now = cluster.get(CONFIGURATION).await.json();
    assert_eq!(now["SchedulerConfig"]["SchedulerAlgorithm"], "spread");
}

#[tokio::test]
async fn registration_can_be_closed() {
    let cluster = Cluster::start().await;
    cluster.put(CONFIGURATION, &json!({"RejectJobRegistration": true})).await;
    let why = "Job registration, dispatch, and scale are disabled by the scheduler configuration";
    cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await.refused(403, why);
    cluster.put(CONFIGURATION, &json!({"RejectJobRegistration": false})).await;
    assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job_json("web")})).await.status, 200);
}

#[tokio::test]
async fn pools_are_made_changed_and_deleted() {
    let cluster = Cluster::start().await;
    let pool = json!({
        "Name": "gpu", "Description": "Big ones", "Meta": {"team": "ml"}, "NodeIdentityTTL": "24h",
        "SchedulerConfiguration": {"SchedulerAlgorithm": "spread", "MemoryOversubscriptionEnabled": null},
    });
    let made = cluster.put("/v1/node/pools", &pool).await;
    assert_eq!((made.status.as_u16(), made.text()), (200, ""));
    let shown = cluster.get("/v1/node/pool/gpu").await;
    let index = shown.index();
    assert_eq!(made.index(), index);
    let expected = json!({
        "Name": "gpu", "Description": "Big ones", "Meta": {"team": "ml"},
        "NodeIdentityTTL": 86_400_000_000_000_u64, "CreateIndex": index, "ModifyIndex": index,
        "SchedulerConfiguration": {"SchedulerAlgorithm": "spread", "MemoryOversubscriptionEnabled": null},
    });
    assert_holds(&shown.json(), &expected);
    let names = cluster.get("/v1/node/pools").await;
    assert_holds(&names.json(), &json!([{"Name": "all"}, {"Name": "default"}, {"Name": "gpu"}]));
    assert_eq!(names.index(), index);
    let unset = json!({"Name": "gpu", "NodeIdentityTTL": ""});
    assert_eq!(cluster.put("/v1/node/pool/gpu", &unset).await.text(), "");
    let odd = cluster.put("/v1/node/pool/gpu", &json!({"Name": "gpu", "NodeIdentityTTL": "24x"})).await;
    assert!(odd.status == 400 && odd.text().starts_with("NodeIdentityTTL: "), "{}", odd.text());
    assert_holds(
        &cluster.restarted().await.get("/v1/node/pool/gpu").await.json(),
        &json!({"Description": "", "CreateIndex": index}),
    );
    let deleted = cluster.delete("/v1/node/pool/gpu").await;
    assert_eq!(
        (deleted.status.as_u16(), deleted.index()),
        (200, cluster.get("/v1/node/pools").await.index())
    );
    cluster.get("/v1/node/pool/gpu").await.refused(404, "node pool not found");
    cluster.delete("/v1/node/pool/gpu").await.refused(500, "node pool not found");
}

#[tokio::test]
async fn a_pool_that_makes_no_sense_is_refused() {
    let cluster = Cluster::start().await;
    let wrong_path = cluster.put("/v1/node/pool/gpu", &json!({"Name": "cpu"})).await;
    wrong_path.refused(400, "Node pool name does not match request path");
    let built_in = "node pool \"all\" came with the cluster: it cannot be changed or deleted";
    cluster.put("/v1/node/pools", &json!({"Name": "all"})).await.refused(400, built_in);
    cluster.delete("/v1/node/pool/all").await.refused(500, built_in);
    for (pool, why) in [
        (json!({"Name": "a b"}), "Name: expected 1 to 128 letters, digits, dashes and underscores"),
        (json!({"Name": "a", "Description": "x".repeat(257)}), "Description: expected at most 256 bytes"),
        (
            json!({"Name": "a", "SchedulerConfiguration": {"SchedulerAlgorithm": "x"}}),
            "SchedulerConfiguration.SchedulerAlgorithm: expected binpack or spread",
        ),
    ] {
        cluster.put("/v1/node/pools", &pool).await.refused(400, &format!("invalid node pool: {why}"));
    }
}

#[tokio::test]
async fn a_node_brings_its_pool_and_a_pool_in_use_stays() {
    let cluster = Cluster::start().await;
    let node = cluster.node_in(1, "gpu").await;
    let nodes = cluster.get("/v1/node/pool/gpu/nodes").await.json();
    assert_holds(&nodes, &json!([{"ID": node.to_string(), "NodePool": "gpu"}]));
    assert_eq!(cluster.get("/v1/node/pool/default/nodes").await.json(), json!([]));
    assert_eq!(cluster.get("/v1/node/pool/all/nodes").await.json().as_array().unwrap().len(), 1);
    cluster.delete("/v1/node/pool/gpu").await.refused(500, "node pool \"gpu\" has nodes: 1");
    let mut job = job_json("web");
    job["NodePool"] = json!("gpu");
    assert_eq!(cluster.put("/v1/jobs", &json!({"Job": job})).await.status, 200);
    assert_holds(&cluster.get("/v1/node/pool/gpu/jobs").await.json(), &json!([{"ID": "web"}]));
    assert_eq!(cluster.put(&format!("/v1/node/{node}/purge"), &json!({})).await.status, 200);
    let in_use = cluster.delete("/v1/node/pool/gpu").await;
    in_use.refused(500, "node pool \"gpu\" has jobs that have not ended: 1");
    job["NodePool"] = json!("cpu");
    job["ID"] = json!("other");
    let unknown = cluster.put("/v1/jobs", &json!({"Job": job})).await;
    assert!(
        unknown.text().contains("job \"other\" is in nonexistent node pool \"cpu\""),
        "{}",
        unknown.text()
    );
    cluster
        .get("/v1/node/pool/gpu/nodes?prefix=a")
        .await
        .refused(400, "prefix queries are not supported here");
}

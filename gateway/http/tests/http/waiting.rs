use std::time::{Duration, Instant};

use http_gateway::WAITING_READS_MAX;
use serde_json::json;

use crate::support::{Cluster, Got, assert_holds, got, request};

/// Begins a read that waits, and returns once it does.
async fn waiting(cluster: &Cluster, path: &str) -> tokio::task::JoinHandle<Got> {
    let request = request(axum::http::Method::GET, path, axum::body::Body::empty());
    let read = tokio::spawn(got(cluster.app.clone(), request));
    let deadline = Instant::now() + Duration::from_secs(10);
    while waits(cluster).await == 0.0 {
        assert!(!read.is_finished(), "{path} answered at once");
        assert!(Instant::now() < deadline, "{path} never began to wait");
        tokio::task::yield_now().await;
    }
    read
}

async fn waits(cluster: &Cluster) -> f64 {
    let metrics = cluster.get("/v1/metrics").await.json();
    let gauges = metrics["Gauges"].as_array().unwrap();
    gauges.iter().find(|gauge| gauge["Name"] == "sojourn.reads.waiting").unwrap()["Value"].as_f64().unwrap()
}

#[tokio::test]
async fn a_list_answers_when_its_table_changes() {
    let cluster = Cluster::start().await;
    let read = waiting(&cluster, "/v1/nodes?index=1&wait=60s").await;
    // Another table is not looked at.
    cluster.job("web").await;
    assert!(!read.is_finished());
    let node = cluster.node(1).await;
    let answer = read.await.unwrap();
    assert_holds(&answer.json(), &json!([{"ID": node.to_string()}]));
    assert!(answer.index() > 1);
    assert_eq!(waits(&cluster).await, 0.0);
}

#[tokio::test]
async fn an_object_answers_when_it_changes_itself() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    let index = cluster.get("/v1/job/web").await.index();
    let read = waiting(&cluster, &format!("/v1/job/web?index={index}&wait=60s")).await;
    cluster.job("other").await;
    cluster.delete("/v1/job/web").await.json();
    let answer = read.await.unwrap();
    assert_eq!(answer.json()["Stop"], true);
    assert!(answer.index() > index);
}

#[tokio::test]
async fn what_is_not_there_yet_can_be_waited_for() {
    let cluster = Cluster::start().await;
    let read = waiting(&cluster, "/v1/job/web?index=1&wait=60s").await;
    cluster.job("web").await;
    assert_eq!(read.await.unwrap().json()["ID"], "web");
}

#[tokio::test]
async fn a_wait_that_ends_gives_what_there_is() {
    let cluster = Cluster::start().await;
    let answer = cluster.get("/v1/jobs?index=7&wait=20ms").await;
    assert_eq!((answer.json(), answer.index()), (json!([]), 0));
    let missing = cluster.get("/v1/job/web?index=7&wait=20ms").await;
    missing.refused(404, "job not found");
}

#[tokio::test]
async fn an_index_that_is_passed_already_does_not_wait() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    cluster.job("api").await;
    let before = cluster.get("/v1/jobs").await.index() - 1;
    assert_eq!(cluster.get(&format!("/v1/jobs?index={before}&wait=60s")).await.status, 200);
}

#[tokio::test]
async fn without_a_leader_only_stale_reads_are_answered() {
    let cluster = Cluster::start().await;
    cluster.job("web").await;
    cluster.journal.depose(true);
    cluster.control.leadership().wait_for(|leads| *leads == control::Leadership::Unknown).await.unwrap();
    let stale = cluster.get("/v1/jobs?stale").await;
    assert_holds(&stale.json(), &json!([{"ID": "web"}]));
    assert_eq!(stale.header("x-nomad-knownleader"), "false");
    // From here on time runs by itself whenever everybody waits.
    tokio::time::pause();
    for path in ["/v1/jobs", "/v1/job/web", "/v1/status/leader"] {
        cluster.get(path).await.refused(500, "No cluster leader");
    }
    cluster.put("/v1/job/web/evaluate", &json!({})).await.refused(500, "No cluster leader");
}

#[tokio::test]
async fn a_leader_that_comes_in_time_answers() {
    let cluster = Cluster::start().await;
    cluster.journal.depose(true);
    cluster.control.leadership().wait_for(|leads| *leads == control::Leadership::Unknown).await.unwrap();
    let request = request(axum::http::Method::GET, "/v1/jobs", axum::body::Body::empty());
    let read = tokio::spawn(got(cluster.app.clone(), request));
    cluster.journal.lead();
    assert_eq!(read.await.unwrap().json(), json!([]));
}

#[tokio::test]
async fn one_waiting_read_too_many_gets_429() {
    let cluster = Cluster::start().await;
    let read = || {
        let request =
            request(axum::http::Method::GET, "/v1/nodes?index=1&wait=60s", axum::body::Body::empty());
        tokio::spawn(got(cluster.app.clone(), request))
    };
    let reads: Vec<_> = (0..WAITING_READS_MAX).map(|_| read()).collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    while waits(&cluster).await < WAITING_READS_MAX as f64 {
        assert!(Instant::now() < deadline, "not all began to wait");
    }
    let refused = read().await.unwrap();
    refused.refused(429, &format!("{WAITING_READS_MAX} reads are waiting already: try again later"));
    assert_eq!(refused.header("retry-after"), "1");
    // Who does not wait is still answered, and everybody is when there is news.
    assert_eq!(cluster.get("/v1/nodes").await.status, 200);
    cluster.node(1).await;
    for read in reads {
        assert_eq!(read.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn reads_whose_callers_have_gone_make_room() {
    let cluster = Cluster::start().await;
    let read = |_| waiting(&cluster, "/v1/nodes?index=1&wait=60s");
    let reads = futures_util::future::join_all((0..100).map(read)).await;
    reads.iter().for_each(tokio::task::JoinHandle::abort);
    let left = async { while waits(&cluster).await > 0.0 {} };
    tokio::time::timeout(Duration::from_secs(30), left).await.expect("nobody waits any more");
}

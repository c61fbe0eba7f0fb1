use serde_json::json;

use crate::support::{Cluster, assert_holds};

#[tokio::test]
async fn evaluations_are_listed_and_narrowed() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let done = cluster.job("web").await;
    cluster.place(done, "web", node, 7).await;
    let waiting = cluster.job("api").await;
    let list = cluster.get("/v1/evaluations").await;
    let expected = json!([
        {"ID": done.to_string(), "Status": "complete", "TriggeredBy": "job-register", "Type": "service"},
        {"ID": waiting.to_string(), "Status": "pending", "JobID": "api"},
    ]);
    assert_holds(&list.json(), &expected);
    assert_eq!(list.index(), cluster.control.state().tables.evals.0);
    for query in ["status=pending", "job=api", "status=pending&job=api"] {
        let narrowed = cluster.get(&format!("/v1/evaluations?{query}")).await.json();
        assert_holds(&narrowed, &json!([{"ID": waiting.to_string()}]));
    }
    assert_eq!(cluster.get("/v1/evaluations?status=blocked").await.json(), json!([]));
    assert_eq!(cluster.get("/v1/evaluations/count?per_page=1").await.json()["Count"], 2);
    assert_eq!(cluster.delete("/v1/evaluations").await.status, 501);
}

#[tokio::test]
async fn an_evaluation_is_read_with_what_it_placed() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let read = cluster.get(&format!("/v1/evaluation/{eval}?related=true")).await;
    assert_holds(&read.json(), &json!({"ID": eval.to_string(), "ModifyIndex": read.index(), "JobID": "web"}));
    assert_eq!(read.json().get("RelatedEvals"), None, "it stands alone");
    let allocs = cluster.get(&format!("/v1/evaluation/{eval}/allocations")).await.json();
    assert_holds(&allocs, &json!([{"ID": alloc.to_string()}]));
    cluster.get(&format!("/v1/evaluation/{alloc}")).await.refused(404, "eval not found");
    assert_eq!(cluster.get("/v1/evaluation/x/allocations").await.json(), json!([]));
}

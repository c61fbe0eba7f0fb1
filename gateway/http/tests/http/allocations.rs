use serde_json::json;

use crate::support::{Cluster, assert_holds};

#[tokio::test]
async fn allocations_are_listed_in_the_order_of_their_creation() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let first = cluster.job("b").await;
    let first = cluster.place(first, "b", node, 9).await;
    let second = cluster.job("a").await;
    let second = cluster.place(second, "a", node, 3).await;
    let list = cluster.get("/v1/allocations").await;
    let expected = json!([
        {"ID": first.to_string(), "JobID": "b", "NodeName": "node-1", "ClientStatus": "pending",
         "DesiredStatus": "run", "TaskStates": null, "Name": "b.web[0]"},
        {"ID": second.to_string(), "JobID": "a"},
    ]);
    assert_holds(&list.json(), &expected);
    assert_eq!(list.json()[0].get("AllocatedResources"), None);
    let page = cluster.get("/v1/allocations?per_page=1&reverse=true").await;
    assert_holds(&page.json(), &json!([{"JobID": "a"}]));
    let token = page.header("x-nomad-nexttoken");
    assert!(token.ends_with(&first.to_string()), "{token}");
    let rest = cluster.get(&format!("/v1/allocations?per_page=5&reverse=true&next_token={token}")).await;
    assert_holds(&rest.json(), &json!([{"JobID": "b"}]));
    let prefix = &second.to_string()[..8];
    assert_holds(
        &cluster.get(&format!("/v1/allocations?prefix={prefix}&resources=true")).await.json(),
        &json!([{"ID": second.to_string(), "AllocatedResources": {"Shared": {"Ports": null}}}]),
    );
    assert_eq!(cluster.get("/v1/allocations?namespace=other").await.json(), json!([]));
    cluster.get("/v1/allocations?next_token=x").await.refused(400, "invalid `next_token`");
}

#[tokio::test]
async fn an_allocation_is_read_whole() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let read = cluster.get(&format!("/v1/allocation/{alloc}")).await;
    let expected = json!({
        "ID": alloc.to_string(), "EvalID": eval.to_string(), "NodeID": node.to_string(),
        "Job": {"ID": "web", "Version": 0}, "Metrics": {"NodesEvaluated": 1}, "ModifyIndex": read.index(),
    });
    assert_holds(&read.json(), &expected);
    assert_eq!(read.json().get("DeploymentID"), None, "zero fields are left out");
    cluster.get(&format!("/v1/allocation/{eval}")).await.refused(404, "alloc not found");
    cluster.get("/v1/allocation/web").await.refused(404, "alloc not found");
    cluster.get(&format!("/v1/allocation/{alloc}/more")).await.refused(404, "resource not found");
}

#[tokio::test]
async fn stopping_an_allocation_asks_for_an_evaluation() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let eval = cluster.job("web").await;
    let alloc = cluster.place(eval, "web", node, 7).await;
    let stopped =
        cluster.put(&format!("/v1/allocation/{alloc}/stop?no_shutdown_delay=true"), &json!({})).await;
    assert_eq!(stopped.json()["Index"], stopped.index());
    let eval = stopped.json()["EvalID"].as_str().unwrap().to_string();
    assert_eq!(cluster.get(&format!("/v1/evaluation/{eval}")).await.json()["TriggeredBy"], "alloc-stop");
    let transition = &cluster.get(&format!("/v1/allocation/{alloc}")).await.json()["DesiredTransition"];
    assert_holds(transition, &json!({"Migrate": true, "NoShutdownDelay": true, "Reschedule": null}));
    cluster
        .put(&format!("/v1/allocation/{eval}/stop"), &json!({}))
        .await
        .refused(404, "allocation not found");
}

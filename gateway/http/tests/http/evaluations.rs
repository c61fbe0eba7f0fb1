use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Cluster, Got, assert_holds, request};

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

async fn delete(cluster: &Cluster, body: &Value) -> Got {
    cluster.send(request(Method::DELETE, "/v1/evaluations", Body::from(body.to_string()))).await
}

async fn pause(cluster: &Cluster, paused: bool) {
    let wanted = json!({"PauseEvalBroker": paused});
    assert_eq!(cluster.put("/v1/operator/scheduler/configuration", &wanted).await.status, 200);
}

#[tokio::test]
async fn evaluations_are_deleted_while_the_broker_is_paused() {
    let cluster = Cluster::start().await;
    let node = cluster.node(1).await;
    let placed = cluster.job("web").await;
    cluster.place(placed, "web", node, 7).await;
    let over = cluster.job("api").await;
    cluster.settle(over).await;
    let waiting = cluster.job("db").await;
    let paused = "eval broker is enabled; eval broker must be paused to delete evals";
    for body in [json!({"EvalIDs": [over.to_string()]}), json!({"Filter": "JobID == none"})] {
        delete(&cluster, &body).await.refused(409, paused);
    }
    pause(&cluster, true).await;
    let index = cluster.control.state().index;
    let unsafe_text =
        |id: &dyn ToString, why: &str| format!("eval {} is not safe to delete: {why}", id.to_string());
    let cases = [
        (json!({}), 400, "evals must be deleted by either ID or filter".to_string()),
        (
            json!({"EvalIDs": ["a"], "Filter": "x == y"}),
            400,
            "evals cannot be deleted by both ID and filter".into(),
        ),
        (json!({"EvalIDs": ["a"]}), 400, "\"a\" is not a UUID".into()),
        (json!({"EvalIDs": ["8E231CF4-CA48-43FF-B694-5801E69E22FA"]}), 404, "eval not found".into()),
        (
            json!({"EvalIDs": [over.to_string(), waiting.to_string()]}),
            409,
            unsafe_text(&waiting, "it is not over"),
        ),
        (
            json!({"EvalIDs": [placed.to_string()]}),
            409,
            unsafe_text(&placed, "an allocation that it placed has not ended"),
        ),
    ];
    for (body, status, text) in cases {
        delete(&cluster, &body).await.refused(status, &text);
    }
    assert_eq!(cluster.control.state().index, index, "all or nothing");

    let deleted = delete(&cluster, &json!({"Filter": "Status == complete"})).await;
    assert_eq!(
        deleted.json(),
        json!({"Count": 1, "Index": deleted.index()}),
        "what placed something that runs stays"
    );
    cluster.get(&format!("/v1/evaluation/{over}")).await.refused(404, "eval not found");
    assert_eq!(cluster.get("/v1/job/api/evaluations").await.json(), json!([]));
    let list = cluster.get("/v1/evaluations").await;
    assert_eq!(list.json().as_array().unwrap().len(), 2);
    assert_eq!(list.index(), deleted.index());
    assert_eq!(cluster.restarted().await.get("/v1/evaluations").await.json(), list.json());
}

//! Decisions of the log, made again by this program.

use model::Command;
use serde_json::{Value, json};

use crate::fork::begun;
use crate::guarded::{Guarded, NOBODY};
use crate::support::{Cluster, assert_holds, job_json};
use crate::why::{able_node, register, work};

async fn again(cluster: &Cluster, query: &str) -> Value {
    let got = cluster.get(&format!("/v1/history/decisions{query}")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    got.json()
}

fn one(id: &str, memory: i64) -> Value {
    let mut job = job_json(id);
    job["TaskGroups"][0]["Count"] = json!(1);
    job["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"] = json!(memory);
    job
}

#[tokio::test]
async fn what_this_program_decided_comes_out_the_same() {
    let cluster = begun().await;
    let newest = cluster.control.state().index.0;
    let all = again(&cluster, "").await;
    assert_holds(
        &all,
        &json!({"From": 0, "To": newest, "Newest": newest, "Decisions": 1, "Same": 1, "Differing": 0, "NotMade": 0, "Differences": null}),
    );
    let none = again(&cluster, &format!("?since={newest}")).await;
    assert_holds(&none, &json!({"From": newest, "To": newest, "Decisions": 0}));
    let ahead = format!("since: that is still to come: the newest index is {newest}");
    cluster.get("/v1/history/decisions?since=999").await.refused(400, &ahead);
    let wrong = cluster.get("/v1/history/decisions?algorithm=best").await;
    wrong.refused(400, "algorithm: \"best\": expected binpack or spread");
    let past = cluster.get("/v1/history/decisions?as_of=2").await;
    past.refused(400, "this route is of the present alone: `as_of` is not expected");
}

/// Another algorithm stands for a scheduler that was changed.
#[tokio::test]
async fn what_would_be_placed_elsewhere_is_found_and_listed() {
    let cluster = Cluster::start().await;
    for number in [1, 2] {
        able_node(&cluster, number).await;
    }
    let mut evals = Vec::new();
    for (id, seed) in [("a", 7), ("b", 8)] {
        let eval = register(&cluster, &one(id, 500)).await;
        work(&cluster, eval, seed, seed).await;
        evals.push(eval.to_string());
    }
    assert_holds(&again(&cluster, "").await, &json!({"Decisions": 2, "Same": 2, "Differing": 0}));
    assert_holds(&again(&cluster, "?algorithm=binpack").await, &json!({"Same": 2}));
    let spread = again(&cluster, "?algorithm=spread").await;
    // The first finds two nodes that are empty; beside it the second one is put only to leave the other one free.
    let alloc = cluster.get("/v1/job/b/allocations").await.json()[0].clone();
    assert_holds(
        &spread,
        &json!({"Decisions": 2, "Same": 1, "Differing": 1, "NotMade": 0, "Differences": [{
            "EvalID": evals[1], "JobID": "b", "Namespace": "default", "TriggeredBy": "job-register", "Made": true,
            "Reason": "scheduled by spread",
            "Placements": [{"ID": alloc["ID"], "LoggedNodeName": alloc["NodeName"]}],
        }]}),
    );
    let placed = &spread["Differences"][0]["Placements"][0];
    assert!(placed["NodeName"] != placed["LoggedNodeName"] && placed["NodeName"] != "", "{placed}");
}

#[tokio::test]
async fn a_plan_that_another_scheduler_made_is_listed() {
    let cluster = Cluster::start().await;
    able_node(&cluster, 1).await;
    let eval = register(&cluster, &job_json("web")).await;
    work(&cluster, eval, 1, 2).await;
    let all = again(&cluster, "").await;
    assert_holds(
        &all,
        &json!({"Decisions": 1, "Same": 0, "Differing": 1, "Differences": [{"JobID": "web", "Reason": ""}]}),
    );
    // Other ids: two that the log has, and two that it has not.
    assert_eq!(all["Differences"][0]["Placements"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn what_cannot_be_made_again_is_listed_with_its_reason() {
    let cluster = Cluster::start().await;
    let eval = cluster.job("a").await;
    // As if a scheduler had ended it that does not say what it saw.
    cluster.settle(eval).await;
    let all = again(&cluster, "").await;
    assert_holds(
        &all,
        &json!({"Decisions": 1, "Same": 0, "Differing": 0, "NotMade": 1, "Differences": [{
            "EvalID": eval.to_string(), "Made": false, "Reason": "the state at index 0 does not know the evaluation",
        }]}),
    );
}

/// A plan of a round was made and not accepted, because its evaluation had ended: the plans after it rest on it all the same.
#[tokio::test]
async fn a_plan_of_a_round_that_the_log_does_not_have_is_taken_into_account() {
    let cluster = Cluster::start().await;
    for number in [1, 2, 3] {
        able_node(&cluster, number).await;
    }
    let mut evals = Vec::new();
    for id in ["a", "b", "c", "d"] {
        // More than half of a node for the first three.
        evals.push(register(&cluster, &one(id, if id == "d" { 1_000 } else { 5_000 })).await);
    }
    let (snapshot, seed) = (cluster.control.state(), 40);
    let mut ahead = state::State::clone(&snapshot);
    let mut planned = Vec::new();
    for (eval, seed) in evals.iter().zip(seed..) {
        let found = ahead.evals.lookup(*eval).unwrap();
        let settlement = placement::schedule(&ahead, found, seed, snapshot.time).settlement;
        assert!(rules::fork::put_ahead(&mut ahead, &settlement, snapshot.time));
        planned.push(settlement);
    }
    for lost in [0, 2] {
        let follow_up_at = snapshot.time;
        cluster.submit(Command::FailEval { eval: evals[lost], deliveries: 3, follow_up_at }).await;
    }
    for kept in [1, 3] {
        cluster.submit(Command::SettleEval(Box::new(planned[kept].clone()))).await;
    }
    assert_holds(&again(&cluster, "").await, &json!({"Decisions": 2, "Same": 2, "Differing": 0}));
    for kept in [1, 3] {
        let why = cluster.get(&format!("/v1/evaluation/{}/explain", evals[kept])).await.json();
        assert_holds(&why, &json!({"Decision": {"Recomputed": true, "AsLogged": true}}));
    }
}

#[tokio::test]
async fn it_takes_a_management_token() {
    let guarded = Guarded::start().await;
    let reader =
        guarded.caller("reader", r#"namespace "*" { policy = "write" } operator { policy = "write" }"#).await;
    for (token, status) in [(NOBODY, 403), (reader.as_str(), 403), (guarded.root.as_str(), 200)] {
        assert_eq!(guarded.get(token, "/v1/history/decisions").await.status, status);
    }
}

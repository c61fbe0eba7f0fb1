//! A node falls silent and comes back, in every order its words may have.

use serde_json::{Value, json};

use crate::support::fake_node::FakeNode;
use crate::support::http;
use crate::support::{Agent, Place, eventually, job, text, until};

/// What the returning node says first.
#[derive(Clone, Copy, Debug)]
enum First {
    Beats,
    Reports,
    Registers,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_cut_off_keeps_its_work_whatever_it_says_first() {
    let directory = tempfile::tempdir().unwrap();
    let server = Place::server(directory.path(), "server").start();
    let nodes = [connect(&server, 1).await, connect(&server, 2).await];
    for (number, first) in [First::Beats, First::Reports, First::Registers].into_iter().enumerate() {
        cut_off_and_return(&server, &nodes, &format!("job-{number}"), first).await;
    }
}

async fn connect(server: &Agent, number: u8) -> FakeNode {
    let node = FakeNode::connect(server.place.rpc, number).await;
    node.register().await.unwrap();
    node.beat().await.unwrap();
    assert_eq!(status(server, &node), "ready");
    node
}

async fn cut_off_and_return(server: &Agent, nodes: &[FakeNode; 2], job: &str, first: First) {
    let beating = [nodes[0].keep_beating(), nodes[1].keep_beating()];
    server.register(&reconnecting(job));
    let original = eventually("the job is placed", || server.allocs(job).first().cloned());
    let original_id = text(&original["ID"]);
    let at = usize::from(original["NodeID"] == nodes[1].id());
    let (node, other) = (&nodes[at], &nodes[1 - at]);
    assert!(node.assigned().await.contains_key(&original_id));
    node.report(&original_id, "running").await.unwrap();
    assert_eq!(alloc(server, &original_id)["ClientStatus"], "running");

    let [one, two] = beating;
    let (silent, _other_beats) = if at == 0 { (one, two) } else { (two, one) };
    drop(silent);
    until("the silence is noticed", || status(server, node) == "disconnected");
    until("nobody knows how it is", || alloc(server, &original_id)["ClientStatus"] == "unknown");
    let replacement = eventually("another takes its place", || {
        server.allocs(job).iter().map(|alloc| text(&alloc["ID"])).find(|id| *id != original_id)
    });
    assert_eq!(alloc(server, &replacement)["NodeID"], other.id());
    other.report(&replacement, "running").await.unwrap();

    come_back(server, node, &original_id, first).await;
    until("the replacement is to stop", || alloc(server, &replacement)["DesiredStatus"] == "stop");
    other.report(&replacement, "complete").await.unwrap();
    let original = alloc(server, &original_id);
    assert_eq!((&original["ClientStatus"], &original["DesiredStatus"]), (&json!("running"), &json!("run")));
    assert_eq!(server.allocs(job).len(), 2, "{first:?}: nothing else was placed");

    let stopped = http::delete(server.place.http, &format!("/v1/job/{job}")).unwrap();
    assert_eq!(stopped.status, 200, "{}", stopped.body);
    until("the original is to stop", || alloc(server, &original_id)["DesiredStatus"] == "stop");
    node.report(&original_id, "complete").await.unwrap();
}

/// Whatever it says: it is ready only after it has said how its work is.
async fn come_back(server: &Agent, node: &FakeNode, alloc_id: &str, first: First) {
    match first {
        First::Beats => {}
        First::Reports => {
            let before = newest_change(server, alloc_id);
            let refused = node.report(alloc_id, "running").await.unwrap_err().to_string();
            assert!(refused.contains("disconnected"), "{refused}");
            assert_eq!(newest_change(server, alloc_id), before, "nothing was written");
            assert_eq!(status(server, node), "disconnected");
        }
        First::Registers => {
            node.register().await.unwrap();
            assert_eq!(status(server, node), "disconnected", "registering is no sign of life");
        }
    }
    node.beat().await.unwrap();
    assert_eq!(status(server, node), "initializing", "{first:?}");
    node.beat().await.unwrap();
    assert_eq!(status(server, node), "initializing", "{first:?}: however often it asks");
    node.report(alloc_id, "running").await.unwrap();
    assert_eq!(alloc(server, alloc_id)["ClientStatus"], "running");
    node.beat().await.unwrap();
    assert_eq!(status(server, node), "ready", "{first:?}");
}

fn reconnecting(id: &str) -> Value {
    let mut job = job(id, json!({"command": "/bin/true"}));
    let hour_ns = 3_600_000_000_000_u64;
    let disconnect = json!({"LostAfter": hour_ns, "Replace": true, "Reconcile": "keep_original"});
    job["TaskGroups"][0]["Disconnect"] = disconnect;
    job
}

fn status(server: &Agent, node: &FakeNode) -> String {
    text(&server.get(&format!("/v1/node/{}", node.id()))["Status"])
}

fn alloc(server: &Agent, id: &str) -> Value {
    server.get(&format!("/v1/allocation/{id}"))
}

fn newest_change(server: &Agent, alloc_id: &str) -> Value {
    alloc(server, alloc_id)["ModifyIndex"].clone()
}

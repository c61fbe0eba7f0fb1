//! A node is drained: its allocations are replaced on another one.

use serde_json::json;

use crate::end_to_end::support::fake_node::FakeNode;
use crate::end_to_end::support::{AgentConfig, eventually, job, text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ran_on_an_emptied_node_goes_on_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let server = AgentConfig::server(directory.path(), "server").start();
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let node = FakeNode::connect(server.config.rpc, "dc1").await;
        node.register().await.unwrap();
        node.heartbeat().await.unwrap();
        nodes.push(node);
    }
    let _beats: Vec<_> = nodes.iter().map(FakeNode::keep_sending_heartbeats).collect();
    server.register(&job("web", json!({"command": "/bin/true"})));
    let first = eventually("the job is placed", || server.allocs("web").first().cloned());
    let (from, to) = match first["NodeID"] == nodes[0].id() {
        true => (&nodes[0], &nodes[1]),
        false => (&nodes[1], &nodes[0]),
    };
    let first = text(&first["ID"]);
    from.report(&first, "running").await.unwrap();

    let drained =
        server.run(&["node", "drain", "-enable", "-detach", "-m", "new disks", from.id()]).expect_success();
    assert_eq!(drained, format!("Node \"{}\" drain strategy set\n", from.id()));
    let node = || server.get(&format!("/v1/node/{}", from.id()));
    assert_eq!((&node()["Drain"], &node()["SchedulingEligibility"]), (&json!(true), &json!("ineligible")));
    // Its health is not known yet, so it does not migrate until the drain is forced.
    server.run(&["node", "drain", "-enable", "-detach", "-force", from.id()]).expect_success();
    let second = eventually("another takes its place", || {
        server.allocs("web").into_iter().find(|alloc| alloc["NodeID"] == to.id())
    });
    let alloc = server.get(&format!("/v1/allocation/{first}"));
    assert_eq!(
        (&alloc["DesiredStatus"], &alloc["NextAllocation"], &alloc["DesiredDescription"]),
        (&json!("stop"), &second["ID"], &json!("alloc is being migrated"))
    );
    until("the drain is over", || node()["LastDrain"]["Status"] == "complete");
    assert_eq!(node()["LastDrain"]["Meta"], json!({"message": "new disks"}));

    from.report(&first, "complete").await.unwrap();
    let watched = server.run(&["node", "drain", "-monitor", from.id()]).expect_success();
    assert!(watched.contains(&format!("Drain complete for node {}\n", from.id())), "{watched}");
    assert!(
        watched.ends_with(&format!("All allocations on node \"{}\" have stopped\n", from.id())),
        "{watched}"
    );
    let opened = server.run(&["node", "eligibility", "-enable", from.id()]).expect_success();
    assert!(opened.ends_with("scheduling eligibility set: eligible for scheduling\n"), "{opened}");
}

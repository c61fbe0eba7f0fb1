//! Heartbeats that say nothing new.

use model::{Actor, Command, NodeStatus, Request};

use crate::cluster::Cluster;

/// Only the leader counts them, whichever server a node calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_heartbeat_of_a_ready_node_is_renewed_through_every_server() {
    let cluster = Cluster::start().await;
    let node = test_world::node_id(1);
    let submit = async |nth: usize, command: Command| {
        let receipt = cluster.server(nth).control.submit(Request::unnamed(Actor::Node(node), command)).await;
        receipt.expect("it is decided").index
    };
    let document = Box::new(test_world::node_document(1, "r1"));
    let registered = submit(0, Command::RegisterNode { document }).await;
    for nth in 0..3 {
        let control = &cluster.server(nth).control;
        control.reach(registered).await.expect("every server has it");
        assert_eq!(control.renew_heartbeat(node).await, None, "that it is ready has to be decided");
    }
    let ready = submit(1, Command::UpdateNodeStatus { node, claimed: NodeStatus::Ready }).await;
    for nth in 0..3 {
        let control = &cluster.server(nth).control;
        control.reach(ready).await.expect("every server has it");
        let ttl = control.renew_heartbeat(node).await.expect("it is ready");
        assert!(ttl >= base::Duration::from_secs(10), "{ttl:?}");
    }
    let counting = (0..3).filter(|nth| cluster.server(*nth).control.heartbeats_tracked() > 0);
    assert_eq!(counting.count(), 1);
    cluster.shutdown().await;
}

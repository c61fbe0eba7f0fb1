//! What the stream shows of pools of nodes.

use base::Index;
use feed::{Cursor, Feed};
use model::document::{Node, NodePool};
use model::{Command, NodeStatus};
use serde_json::Value;
use test_world::{World, node_document, node_id};

use crate::support::{Log, everything, read};

#[tokio::test]
async fn the_life_of_a_pool_is_seen_whoever_makes_it() {
    let mut world = World::new();
    let pool = |description: &str| NodePool {
        name: "gpu".into(),
        description: description.into(),
        ..NodePool::default()
    };
    world.submit(Command::UpsertNodePool(Box::new(pool("with cards")))).unwrap();
    world.submit(Command::UpsertNodePool(Box::new(pool("with two cards")))).unwrap();
    world.submit(Command::DeleteNodePool { name: "gpu".into() }).unwrap();
    // A node brings the one that it names.
    let document = Box::new(Node { node_pool: "edge".into(), ..node_document(1, "r1") });
    world.submit(Command::RegisterNode { document }).unwrap();
    world.submit(Command::UpdateNodeStatus { node: node_id(1), claimed: NodeStatus::Ready }).unwrap();
    world.check_replay();

    let log = Log::of(&world.log);
    let events = read(&Feed::new(log.clone()), Cursor::at(Index(1)), log.last(), &everything()).await;
    let events = events.iter().map(|event| serde_json::from_slice::<Value>(&event.body).unwrap());
    let shown: Vec<_> = events
        .filter(|event| event["Topic"] == "NodePool")
        .map(|event| {
            let pool = &event["Payload"]["NodePool"];
            assert_eq!((&pool["Name"], &event["Namespace"]), (&event["Key"], &Value::from("")));
            format!("{} {} {}", event["Type"], event["Key"], pool["Description"]).replace('"', "")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "NodePoolUpserted gpu with cards",
            "NodePoolUpserted gpu with two cards",
            // As it was before.
            "NodePoolDeleted gpu with two cards",
            "NodePoolUpserted edge ",
        ]
    );
}

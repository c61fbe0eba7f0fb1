//! What nodes have in common.

use model::Command;
use model::document::{Node, NodeDeviceResource, NodeResources};
use test_world::{World, node_document, node_id};

/// The class that the rules give to a node.
fn class(change: impl FnOnce(&mut Node)) -> String {
    let device = NodeDeviceResource { name: "t4".into(), ..NodeDeviceResource::default() };
    let mut node = node_document(1, "r1");
    let own = node.node_resources.take().unwrap_or_default();
    node.node_resources = Some(NodeResources { devices: vec![device].into(), ..own });
    node.attributes.insert("cpu.arch".into(), "amd64".into());
    node.attributes.insert("unique.x".into(), "1".into());
    change(&mut node);
    let mut world = World::new();
    world.submit(Command::RegisterNode { document: Box::new(node) }).unwrap();
    let row = world.state.nodes.find(node_id(1)).unwrap();
    world.state.nodes.class_name(world.state.nodes.hot(row).class).to_string()
}

/// H69.
#[test]
fn a_class_is_what_constraints_see_and_nodes_share() {
    let plain = class(|_| ());
    assert_eq!(class(|node| drop(node.attributes.insert("unique.x".into(), "2".into()))), plain);
    assert_eq!(class(|node| drop(node.meta.insert("unique.y".into(), "2".into()))), plain);
    assert_eq!(class(|node| node.name = "other".into()), plain);
    let others = [
        class(|node| drop(node.attributes.insert("cpu.arch".into(), "arm64".into()))),
        class(|node| node.node_class = "gpu".into()),
        class(|node| node.node_pool = "gpu".into()),
        class(|node| node.datacenter = "dc2".into()),
        class(|node| drop(node.meta.insert("rack".into(), "r2".into()))),
        class(|node| {
            node.node_resources.iter_mut().for_each(|own| own.devices[0].name = "a100".into());
        }),
    ];
    for (at, other) in others.iter().enumerate() {
        assert!(*other != plain, "{at}");
        assert_eq!(others.iter().filter(|class| *class == other).count(), 1, "{at}");
    }
}

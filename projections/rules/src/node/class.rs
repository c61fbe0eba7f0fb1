use model::document::Node;

/// A hash of everything that constraints look at, but for what is unique to a node.
///
/// Two nodes of one class answer every constraint alike, unless it looks at a `unique.` key.
///
/// Nomad's form is `v1:<decimal u64>`; only equality matters.
pub fn computed_class(node: &Node) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    part(&node.datacenter);
    part(&node.node_class);
    part(&node.node_pool);
    for (section, map) in [("attributes", &node.attributes), ("meta", &node.meta)] {
        part(section);
        for (key, value) in map.iter().filter(|(key, _)| !key.starts_with("unique.")) {
            part(key);
            part(value);
        }
    }
    for (name, driver) in &node.drivers {
        // Nomad leaves drivers out of the class, though its constraint checker caches them by class.
        part(name);
        part(if driver.detected && driver.healthy { "healthy" } else { "unhealthy" });
    }
    for device in node.node_resources.iter().flat_map(|resources| &resources.devices) {
        part(&device.vendor);
        part(&device.kind);
        part(&device.name);
    }
    let digest = hasher.finalize();
    let number = u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("a digest has 32 bytes"));
    format!("v1:{number}")
}

#[cfg(test)]
mod tests {
    use model::document::{NodeDeviceResource, NodeResources};

    use super::*;

    fn with(change: impl FnOnce(&mut Node)) -> String {
        let device = NodeDeviceResource { name: "t4".into(), ..NodeDeviceResource::default() };
        let resources = NodeResources { devices: vec![device].into(), ..NodeResources::default() };
        let mut node = Node { node_resources: Some(resources), ..Node::default() };
        node.attributes.insert("cpu.arch".into(), "amd64".into());
        node.attributes.insert("unique.x".into(), "1".into());
        change(&mut node);
        computed_class(&node)
    }

    /// H69.
    #[test]
    fn a_class_is_what_constraints_see_and_nodes_share() {
        let plain = with(|_| ());
        assert_eq!(with(|node| drop(node.attributes.insert("unique.x".into(), "2".into()))), plain);
        assert_eq!(with(|node| drop(node.meta.insert("unique.y".into(), "2".into()))), plain);
        assert_eq!(with(|node| node.name = "other".into()), plain);
        let others = [
            with(|node| drop(node.attributes.insert("cpu.arch".into(), "arm64".into()))),
            with(|node| node.node_class = "gpu".into()),
            with(|node| node.node_pool = "gpu".into()),
            with(|node| node.datacenter = "dc2".into()),
            with(|node| drop(node.meta.insert("rack".into(), "r1".into()))),
            with(|node| {
                node.node_resources.iter_mut().for_each(|own| own.devices[0].name = "a100".into());
            }),
        ];
        for (at, other) in others.iter().enumerate() {
            assert!(*other != plain, "{at}");
            assert_eq!(others.iter().filter(|class| *class == other).count(), 1, "{at}");
        }
    }
}

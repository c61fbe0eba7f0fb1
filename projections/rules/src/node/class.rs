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

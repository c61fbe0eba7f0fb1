//! The nodes of a cluster.

use base::Rng;
use model::NodeId;
use model::document::{HostVolumeInfo, Node, input};

use super::volumes;

/// The racks that nodes stand in and jobs may insist on.
pub const RACKS: u64 = 3;
/// The host volume that most nodes have.
pub const VOLUME: &str = "data";

pub fn id(number: usize) -> NodeId {
    NodeId((0x90de << 112 | (number as u128 + 1)).into())
}

/// How a node describes itself; `revision` changes with what its operator changes.
pub fn document(number: usize, seed: u64, revision: u64) -> Node {
    let mut rng = Rng::stream(seed ^ number as u64, "node");
    let (cpu, memory) = (1_000 + 500 * rng.below(4), 1_024 + 512 * rng.below(4));
    let resources = serde_json::json!({
        "Cpu": {"CpuShares": cpu}, "Memory": {"MemoryMB": memory}, "Disk": {"DiskMB": 100_000},
        "Networks": [{"Mode": "host", "Device": "eth0", "IP": "10.0.0.1"}],
        "NodeNetworks": [{"Mode": "host", "Device": "eth0", "Addresses": [{"Address": "10.0.0.1", "Alias": "default"}]}],
    });
    let has_volume = rng.below(3) > 0;
    let volume = HostVolumeInfo { path: "/srv/data".to_string(), ..HostVolumeInfo::default() };
    let own = has_volume.then(|| (VOLUME.to_string(), volume));
    // Plugins and volumes that were made there come and go with what the operator changes.
    let mut rng = Rng::stream(seed ^ number as u64 ^ (revision << 32), "volumes");
    let made = (rng.below(3) > 0).then(|| (volumes::MADE.to_string(), volumes::reported(number)));
    let plugin = (volumes::PLUGIN.to_string(), volumes::plugin(&mut rng));
    let pairs = |pairs: &[(&str, String)]| pairs.iter().map(|(k, v)| (k.to_string(), v.clone())).collect();
    Node {
        id: id(number).to_string(),
        secret_id: format!("secret-{number}"),
        name: format!("n{number}"),
        datacenter: "dc1".to_string(),
        attributes: pairs(&[("kernel.name", "linux".into()), ("driver.none", "1".into())]),
        meta: pairs(&[("rack", format!("r{}", rng.below(RACKS))), ("revision", revision.to_string())]),
        host_volumes: own.into_iter().chain(made).collect(),
        csi_node_plugins: [plugin].into_iter().collect(),
        node_resources: Some(input::from_value(resources).expect("resources are well formed")),
        ..Node::default()
    }
}

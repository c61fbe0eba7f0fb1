//! What this node is and has, as the scheduler sees it. Read once, at the start.

pub mod cgroup;
mod cpu;
mod host;
mod network;

use std::collections::BTreeMap;
use std::path::Path;

use model::document::{
    Map, NetworkResource, Node, NodeCpuResources, NodeDiskResources, NodeMemoryResources,
    NodeProcessorResources, NodeReservedCpuResources, NodeReservedDiskResources, NodeReservedMemoryResources,
    NodeReservedNetworkResources, NodeReservedResources, NodeResources,
};

use crate::identity::NodeIdentity;
use crate::settings::NodeSettings;

/// The release of Nomad with which this agent is compatible.
const NOMAD_VERSION: &str = "2.0.0";

const MIB: u64 = 1024 * 1024;

pub type Attributes = BTreeMap<String, String>;

/// The node as it registers, without its drivers.
///
/// # Errors
/// When there is no network interface to offer.
pub fn node(
    settings: &NodeSettings,
    identity: &NodeIdentity,
    cgroup_parent: Option<&Path>,
) -> Result<Node, String> {
    let mut attributes = Attributes::new();
    host::describe(&mut attributes);
    cgroup::describe(cgroup_parent, &mut attributes);
    let network = network::find(&settings.network_interface)?;
    network::describe(&network, &mut attributes);
    versions(settings, &mut attributes);
    let resources = resources(settings, &network, &mut attributes);
    let hostname = attributes.get("unique.hostname").cloned().unwrap_or_default();
    let named = |name: &String, or: &str| if name.is_empty() { or.to_string() } else { name.clone() };
    Ok(Node {
        id: identity.id.to_string(),
        secret_id: identity.secret.to_string(),
        name: named(&settings.node_name, &hostname),
        datacenter: named(&settings.datacenter, "dc1"),
        node_class: settings.node_class.clone(),
        node_pool: named(&settings.node_pool, "default"),
        http_addr: settings.http_address.clone(),
        tls_enabled: settings.tls_http,
        attributes: Map(attributes),
        meta: Map(settings.meta.clone()),
        node_resources: Some(resources),
        reserved_resources: Some(reserved(settings)),
        cgroup_parent: cgroup::PARENT.to_string(),
        node_max_allocs: i64::from(settings.node_max_allocs),
        scheduling_eligibility: if settings.default_ineligible { "ineligible" } else { "eligible" }
            .to_string(),
        status: "initializing".to_string(),
        ..Node::default()
    })
}

fn versions(settings: &NodeSettings, attributes: &mut Attributes) {
    let address = settings.http_address.rsplit_once(':').map_or("", |(host, _)| host);
    for (name, value) in [
        ("nomad.version", NOMAD_VERSION),
        ("nomad.revision", ""),
        // Services are not registered by this agent: a job that insists on it must not come here.
        ("nomad.service_discovery", "false"),
        ("sojourn.version", env!("CARGO_PKG_VERSION")),
        ("unique.advertise.address", address),
    ] {
        // An empty value means that the attribute does not exist.
        if !value.is_empty() {
            attributes.insert(name.to_string(), value.to_string());
        }
    }
}

fn resources(
    settings: &NodeSettings,
    network: &network::Interface,
    attributes: &mut Attributes,
) -> NodeResources {
    let topology = cpu::topology(settings);
    let totals = cpu::describe(&topology, settings, attributes);
    let memory_bytes = match settings.capacity.memory_mib {
        0 => host::memory_bytes(),
        mib => mib * MIB,
    };
    attributes.insert("memory.totalbytes".to_string(), memory_bytes.to_string());
    let disk_mib = match settings.capacity.disk_mib {
        0 => host::disk_bytes(&settings.alloc_dir) / MIB,
        mib => mib,
    };
    attributes.insert("unique.storage.volume".into(), host::volume(&settings.alloc_dir));
    attributes.insert("unique.storage.bytestotal".into(), (disk_mib * MIB).to_string());
    let networks: Vec<NetworkResource> = network.resources();
    NodeResources {
        cpu: NodeCpuResources {
            cpu_shares: totals.mhz as i64,
            total_cpu_cores: topology.cores.len() as u16,
            reservable_cpu_cores: topology
                .cores
                .iter()
                .filter(|core| !core.disable)
                .map(|core| core.id)
                .collect(),
        },
        memory: NodeMemoryResources { memory_mb: (memory_bytes / MIB) as i64 },
        disk: NodeDiskResources { disk_mb: disk_mib as i64 },
        networks: networks.into(),
        min_dynamic_port: i64::from(settings.min_dynamic_port),
        max_dynamic_port: i64::from(settings.max_dynamic_port),
        processors: NodeProcessorResources { topology: Some(topology) },
        node_networks: vec![network.node_network()].into(),
        ..NodeResources::default()
    }
}

fn reserved(settings: &NodeSettings) -> NodeReservedResources {
    let own = &settings.reserved;
    NodeReservedResources {
        cpu: NodeReservedCpuResources {
            cpu_shares: own.cpu_mhz,
            reserved_cpu_cores: own.cores.clone().into(),
        },
        memory: NodeReservedMemoryResources { memory_mb: own.memory_mib },
        disk: NodeReservedDiskResources { disk_mb: own.disk_mib },
        networks: NodeReservedNetworkResources { reserved_host_ports: own.ports.clone() },
    }
}

//! What this node is and has, as the scheduler sees it. Read once, at the start.

pub mod cgroup;
pub mod cloud;
mod cpu;
mod group_network;
mod host;
mod network;

use std::collections::BTreeMap;

use model::document::{
    HostNetworkInfo, HostVolumeInfo, Map, NetworkResource, Node, NodeCpuResources, NodeDiskResources,
    NodeMemoryResources, NodeProcessorResources, NodeReservedCpuResources, NodeReservedDiskResources,
    NodeReservedMemoryResources, NodeReservedNetworkResources, NodeReservedResources, NodeResources,
};

use crate::driver::process::CgroupParent;
use crate::identity::NodeIdentity;
use crate::network::HostNetwork;
use crate::settings::{HostVolume, NodeSettings};

/// The release of Nomad with which this agent is compatible.
const NOMAD_VERSION: &str = "2.0.0";

const MIB: u64 = 1024 * 1024;

pub type Attributes = BTreeMap<String, String>;

/// The parts of the host that are looked at, each with the attributes that it sets; a name that ends in a dot stands for
/// all below it.
const FINGERPRINTERS: [(&str, &[&str]); 17] = [
    ("arch", &["cpu.arch"]),
    ("bridge", &["nomad.bridge.hairpin_mode"]),
    ("cgroup", &["os.cgroups.version"]),
    // Its networks are no attributes.
    ("cni", &[]),
    (
        "cpu",
        &[
            "cpu.modelname",
            "cpu.frequency",
            "cpu.frequency.",
            "cpu.numcores",
            "cpu.numcores.",
            "cpu.reservablecores",
            "cpu.totalcompute",
            "cpu.usablecompute",
            "numa.",
        ],
    ),
    ("env_aws", &["platform.aws.", "unique.platform.aws."]),
    ("env_azure", &["platform.azure.", "unique.platform.azure."]),
    ("env_digitalocean", &["platform.digitalocean.", "unique.platform.digitalocean."]),
    ("env_gce", &["platform.gce.", "unique.platform.gce."]),
    ("host", &["os.name", "os.version", "kernel.", "unique.hostname", "unique.host_id"]),
    ("host_volume_plugins", &["plugins.host_volume."]),
    ("memory", &["memory.totalbytes"]),
    ("network", &["unique.network.ip-address"]),
    ("nomad", &["nomad.", "sojourn.version", "unique.advertise.address"]),
    ("plugins_cni", &["plugins.cni.version."]),
    ("signal", &["os.signals"]),
    ("storage", &["unique.storage."]),
];

/// The part of the host that an attribute belongs to.
fn fingerprinter_of(attribute: &str) -> Option<&'static str> {
    let sets = |pattern: &str| match pattern.ends_with('.') {
        true => attribute.starts_with(pattern),
        false => attribute == pattern,
    };
    FINGERPRINTERS
        .iter()
        .find(|(_, patterns)| patterns.iter().any(|pattern| sets(pattern)))
        .map(|(name, _)| *name)
}

/// The node as it registers, without its drivers.
///
/// # Errors
/// When there is no network interface to offer, or a host volume is no directory or file of this host.
pub fn node(
    settings: &NodeSettings,
    identity: &NodeIdentity,
    cgroup_parent: Option<&CgroupParent>,
) -> Result<Node, String> {
    let mut attributes = Attributes::new();
    host::describe(&mut attributes);
    cgroup::describe(cgroup_parent, &mut attributes);
    let filter = &settings.fingerprint_filter;
    let network = match filter.allows("network") {
        true => Some(network::find(&settings.network_interface, wishes(settings))?),
        false => None,
    };
    network.iter().for_each(|network| network::describe(network, &mut attributes));
    versions(settings, &mut attributes);
    let groups = group_network::find(&settings.network);
    groups.describe(&mut attributes);
    let mut resources = resources(settings, network.as_ref(), &mut attributes);
    let hostname = attributes.get("unique.hostname").cloned().unwrap_or_default();
    let named = |name: &String, or: &str| if name.is_empty() { or.to_string() } else { name.clone() };
    attributes.retain(|name, _| fingerprinter_of(name).is_none_or(|part| filter.allows(part)));
    let also = groups.resources(filter.allows("bridge"), filter.allows("cni"));
    resources.networks.0.extend(also.0);
    resources.node_networks.0.extend(also.1);
    if !filter.allows("cpu") {
        (resources.cpu, resources.processors) = Default::default();
    }
    if !filter.allows("memory") {
        resources.memory = NodeMemoryResources::default();
    }
    if !filter.allows("storage") {
        resources.disk = NodeDiskResources::default();
    }
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
        host_volumes: Map(host_volumes(settings)?),
        gc_volumes_on_node_gc: settings.gc_volumes_on_node_gc,
        host_networks: Map(host_networks(settings)),
        cgroup_parent: cgroup::name(cgroup_parent),
        node_max_allocs: i64::from(settings.node_max_allocs),
        scheduling_eligibility: if settings.default_ineligible { "ineligible" } else { "eligible" }
            .to_string(),
        status: "initializing".to_string(),
        ..Node::default()
    })
}

fn wishes(settings: &NodeSettings) -> network::Wishes {
    network::Wishes { mbits: settings.network_speed_mbits, ipv6_first: settings.ipv6_first }
}

fn host_networks(settings: &NodeSettings) -> BTreeMap<String, HostNetworkInfo> {
    let info = |name: &String, network: &HostNetwork| HostNetworkInfo {
        name: name.clone(),
        cidr: network.cidr.clone(),
        interface: network.interface.clone(),
        reserved_ports: network.reserved_ports.clone(),
    };
    settings.network.host_networks.iter().map(|(name, network)| (name.clone(), info(name, network))).collect()
}

fn host_volumes(settings: &NodeSettings) -> Result<BTreeMap<String, HostVolumeInfo>, String> {
    let mut volumes = BTreeMap::new();
    for (name, HostVolume { path, read_only }) in &settings.host_volumes {
        let shown = path.display();
        if let Err(error) = path.metadata() {
            return Err(format!(
                "client.host_volume \"{name}\": expected an existing path, \"{shown}\": {error}"
            ));
        }
        let (path, read_only) = (shown.to_string(), *read_only);
        volumes
            .insert(name.clone(), HostVolumeInfo { path, read_only, name: name.clone(), id: String::new() });
    }
    Ok(volumes)
}

fn versions(settings: &NodeSettings, attributes: &mut Attributes) {
    let address = settings.http_address.rsplit_once(':').map_or("", |(host, _)| host);
    for (name, value) in [
        ("nomad.version", NOMAD_VERSION),
        ("nomad.revision", ""),
        ("nomad.service_discovery", if settings.service_discovery { "true" } else { "false" }),
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
    network: Option<&network::Interface>,
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
    let networks: Vec<NetworkResource> = network.iter().flat_map(|network| network.resources()).collect();
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
        node_networks: network
            .iter()
            .flat_map(|network| network::named(network, &settings.network.host_networks, wishes(settings)))
            .collect(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NameFilter;
    use crate::testing;

    fn described(filter: NameFilter) -> Node {
        let base = tempfile::tempdir().unwrap();
        let identity = NodeIdentity::load(base.path(), false).unwrap();
        let settings = NodeSettings { fingerprint_filter: filter, ..testing::settings(base.path()) };
        node(&settings, &identity, Some(&CgroupParent::V2 { slice: "/x".into() })).unwrap()
    }

    fn names(names: &[&str]) -> std::collections::BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_attribute_belongs_to_a_part_that_can_be_denied() {
        let node = described(NameFilter::default());
        let without: Vec<_> =
            node.attributes.keys().filter(|name| fingerprinter_of(name).is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
        let all = FINGERPRINTERS.map(|(name, _)| name);
        let nothing = described(NameFilter { denied: names(&all), ..NameFilter::default() });
        assert!(nothing.attributes.is_empty(), "{:?}", nothing.attributes);
        let resources = nothing.node_resources.unwrap();
        let NodeResources { cpu, memory, disk, networks, node_networks, .. } = resources;
        assert_eq!((cpu.cpu_shares, memory.memory_mb, disk.disk_mb), (0, 0, 0));
        assert!(networks.is_empty() && node_networks.is_empty());
    }

    #[test]
    fn only_what_is_allowed_and_not_denied_is_looked_at() {
        let node = described(NameFilter { allowed: names(&["arch", "host"]), denied: names(&["host"]) });
        assert_eq!(node.attributes.keys().collect::<Vec<_>>(), ["cpu.arch"]);
        assert_eq!(node.name, "alpha");
    }
}

//! Whether a node has the network mode of a group and the host networks of its ports.

use model::document::{Node, TaskGroup};
use state::node::NodeCold;

use crate::feasibility::constraint::{Target, satisfies_semver};

/// The first network of a group. Further ones are ignored, as in Nomad.
#[derive(Clone, Debug, Default)]
pub struct NetworkRequest {
    /// `None`: every node is feasible.
    mode: Option<String>,
    host_networks: Vec<HostNetwork>,
}

/// A host network that a port has to be on.
#[derive(Clone, Debug)]
struct HostNetwork {
    port: String,
    /// As the job wrote it.
    text: String,
    target: Target,
}

impl NetworkRequest {
    pub fn of(group: &TaskGroup) -> NetworkRequest {
        let network = group.networks.first().filter(|network| network.mode != "none");
        let Some(network) = network else { return NetworkRequest::default() };
        let ports = network.reserved_ports.iter().chain(&network.dynamic_ports);
        let named = ports.filter(|port| !port.host_network.is_empty()).map(|port| HostNetwork {
            port: port.label.clone(),
            text: port.host_network.clone(),
            target: Target::parse(&port.host_network),
        });
        let mode = if network.mode.is_empty() { "host" } else { &network.mode };
        NetworkRequest { mode: Some(mode.to_string()), host_networks: named.collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.mode.is_none()
    }

    /// What the node lacks, as the reason in metrics.
    pub fn missing(&self, node: &NodeCold) -> Option<String> {
        let mode = self.mode.as_deref()?;
        if !modes(&node.document).any(|own| own == mode) {
            // Agents before 0.12 had bridges but did not report them.
            let old = mode == "bridge" && is_before_bridges(&node.document);
            return (!old).then(|| "missing network".to_string());
        }
        self.host_networks.iter().find_map(|wanted| wanted.missing(node))
    }
}

impl HostNetwork {
    fn missing(&self, node: &NodeCold) -> Option<String> {
        let HostNetwork { port, text, target } = self;
        let Some(name) = target.resolve(node) else {
            return Some(format!("invalid host network \"{text}\" template for port \"{port}\""));
        };
        let is_known = matches!(&*name, "" | "default") || aliases(&node.document).any(|own| own == name);
        (!is_known).then(|| format!("missing host network \"{name}\" for port \"{port}\""))
    }
}

/// The modes of a node's networks; the default is host.
fn modes(node: &Node) -> impl Iterator<Item = &str> {
    let resources = node.node_resources.iter();
    let modes = resources.flat_map(|resources| {
        let networks = resources.networks.iter().map(|network| network.mode.as_str());
        networks.chain(resources.node_networks.iter().map(|network| network.mode.as_str()))
    });
    modes.map(|mode| if mode.is_empty() { "host" } else { mode })
}

fn aliases(node: &Node) -> impl Iterator<Item = &str> {
    let networks = node.node_resources.iter().flat_map(|resources| &resources.node_networks);
    networks.flat_map(|network| &network.addresses).map(|address| address.alias.as_str())
}

fn is_before_bridges(node: &Node) -> bool {
    node.attributes.get("nomad.version").is_some_and(|version| satisfies_semver(version, "< 0.12.0"))
}

#[cfg(test)]
mod tests {
    use base::{Index, Time, Uuid};
    use model::NodeId;
    use model::document::{NetworkResource, NodeNetworkAddress, NodeNetworkResource, NodeResources, Port};

    use super::*;

    fn cold(modes: &[&str], aliases: &[&str], edit: impl FnOnce(&mut Node)) -> NodeCold {
        let network = |mode: &&str| NetworkResource { mode: mode.to_string(), ..NetworkResource::default() };
        let address =
            |alias: &&str| NodeNetworkAddress { alias: alias.to_string(), ..NodeNetworkAddress::default() };
        let addresses = NodeNetworkResource {
            mode: "host".into(),
            addresses: aliases.iter().map(address).collect(),
            ..NodeNetworkResource::default()
        };
        let resources = NodeResources {
            networks: modes.iter().map(network).collect(),
            node_networks: (!aliases.is_empty()).then_some(addresses).into_iter().collect(),
            ..NodeResources::default()
        };
        let mut document = Node { node_resources: Some(resources), ..Node::default() };
        edit(&mut document);
        NodeCold {
            id: NodeId(Uuid::from(1)),
            document: state::LazyDoc::of(&document),
            secret_hash: [0; 32],
            created: Index(1),
            status_updated: Time::ZERO,
            messages: Vec::new(),
            drain: None,
        }
    }

    fn ask(mode: &str, host_network: &str) -> NetworkRequest {
        let port = Port { label: "http".into(), host_network: host_network.into(), ..Port::default() };
        let network = NetworkResource {
            mode: mode.into(),
            dynamic_ports: vec![port].into(),
            ..NetworkResource::default()
        };
        NetworkRequest::of(&TaskGroup { networks: vec![network].into(), ..TaskGroup::default() })
    }

    fn missing(mode: &str, node: &NodeCold) -> Option<String> {
        ask(mode, "").missing(node)
    }

    /// H50, H51.
    #[test]
    fn a_node_has_the_mode_or_is_older_than_it() {
        let no = Some("missing network".to_string());
        let plain = cold(&["", "cni/calico"], &[], |_| ());
        assert_eq!(missing("host", &plain), None);
        assert_eq!(missing("", &plain), None);
        assert_eq!(missing("cni/calico", &plain), None);
        assert_eq!(missing("cni/other", &plain), no);
        assert_eq!(missing("bridge", &plain), no);
        assert_eq!(missing("bridge", &cold(&["bridge"], &[], |_| ())), None);
        for (version, expected) in [("0.11.3", None), ("0.12.0", no.clone()), ("2.0.1", no.clone())] {
            let node = cold(&[""], &[], |node| {
                node.attributes.insert("nomad.version".into(), version.into());
            });
            assert_eq!(missing("bridge", &node), expected, "{version}");
        }
        let bare = cold(&[], &[], |_| ());
        assert_eq!((missing("none", &bare), missing("host", &bare)), (None, no));
        assert!(NetworkRequest::of(&TaskGroup::default()).missing(&bare).is_none());
    }

    /// H52, H53.
    #[test]
    fn ports_name_host_networks_or_what_a_node_calls_them() {
        let node = cold(&[""], &["default", "private"], |node| {
            node.meta.insert("net".into(), "private".into());
        });
        let missing = |host_network: &str| ask("host", host_network).missing(&node);
        assert_eq!(missing("private"), None);
        assert_eq!(missing("default"), None);
        assert_eq!(missing("${meta.net}"), None);
        let public = "missing host network \"public\" for port \"http\"";
        assert_eq!(missing("public").as_deref(), Some(public));
        let template = "invalid host network \"${meta.none}\" template for port \"http\"";
        assert_eq!(missing("${meta.none}").as_deref(), Some(template));
    }
}

//! Networks of groups, in the `client` block.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use ipnet::IpNet;
use jobspec::config::Section;
use node::network::{HostNetwork, NetworkSettings, Subnet};

use super::unsupported::Refused;
use super::value::ConfigValue;

/// Which addresses of an interface come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AddressFamily {
    #[default]
    Ipv4,
    Ipv6,
}

impl ConfigValue for AddressFamily {
    const EXPECTED: &'static str = "ipv4 or ipv6";

    fn from_text(text: &str) -> Option<AddressFamily> {
        match text {
            "ipv4" | "" => Some(AddressFamily::Ipv4),
            "ipv6" => Some(AddressFamily::Ipv6),
            _ => None,
        }
    }
}

/// What an interface may be called.
const NAME_MAX: usize = 15;

pub(super) fn client(network: &mut NetworkSettings, section: &mut Section, refused: &mut Refused) {
    bridge(network, section, refused);
    refused.set(section, "bind_wildcard_default_host_network", &mut network.bind_wildcard);
    let mut paths: Option<String> = None;
    refused.set_option(section, "cni_path", &mut paths);
    if let Some(paths) = paths {
        network.cni_path = paths.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    }
    refused.set(section, "cni_config_dir", &mut network.cni_config_dir);
    for inner in refused.sections(section, "host_network") {
        host_networks(network, inner, refused);
    }
}

fn bridge(network: &mut NetworkSettings, section: &mut Section, refused: &mut Refused) {
    refused.set(section, "bridge_network_name", &mut network.bridge_name);
    let name = &network.bridge_name;
    let plain = |c: char| c.is_ascii_graphic() && c != '/';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(plain) {
        let text = format!("bridge_network_name \"{name}\": expected 1 to {NAME_MAX} characters");
        refused.also(Err(section.wrong(text)));
    }
    refused.set(section, "bridge_network_hairpin_mode", &mut network.bridge_hairpin);
    let mut subnets: [Option<String>; 2] = Default::default();
    for (key, subnet) in ["bridge_network_subnet", "bridge_network_subnet_ipv6"].into_iter().zip(&mut subnets)
    {
        refused.set_option(section, key, subnet);
    }
    let [v4, v6] = subnets.map(|subnet| subnet.filter(|text| !text.is_empty()));
    match v4.map(|text| Subnet::<Ipv4Addr>::parse(&text)) {
        None => {}
        Some(Ok(subnet)) => network.bridge_subnet = subnet,
        Some(Err(why)) => refused.also(Err(section.wrong(format!("bridge_network_subnet: {why}")))),
    }
    match v6.map(|text| Subnet::<Ipv6Addr>::parse(&text)) {
        None => {}
        Some(Ok(subnet)) => network.bridge_subnet_v6 = Some(subnet),
        Some(Err(why)) => refused.also(Err(section.wrong(format!("bridge_network_subnet_ipv6: {why}")))),
    }
}

/// One network by its label, or in JSON some by their keys.
fn host_networks(network: &mut NetworkSettings, mut section: Section, refused: &mut Refused) {
    if let Some(name) = section.labels.first().cloned() {
        return host_network(network, name, section, refused);
    }
    for name in section.names() {
        for inner in refused.sections(&mut section, &name) {
            host_network(network, name.clone(), inner, refused);
        }
    }
    refused.done(section);
}

fn host_network(network: &mut NetworkSettings, name: String, mut section: Section, refused: &mut Refused) {
    let mut own = HostNetwork::default();
    refused.set(&mut section, "cidr", &mut own.cidr);
    refused.set(&mut section, "interface", &mut own.interface);
    refused.set(&mut section, "reserved_ports", &mut own.reserved_ports);
    let ranges = own.cidr.split(',').map(str::trim).filter(|range| !range.is_empty());
    let unread = ranges.clone().find(|range| range.parse::<IpNet>().is_err());
    let wrong = if name.is_empty() || name == "default" {
        Some(format!("host_network \"{name}\": expected a name other than default"))
    } else if let Some(range) = unread {
        Some(format!("host_network \"{name}\": cidr: expected networks like 10.0.0.0/8, not \"{range}\""))
    } else if own.interface.contains("{{") {
        Some(format!(
            "host_network \"{name}\": interface: templates are not supported yet; name the interface"
        ))
    } else if ranges.count() == 0 && own.interface.is_empty() {
        Some(format!("host_network \"{name}\": expected a cidr or an interface"))
    } else {
        None
    };
    if let Some(text) = wrong {
        refused.also(Err(section.wrong(text)));
    }
    network.host_networks.insert(name, own);
    refused.done(section);
}

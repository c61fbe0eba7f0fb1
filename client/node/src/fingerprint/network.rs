//! The network interface that this node offers, and its addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use model::document::{NetworkResource, NodeNetworkAddress, NodeNetworkResource};

use super::Attributes;
use crate::network::HostNetwork;

/// The speed of an interface that does not report one.
const GUESSED_MBITS: i64 = 1000;

#[derive(Clone, Debug, Default)]
pub struct Interface {
    name: String,
    mac: String,
    mbits: i64,
    /// In the order that is wished for; link-local ones only where there are no others.
    addresses: Vec<IpAddr>,
}

/// What the operator says of all interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// In place of what they say of themselves; 0 for that.
    pub mbits: u64,
    pub ipv6_first: bool,
}

/// The interface of this name, or the one of the default route.
///
/// # Errors
/// When there is none, or it has no address.
pub fn find(name: &str, wishes: Wishes) -> Result<Interface, String> {
    let name = match name {
        "" => default_route(&std::fs::read_to_string("/proc/net/route").unwrap_or_default())
            .ok_or("there is no default route; set network_interface")?,
        name => name.to_string(),
    };
    let mut addresses = addresses(&name)?;
    addresses.sort_by_key(|address| (address.is_ipv6() != wishes.ipv6_first, *address));
    if addresses.is_empty() {
        return Err(format!("network interface \"{name}\" has no address"));
    }
    let read =
        |file: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{file}")).unwrap_or_default();
    let measured = || read("speed").trim().parse::<i64>().ok().filter(|speed| *speed > 0);
    let wished = i64::try_from(wishes.mbits).ok().filter(|speed| *speed > 0);
    let mbits = wished.or_else(measured).unwrap_or(GUESSED_MBITS);
    let mac = read("address").trim().to_string();
    Ok(Interface { mac, mbits, addresses, name })
}

/// The interface whose destination is everything.
fn default_route(table: &str) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (name, destination) = (fields.next()?, fields.next()?);
        (destination == "00000000").then(|| name.to_string())
    })
}

fn addresses(name: &str) -> Result<Vec<IpAddr>, String> {
    let all = nix::ifaddrs::getifaddrs().map_err(|errno| format!("network interfaces: {errno}"))?;
    let own = all.filter(|entry| entry.interface_name == name).filter_map(|entry| entry.address);
    let mut found: Vec<IpAddr> = own
        .filter_map(|address| match (address.as_sockaddr_in(), address.as_sockaddr_in6()) {
            (Some(v4), _) => Some(IpAddr::V4(v4.ip())),
            (_, Some(v6)) => Some(IpAddr::V6(v6.ip())),
            _ => None,
        })
        .collect();
    if found.iter().any(|address| !is_link_local(address)) {
        found.retain(|address| !is_link_local(address));
    }
    Ok(found)
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

pub fn describe(network: &Interface, attributes: &mut Attributes) {
    if let Some(first) = network.addresses.first() {
        attributes.insert("unique.network.ip-address".to_string(), first.to_string());
    }
}

impl Interface {
    /// One entry an address.
    pub fn resources(&self) -> Vec<NetworkResource> {
        let entry = |ip: &IpAddr| NetworkResource {
            mode: "host".to_string(),
            device: self.name.clone(),
            ip: ip.to_string(),
            cidr: format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 }),
            mbits: Some(self.mbits),
            ..NetworkResource::default()
        };
        self.addresses.iter().map(entry).collect()
    }
}

/// The interfaces that have addresses with a name: `default`, and those of the operator.
pub fn named(
    default: &Interface,
    networks: &BTreeMap<String, HostNetwork>,
    wishes: Wishes,
) -> Vec<NodeNetworkResource> {
    let mut names: BTreeSet<String> = match networks.is_empty() {
        true => BTreeSet::new(),
        false => interfaces(),
    };
    names.remove(&default.name);
    let others = names.iter().filter_map(|name| find(name, wishes).ok());
    let all: Vec<Interface> = [default.clone()].into_iter().chain(others).collect();
    all.iter().filter_map(|interface| interface.named(interface.name == default.name, networks)).collect()
}

fn interfaces() -> BTreeSet<String> {
    let all = nix::ifaddrs::getifaddrs().into_iter().flatten();
    all.map(|entry| entry.interface_name).collect()
}

impl Interface {
    /// Nothing when none of its addresses has a name.
    fn named(&self, default: bool, networks: &BTreeMap<String, HostNetwork>) -> Option<NodeNetworkResource> {
        let address = |ip: &IpAddr, alias: &str, reserved_ports: &str| NodeNetworkAddress {
            family: if ip.is_ipv4() { "ipv4" } else { "ipv6" }.to_string(),
            alias: alias.to_string(),
            address: ip.to_string(),
            reserved_ports: reserved_ports.to_string(),
            ..NodeNetworkAddress::default()
        };
        let mut addresses = Vec::new();
        for ip in &self.addresses {
            if default {
                addresses.push(address(ip, "default", ""));
            }
            let own = networks.iter().filter(|(_, network)| self.is_in(*ip, network));
            addresses.extend(own.map(|(name, network)| address(ip, name, &network.reserved_ports)));
        }
        (!addresses.is_empty()).then(|| NodeNetworkResource {
            mode: "host".to_string(),
            device: self.name.clone(),
            mac_address: self.mac.clone(),
            speed: self.mbits,
            addresses: addresses.into(),
        })
    }

    fn is_in(&self, ip: IpAddr, network: &HostNetwork) -> bool {
        let mut ranges = network.cidr.split(',').map(str::trim).filter(|range| !range.is_empty()).peekable();
        let everywhere = ranges.peek().is_none();
        let contains = |range: &str| range.parse::<IpNet>().is_ok_and(|range| range.contains(&ip));
        (network.interface.is_empty() || network.interface == self.name)
            && (everywhere || ranges.any(contains))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_is_the_one_to_everywhere() {
        let table = "Iface\tDestination\tGateway\neth1\t0000000A\t00000000\neth0\t00000000\t0100000A\n";
        assert_eq!(default_route(table).as_deref(), Some("eth0"));
        assert_eq!(default_route("Iface\tDestination\n"), None);
    }

    #[test]
    fn the_loopback_interface_has_its_address() {
        let lo = find("lo", Wishes::default()).unwrap();
        assert_eq!(lo.resources()[0].cidr, "127.0.0.1/32");
        assert!(find("no-such-interface", Wishes::default()).is_err());
    }

    #[test]
    fn the_operator_says_how_fast_an_interface_is_and_which_of_its_addresses_come_first() {
        let wishes = |ipv6_first| Wishes { mbits: 40, ipv6_first };
        let resources = find("lo", wishes(false)).unwrap().resources();
        assert_eq!((resources[0].mbits, resources[0].ip.as_str()), (Some(40), "127.0.0.1"));
        let mut turned = find("lo", wishes(true)).unwrap().resources();
        if turned.len() == 1 {
            eprintln!("skipped: this host has no IPv6");
        }
        turned.reverse();
        assert_eq!(turned, resources);
    }

    #[test]
    fn addresses_have_the_names_that_the_operator_gives_them() {
        let network = |cidr: &str, interface: &str, ports: &str| HostNetwork {
            cidr: cidr.into(),
            interface: interface.into(),
            reserved_ports: ports.into(),
        };
        let networks = BTreeMap::from([
            ("inner".to_string(), network("10.0.0.0/8, 127.0.0.0/8", "", "22")),
            ("loop".to_string(), network("", "lo", "")),
            ("outer".to_string(), network("192.0.2.0/24", "", "")),
        ]);
        let found = named(&find("lo", Wishes::default()).unwrap(), &networks, Wishes::default());
        let lo = found.iter().find(|network| network.device == "lo").unwrap();
        let v4 = lo.addresses.iter().filter(|address| address.address == "127.0.0.1");
        let v4: Vec<(&str, &str)> =
            v4.map(|address| (address.alias.as_str(), address.reserved_ports.as_str())).collect();
        assert_eq!(v4, [("default", ""), ("inner", "22"), ("loop", "")]);
        assert!(
            named(&find("lo", Wishes::default()).unwrap(), &BTreeMap::new(), Wishes::default())[0]
                .addresses
                .iter()
                .all(|a| a.alias == "default")
        );
    }
}

//! What the kernel does with the packets of the built-in bridge: a pure function of what is attached to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::link::octets;
use super::nft::{Base, Chain, Header, Hook, Is, Layer, Meta, Part, Rule, Set, Table, interface};
use super::subnet::{Subnet, mask};

/// Protocols that have ports, by their numbers.
const TRANSPORTS: [u8; 2] = [6, 17];

const IPV4: u8 = 2;
const IPV6: u8 = 10;

/// The bridge and its networks.
#[derive(Clone, Debug)]
pub struct Shape<'a> {
    pub bridge: &'a str,
    pub subnet: Subnet<Ipv4Addr>,
    pub subnet_v6: Option<Subnet<Ipv6Addr>>,
}

/// A port of the host that leads into an allocation.
///
/// It stands in records: fields are only ever added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Forward {
    /// The address of the host that it is on; `None` for all of them.
    pub host: Option<IpAddr>,
    pub host_port: u16,
    pub port: u16,
}

/// An allocation on the bridge.
#[derive(Clone, Debug)]
pub struct Attached<'a> {
    pub interface: &'a str,
    pub address: Ipv4Addr,
    pub address_v6: Option<Ipv6Addr>,
    pub forwards: &'a [Forward],
    /// Allocations of the same name reach each other, others do not reach them.
    pub isolated: Option<&'a str>,
}

/// One table for packets, and one for frames where allocations are isolated.
pub fn tables(name: &str, shape: &Shape<'_>, attached: &[Attached<'_>]) -> Vec<Table> {
    let isolated = Isolated::of(attached);
    let mut packets = Table {
        name: name.to_string(),
        layer: Layer::Inet,
        sets: ports(attached),
        chains: vec![
            guard(shape),
            redirects("prerouting", Hook::Prerouting, shape),
            redirects("output", Hook::Output, shape),
            leaving(shape),
        ],
    };
    let mut tables = Vec::new();
    if !isolated.all.is_empty() {
        packets.sets.extend(isolated.address_sets(attached));
        packets.chains.push(isolated.routed(shape));
        tables.extend(isolated.frames(name, shape, attached));
    }
    tables.insert(0, packets);
    tables
}

fn port_bytes(port: u16) -> [u8; 4] {
    let [high, low] = port.to_be_bytes();
    [high, low, 0, 0]
}

/// The names of the maps of one protocol, with what an address is in them.
struct Maps {
    protocol: u8,
    address: Part,
    /// By address, protocol and port.
    listed: &'static str,
    /// By protocol and port, for each address of this host.
    open: &'static str,
    /// The same, for those that the host calls itself by.
    loopback: &'static str,
}

const V4: Maps =
    Maps { protocol: IPV4, address: Part::Ip4, listed: "ports4", open: "open4", loopback: "local4" };
const V6: Maps = Maps { protocol: IPV6, address: Part::Ip6, listed: "ports6", open: "open6", loopback: "" };

type Elements = BTreeMap<Vec<u8>, Vec<u8>>;

/// What each port of the host leads to. Of two that want the same the first has it.
fn ports(attached: &[Attached<'_>]) -> Vec<Set> {
    let mut sets = Vec::new();
    for maps in [V4, V6] {
        let [mut listed, mut open, mut loopback] = [Elements::new(), Elements::new(), Elements::new()];
        for alloc in attached {
            let inside = match maps.protocol {
                IPV4 => Some(IpAddr::V4(alloc.address)),
                _ => alloc.address_v6.map(IpAddr::V6),
            };
            let Some(inside) = inside else { continue };
            for (forward, transport) in alloc.forwards.iter().flat_map(|f| TRANSPORTS.map(|t| (f, t))) {
                let data = [octets(inside), port_bytes(forward.port).to_vec()].concat();
                let short = [[transport, 0, 0, 0], port_bytes(forward.host_port)].concat();
                loopback.entry(short.clone()).or_insert_with(|| data.clone());
                match forward.host {
                    None => drop(open.entry(short).or_insert(data)),
                    Some(host) if host.is_ipv4() == inside.is_ipv4() => {
                        listed.entry([octets(host), short].concat()).or_insert(data);
                    }
                    Some(_) => {}
                }
            }
        }
        let (short, data) = (vec![Part::Protocol, Part::Port], vec![maps.address, Part::Port]);
        let long = [vec![maps.address], short.clone()].concat();
        for (name, key, elements) in
            [(maps.listed, long, listed), (maps.open, short.clone(), open), (maps.loopback, short, loopback)]
        {
            if !name.is_empty() {
                sets.push(Set { name, key, data: data.clone(), elements: elements.into_iter().collect() });
            }
        }
    }
    sets
}

fn of_protocol(protocol: u8) -> Rule {
    Rule::new().load_meta(Meta::NetworkProtocol, 0).compare(0, Is::Equal, &[protocol])
}

/// Offsets of the two addresses in the header of a protocol, and their length.
const fn layout(protocol: u8) -> (u32, u32, u32) {
    if protocol == IPV4 { (12, 16, 4) } else { (8, 24, 16) }
}

fn redirects(name: &'static str, hook: Hook, shape: &Shape<'_>) -> Chain {
    let mut rules = Vec::new();
    for maps in [V4, V6] {
        if maps.protocol == IPV6 && shape.subnet_v6.is_none() {
            continue;
        }
        let (_, destination, length) = layout(maps.protocol);
        let words = length / 4;
        let short = |rule: Rule, from: u32| {
            rule.load_meta(Meta::TransportProtocol, from).load(Header::Transport, 2, 2, from + 1)
        };
        let listed = of_protocol(maps.protocol).load(Header::Network, destination, length, 0);
        rules.push(short(listed, words).look_up(maps.listed).redirect(maps.protocol, words));
        if hook == Hook::Output && maps.protocol == IPV4 {
            let itself = within(of_protocol(IPV4), destination, &loopback(), Is::Equal);
            rules.push(short(itself, 0).look_up(maps.loopback).redirect(IPV4, 1));
        }
        let open = of_protocol(maps.protocol).for_this_host();
        rules.push(short(open, 0).look_up(maps.open).redirect(maps.protocol, words));
    }
    Chain { name, base: Base { kind: "nat", hook, priority: -100 }, rules }
}

/// A network as packets have it.
struct Network {
    protocol: u8,
    address: Vec<u8>,
    mask: Vec<u8>,
}

/// What the host calls itself by.
fn loopback() -> Network {
    Network { protocol: IPV4, address: vec![127, 0, 0, 0], mask: vec![255, 0, 0, 0] }
}

fn networks(shape: &Shape<'_>) -> Vec<Network> {
    let v4 = Network {
        protocol: IPV4,
        address: shape.subnet.base.octets().to_vec(),
        mask: mask(shape.subnet.prefix, 4),
    };
    let v6 = shape.subnet_v6.map(|subnet| Network {
        protocol: IPV6,
        address: subnet.base.octets().to_vec(),
        mask: mask(subnet.prefix, 16),
    });
    [v4].into_iter().chain(v6).collect()
}

/// The address at `offset` is one of the network, or is not.
fn within(rule: Rule, offset: u32, network: &Network, is: Is) -> Rule {
    let length = network.address.len() as u32;
    rule.load(Header::Network, offset, length, 0).mask(0, &network.mask).compare(0, is, &network.address)
}

/// Since packets may go from the loopback to the bridge, what comes from there must not ask for the loopback.
fn guard(shape: &Shape<'_>) -> Chain {
    let from_bridge = of_protocol(IPV4).interface(Meta::InputName, Is::Equal, shape.bridge);
    let rule = within(from_bridge, layout(IPV4).1, &loopback(), Is::Equal).drop();
    let base = Base { kind: "filter", hook: Hook::Prerouting, priority: -300 };
    Chain { name: "guard", base, rules: vec![rule] }
}

/// What gets another sender: what leaves the host, and what comes back to the bridge through a port of the host, for the
/// answers to pass here too.
fn leaving(shape: &Shape<'_>) -> Chain {
    let mut rules = Vec::new();
    for network in networks(shape) {
        let (source, destination, _) = layout(network.protocol);
        let from = || within(of_protocol(network.protocol), source, &network, Is::Equal);
        rules.push(within(from(), destination, &network, Is::Equal).redirected(true).masquerade());
        rules.push(
            within(from(), destination, &network, Is::Unequal)
                .interface(Meta::OutputName, Is::Unequal, shape.bridge)
                .masquerade(),
        );
    }
    let own = within(of_protocol(IPV4), layout(IPV4).0, &loopback(), Is::Equal);
    rules.push(own.interface(Meta::OutputName, Is::Equal, shape.bridge).masquerade());
    Chain { name: "postrouting", base: Base { kind: "nat", hook: Hook::Postrouting, priority: 100 }, rules }
}

/// Who is apart from others, and who may still reach whom.
struct Isolated {
    /// Places in what is attached.
    all: BTreeSet<usize>,
    pairs: Vec<(usize, usize)>,
}

impl Isolated {
    fn of(attached: &[Attached<'_>]) -> Isolated {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, alloc) in attached.iter().enumerate() {
            if let Some(name) = alloc.isolated {
                by_name.entry(name).or_default().push(at);
            }
        }
        let pairs = |group: &Vec<usize>| {
            let group = group.clone();
            group.clone().into_iter().flat_map(move |a| group.clone().into_iter().map(move |b| (a, b)))
        };
        let pairs = by_name.values().flat_map(pairs).filter(|(a, b)| a != b).collect();
        Isolated { all: by_name.into_values().flatten().collect(), pairs }
    }

    fn sets(
        &self,
        parts: Part,
        names: [&'static str; 2],
        key: impl Fn(usize) -> Option<Vec<u8>>,
    ) -> Vec<Set> {
        let one = |at: &usize| Some((key(*at)?, Vec::new()));
        let two = |(a, b): &(usize, usize)| Some(([key(*a)?, key(*b)?].concat(), Vec::new()));
        let [pairs, isolated] = names;
        let (of_pairs, of_all) = (self.pairs.iter().filter_map(two), self.all.iter().filter_map(one));
        let set = |name, key, elements| Set { name, key, data: Vec::new(), elements };
        vec![set(pairs, vec![parts, parts], of_pairs.collect()), set(isolated, vec![parts], of_all.collect())]
    }

    fn address_sets(&self, attached: &[Attached<'_>]) -> Vec<Set> {
        let v4 = |at: usize| Some(attached[at].address.octets().to_vec());
        let v6 = |at: usize| attached[at].address_v6.map(|address| address.octets().to_vec());
        let mut sets = self.sets(Part::Ip4, ["pairs4", "isolated4"], v4);
        sets.extend(self.sets(Part::Ip6, ["pairs6", "isolated6"], v6));
        sets
    }

    /// From one allocation to another by way of the host. A port of the host is open to all.
    fn routed(&self, shape: &Shape<'_>) -> Chain {
        let inside = |protocol| {
            of_protocol(protocol)
                .interface(Meta::InputName, Is::Equal, shape.bridge)
                .interface(Meta::OutputName, Is::Equal, shape.bridge)
                .redirected(false)
        };
        let mut rules = Vec::new();
        for (protocol, pairs, isolated) in [(IPV4, "pairs4", "isolated4"), (IPV6, "pairs6", "isolated6")] {
            let (source, destination, length) = layout(protocol);
            let both = inside(protocol).load(Header::Network, source, length, 0);
            rules.push(both.load(Header::Network, destination, length, length / 4).in_set(pairs).accept());
            for end in [source, destination] {
                rules.push(inside(protocol).load(Header::Network, end, length, 0).in_set(isolated).drop());
            }
        }
        Chain { name: "routed", base: Base { kind: "filter", hook: Hook::Forward, priority: 0 }, rules }
    }

    /// From one allocation to another across the bridge.
    ///
    /// Where the kernel has packets pass as they pass bridges (`bridge-nf-call-iptables`, which Docker's engine and
    /// others switch on), it redirects them there too: a frame to a port of the host arrives at `bridged` as if it had been
    /// sent to the allocation. So addresses are looked at before that, in `addressed`, and `bridged` decides about
    /// everything else.
    fn frames(&self, name: &str, shape: &Shape<'_>, attached: &[Attached<'_>]) -> Vec<Table> {
        let key = |at: usize| Some(interface(attached[at].interface).to_vec());
        let mut sets = self.sets(Part::Interface, ["pairs", "isolated"], key);
        let ports = attached.iter().map(|alloc| (interface(alloc.interface).to_vec(), Vec::new())).collect();
        sets.push(Set { name: "ports", key: vec![Part::Interface], data: Vec::new(), elements: ports });
        sets.extend(self.addressed_sets(attached));
        let base = |hook, priority| Base { kind: "filter", hook, priority };
        let chains = vec![
            Chain { name: "addressed", base: base(Hook::Prerouting, -300), rules: addressed(shape) },
            Chain { name: "bridged", base: base(Hook::Forward, 0), rules: bridged(shape) },
        ];
        vec![Table { name: name.to_string(), layer: Layer::Bridge, sets, chains }]
    }

    /// Addresses that are isolated, and who may reach them.
    fn addressed_sets(&self, attached: &[Attached<'_>]) -> Vec<Set> {
        let v4 = |at: usize| Some(attached[at].address.octets().to_vec());
        let v6 = |at: usize| attached[at].address_v6.map(|address| address.octets().to_vec());
        let set = |name, key, elements| Set { name, key, data: Vec::new(), elements };
        let one = |key: Vec<u8>| (key, Vec::new());
        let from = |at: usize| interface(attached[at].interface).to_vec();
        let pairs = |of: &dyn Fn(usize) -> Option<Vec<u8>>| {
            let pairs = self.pairs.iter().filter_map(|(a, b)| Some(one([from(*a), of(*b)?].concat())));
            pairs.collect::<Vec<_>>()
        };
        let all = |of: &dyn Fn(usize) -> Option<Vec<u8>>| {
            self.all.iter().filter_map(|at| of(*at)).map(one).collect::<Vec<_>>()
        };
        vec![
            set("pairs4", vec![Part::Interface, Part::Ip4], pairs(&v4)),
            set("isolated4", vec![Part::Ip4], all(&v4)),
            set("pairs6", vec![Part::Interface, Part::Ip6], pairs(&v6)),
            set("isolated6", vec![Part::Ip6], all(&v6)),
        ]
    }
}

fn frame_of(protocol: u8) -> Rule {
    let number: u16 = if protocol == IPV4 { 0x0800 } else { 0x86dd };
    Rule::new().load_meta(Meta::Frame, 0).compare(0, Is::Equal, &number.to_be_bytes())
}

/// Frames as allocations have sent them.
fn addressed(shape: &Shape<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for network in networks(shape) {
        let (pairs, isolated, gateway) = match network.protocol {
            IPV4 => ("pairs4", "isolated4", octets(shape.subnet.gateway().into())),
            _ => {
                let gateway = shape.subnet_v6.map(|subnet| octets(subnet.gateway().into()));
                ("pairs6", "isolated6", gateway.unwrap_or_default())
            }
        };
        let (_, destination, length) = layout(network.protocol);
        let from = |set| frame_of(network.protocol).load_meta(Meta::InputName, 0).in_set(set);
        let pair = from("ports").load_meta(Meta::InputName, 0).load(Header::Network, destination, length, 4);
        rules.push(pair.in_set(pairs).accept());
        rules.push(
            within(from("isolated"), destination, &network, Is::Equal)
                .load(Header::Network, destination, length, 0)
                .compare(0, Is::Unequal, &gateway)
                .drop(),
        );
        rules.push(from("ports").load(Header::Network, destination, length, 0).in_set(isolated).drop());
    }
    rules
}

/// What else goes from port to port: other protocols, and addresses that the kernel gives interfaces by itself.
fn bridged(shape: &Shape<'_>) -> Vec<Rule> {
    let both = Rule::new().load_meta(Meta::InputName, 0).load_meta(Meta::OutputName, 4);
    let mut rules = vec![both.in_set("pairs").accept()];
    for network in networks(shape) {
        let destination = layout(network.protocol).1;
        rules.push(within(frame_of(network.protocol), destination, &network, Is::Equal).accept());
    }
    let end = |meta| Rule::new().load_meta(meta, 0).in_set("isolated").drop();
    rules.extend([end(Meta::InputName), end(Meta::OutputName)]);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape<'_> = Shape {
        bridge: "nomad",
        subnet: Subnet { base: Ipv4Addr::new(172, 26, 64, 0), prefix: 20 },
        subnet_v6: None,
    };

    fn attached<'a>(interface: &'a str, last: u8, forwards: &'static [Forward]) -> Attached<'a> {
        let address = Ipv4Addr::new(172, 26, 64, last);
        Attached { interface, address, address_v6: None, forwards, isolated: None }
    }

    fn set<'t>(tables: &'t [Table], name: &str) -> &'t Set {
        tables.iter().flat_map(|table| &table.sets).find(|set| set.name == name).unwrap()
    }

    #[test]
    fn each_port_leads_where_it_belongs() {
        const HOST: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        const LISTED: &[Forward] = &[Forward { host: HOST, host_port: 8080, port: 80 }];
        const OPEN: &[Forward] = &[Forward { host: None, host_port: 9090, port: 9090 }];
        let tables = tables("sojourn", &SHAPE, &[attached("a", 2, LISTED), attached("b", 3, OPEN)]);
        let listed = &set(&tables, "ports4").elements;
        assert_eq!(listed[0].0, [10, 0, 0, 1, 6, 0, 0, 0, 31, 144, 0, 0]);
        assert_eq!(listed[0].1, [172, 26, 64, 2, 0, 80, 0, 0]);
        assert_eq!(listed.len(), 2, "tcp and udp");
        assert_eq!(set(&tables, "open4").elements.len(), 2);
        assert_eq!(set(&tables, "local4").elements.len(), 4, "the host reaches all of them");
        assert_eq!(tables.len(), 1, "nobody is isolated");
    }

    #[test]
    fn isolated_allocations_reach_those_of_their_job() {
        let all = ["a", "b", "c", "d"].map(|name| attached(name, name.as_bytes()[0], &[]));
        let [a, b, c, d] = all;
        let of = |alloc: Attached<'static>, job| Attached { isolated: job, ..alloc };
        let all = [of(a, Some("web")), of(b, Some("web")), of(c, Some("db")), of(d, None)];
        let tables = tables("sojourn", &SHAPE, &all);
        let [pairs, isolated] = ["pairs", "isolated"].map(|name| set(&tables[1..], name).elements.len());
        assert_eq!((pairs, isolated), (2, 3));
        assert_eq!(set(&tables, "pairs4").elements[0].0, [172, 26, 64, b'a', 172, 26, 64, b'b']);
    }
}

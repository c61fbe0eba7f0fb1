//! Host ports on the addresses of one node: which are free on which address, and which ones an allocation gets.
//!
//! A port may be in use on one address of a node and free on another. Where a node has one address only, the set of
//! ports that the state keeps for it is enough, and nothing is copied.

use base::Rng;
use model::document::{NetworkResource, Node, Port, TaskGroup};
use model::{Given, Template};
use state::alloc::first_address;
use state::node::{NodeCold, PortSet};

use crate::feasibility::constraint::Target;

/// The default range of dynamic ports, both ends included.
const DYNAMIC: (u16, u16) = (20_000, 32_000);

/// The ports of one allocation, in the order of its template: by label.
#[derive(Clone, Debug, Default)]
pub struct PortRequest {
    ports: Vec<WantedPort>,
}

#[derive(Clone, Debug)]
struct WantedPort {
    label: String,
    /// The name of its host network.
    alias: Target,
    /// `None`: a dynamic port.
    number: Option<i64>,
    /// Other allocations may use it too (`ignore_collision`).
    may_collide: bool,
}

/// A number and an address for each port. `addresses` is empty if all are the node's first address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAssignment {
    pub numbers: Vec<u16>,
    pub addresses: Vec<String>,
}

impl PortRequest {
    /// Of the group's first network.
    pub fn of(group: &TaskGroup) -> PortRequest {
        group.networks.first().map(PortRequest::of_network).unwrap_or_default()
    }

    fn of_network(network: &NetworkResource) -> PortRequest {
        let wanted = |port: &Port, number| WantedPort {
            label: port.label.clone(),
            alias: Target::parse(&port.host_network),
            number,
            may_collide: port.ignore_collision,
        };
        let fixed = network.reserved_ports.iter().map(|port| wanted(port, Some(port.value)));
        let mut ports: Vec<WantedPort> =
            fixed.chain(network.dynamic_ports.iter().map(|port| wanted(port, None))).collect();
        // An update in place keeps numbers: reordering ports in the job must not exchange them.
        ports.sort_by(|one, other| one.label.cmp(&other.label));
        PortRequest { ports }
    }

    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// The numbers of the static ports that nobody else may use.
    pub fn fixed(&self) -> impl Iterator<Item = u16> {
        self.ports.iter().filter(|port| !port.may_collide).filter_map(|port| u16::try_from(port.number?).ok())
    }

    /// A number and an address for each port, on the first address of its host network where it is free. A static port
    /// keeps to the address family of the first: the other family is not a second host, and a program that listens on
    /// every address would find its port taken.
    ///
    /// A dynamic port is the first free one from a random start upwards, wrapping around at the end of the range. So a
    /// port that was just released is not the first to be used again.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn assign_ports(
        &self,
        node: &NodeCold,
        on: &Addresses<'_>,
        rng: &mut Rng,
    ) -> Result<PortAssignment, String> {
        let mut given = vec![(0, 0); self.ports.len()];
        for (slot, port) in self.slots(|port| port.number.is_some()) {
            given[slot] = port.fixed_on(node, on)?;
        }
        let mut used: Vec<u16> =
            self.slots(|port| port.number.is_some()).map(|(slot, _)| given[slot].1).collect();
        for (slot, port) in self.slots(|port| port.number.is_none()) {
            given[slot] = port.dynamic_on(node, on, &used, rng)?;
            used.push(given[slot].1);
        }
        let addresses: Vec<String> = given.iter().map(|(at, _)| on.list[*at].ip.to_string()).collect();
        let first = first_address(&node.document);
        let elsewhere = addresses.iter().any(|address| address != first);
        Ok(PortAssignment {
            numbers: given.into_iter().map(|(_, number)| number).collect(),
            addresses: if elsewhere { addresses } else { Vec::new() },
        })
    }

    fn slots(&self, which: impl Fn(&WantedPort) -> bool) -> impl Iterator<Item = (usize, &WantedPort)> {
        self.ports.iter().enumerate().filter(move |(_, port)| which(port))
    }
}

impl WantedPort {
    fn alias(&self, node: &NodeCold) -> String {
        match self.alias.resolve(node).as_deref() {
            None | Some("") => "default".to_string(),
            Some(alias) => alias.to_string(),
        }
    }

    fn fixed_on(&self, node: &NodeCold, on: &Addresses<'_>) -> Result<(usize, u16), String> {
        let WantedPort { label, number, .. } = self;
        let number = number.unwrap_or_default();
        let Ok(port) = u16::try_from(number) else {
            return Err(format!("network: invalid port {number} (out of range)"));
        };
        let alias = self.alias(node);
        let mut places = on.places(&alias).peekable();
        let Some(first) = places.peek().copied() else {
            return Err(format!("network: no addresses available for {alias} network"));
        };
        let mut places = places.filter(|at| on.is_v6(*at) == on.is_v6(first));
        let free = places.find(|at| self.may_collide || !on.is_taken(*at, port));
        free.map(|at| (at, port)).ok_or_else(|| format!("network: reserved port collision {label}={number}"))
    }

    fn dynamic_on(
        &self,
        node: &NodeCold,
        on: &Addresses<'_>,
        used: &[u16],
        rng: &mut Rng,
    ) -> Result<(usize, u16), String> {
        let alias = self.alias(node);
        let mut places = on.places(&alias).peekable();
        if places.peek().is_none() {
            return Err(format!("network: no addresses available for {alias} network"));
        }
        let (least, most) = on.dynamic;
        let start = least + rng.below(u64::from(most - least) + 1) as u16;
        let free = places.find_map(|at| {
            let mut from_start = (start..=most).chain(least..start);
            from_start.find(|port| !on.is_taken(at, *port) && !used.contains(port)).map(|port| (at, port))
        });
        free.ok_or_else(|| "network: dynamic port selection failed".to_string())
    }
}

/// A port in use by an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldPort<'a> {
    /// `None`: the node's first address.
    pub address: Option<&'a str>,
    pub number: u16,
    /// Other allocations may use it too.
    pub may_collide: bool,
}

/// [`HeldPort`] that owns its data.
#[derive(Clone, Debug)]
pub struct OwnedPort {
    address: Option<String>,
    number: u16,
    may_collide: bool,
}

impl OwnedPort {
    pub fn as_ref(&self) -> HeldPort<'_> {
        HeldPort { address: self.address.as_deref(), number: self.number, may_collide: self.may_collide }
    }
}

impl From<HeldPort<'_>> for OwnedPort {
    fn from(held: HeldPort<'_>) -> OwnedPort {
        let HeldPort { address, number, may_collide } = held;
        OwnedPort { address: address.map(str::to_string), number, may_collide }
    }
}

/// The ports of an allocation, placed or planned.
pub fn held<'a>(
    template: &'a Template,
    numbers: &'a [u16],
    given: &'a Given,
) -> impl Iterator<Item = HeldPort<'a>> {
    let networks = template.resources.shared.networks.iter();
    let fixed = networks.flat_map(|network| &network.reserved_ports);
    let shared: Vec<&str> =
        fixed.filter(|port| port.ignore_collision).map(|port| port.label.as_str()).collect();
    numbers.iter().enumerate().map(move |(slot, number)| HeldPort {
        address: given.addresses.get(slot).map(String::as_str),
        number: *number,
        may_collide: template.ports.get(slot).is_some_and(|port| shared.contains(&port.label.as_str())),
    })
}

/// One node's addresses, and the ports in use on each.
#[derive(Clone, Debug)]
pub struct Addresses<'a> {
    list: Vec<Address<'a>>,
    /// Reserved on every address.
    reserved: Vec<(u16, u16)>,
    taken: Taken<'a>,
    dynamic: (u16, u16),
}

#[derive(Clone, Debug)]
struct Address<'a> {
    alias: &'a str,
    ip: &'a str,
    reserved: Vec<(u16, u16)>,
}

#[derive(Clone, Debug)]
enum Taken<'a> {
    /// The node has one address.
    Here(&'a PortSet),
    /// By the index of the address.
    On(Vec<PortSet>),
}

impl<'a> Addresses<'a> {
    /// `taken` is what is in use on any address of the node. `held` returns the address of each port; it is called only
    /// if that matters.
    ///
    /// # Errors
    /// The exhausted dimension: the node's reserved ports are invalid, or two allocations on it have the same port.
    pub fn of<'h, I: Iterator<Item = HeldPort<'h>>>(
        node: &'a Node,
        taken: &'a PortSet,
        held: impl FnOnce() -> I,
    ) -> Result<Addresses<'a>, String> {
        let invalid = || "network: invalid node".to_string();
        let own = node.reserved_resources.iter().map(|own| own.networks.reserved_host_ports.as_str());
        let reserved = ranges(own.into_iter().next().unwrap_or_default()).ok_or_else(invalid)?;
        let list = list(node).ok_or_else(invalid)?;
        let is_simple = list.len() == 1 && !taken.has_doubles();
        let mut addresses = Addresses { list, reserved, taken: Taken::Here(taken), dynamic: range(node) };
        if !is_simple {
            addresses.taken = Taken::On(addresses.ports_by_address(first_address(node), held())?);
        }
        Ok(addresses)
    }

    fn is_v6(&self, at: usize) -> bool {
        self.list[at].ip.contains(':')
    }

    fn ports_by_address<'h>(
        &self,
        first: &str,
        held: impl Iterator<Item = HeldPort<'h>>,
    ) -> Result<Vec<PortSet>, String> {
        let mut sets = vec![PortSet::default(); self.list.len()];
        for held in held {
            let ip = held.address.unwrap_or(first);
            for (set, _) in sets.iter_mut().zip(&self.list).filter(|(_, address)| address.ip == ip) {
                if !held.may_collide && set.contains(held.number) {
                    return Err("network: port collision".to_string());
                }
                set.take(held.number);
            }
        }
        Ok(sets)
    }

    /// The indexes of the addresses of a host network.
    fn places(&self, alias: &str) -> impl Iterator<Item = usize> {
        self.list.iter().enumerate().filter(move |(_, address)| address.alias == alias).map(|(at, _)| at)
    }

    fn is_taken(&self, at: usize, port: u16) -> bool {
        let within = |(first, last): &(u16, u16)| (*first..=*last).contains(&port);
        let taken = match &self.taken {
            Taken::Here(set) => set.contains(port),
            Taken::On(sets) => sets[at].contains(port),
        };
        taken || self.reserved.iter().any(within) || self.list[at].reserved.iter().any(within)
    }
}

/// The addresses that ports can be on. A node without an address with the alias `default` gets those of its networks as
/// such; one without any address gets one empty address. `None` if the reserved ports are invalid.
fn list(node: &Node) -> Option<Vec<Address<'_>>> {
    let networks = node.node_resources.iter().flat_map(|resources| &resources.node_networks);
    let told = networks.flat_map(|network| &network.addresses).map(|address| {
        let alias = if address.alias.is_empty() { "default" } else { &address.alias };
        Some(Address { alias, ip: &address.address, reserved: ranges(&address.reserved_ports)? })
    });
    let mut list = told.collect::<Option<Vec<_>>>()?;
    if !list.iter().any(|address| address.alias == "default") {
        let of_networks = node.node_resources.iter().flat_map(|resources| &resources.networks);
        let ips = of_networks.map(|network| network.ip.as_str()).filter(|ip| !ip.is_empty());
        let plain = |ip| Address { alias: "default", ip, reserved: Vec::new() };
        list.splice(0..0, ips.map(plain));
    }
    if list.is_empty() {
        list.push(Address { alias: "default", ip: "", reserved: Vec::new() });
    }
    Some(list)
}

fn range(node: &Node) -> (u16, u16) {
    let told = node.node_resources.as_ref();
    let (least, most) =
        told.map_or((0, 0), |resources| (resources.min_dynamic_port, resources.max_dynamic_port));
    let end = |port: i64, default: u16| match u16::try_from(port) {
        Ok(0) | Err(_) => default,
        Ok(port) => port,
    };
    let range = (end(least, DYNAMIC.0), end(most, DYNAMIC.1));
    if range.0 <= range.1 { range } else { DYNAMIC }
}

/// Parses a list such as `22,80,8500-8600`. `None` if it is invalid.
fn ranges(text: &str) -> Option<Vec<(u16, u16)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bound = |text: &str| text.trim().parse::<u16>().ok();
        Some((bound(first)?, bound(last)?)).filter(|(first, last)| first <= last)
    };
    parts.map(range).collect()
}

#[cfg(test)]
mod tests;

//! Host ports on one node: which are free, and which an allocation is given.

use base::Rng;
use model::document::Node;
use state::node::PortSet;

/// Where dynamic ports come from on a node that does not say, both ends included.
const DYNAMIC: (u16, u16) = (20_000, 32_000);

/// Ports of one allocation, by their places in its template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortAsk {
    pub fixed: Vec<Static>,
    pub dynamic: Vec<usize>,
    /// Ports in all.
    pub len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Static {
    pub slot: usize,
    pub label: String,
    pub number: i64,
    /// Somebody else may have it as well.
    pub may_collide: bool,
}

impl PortAsk {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the node has what is asked.
    ///
    /// # Errors
    /// The exhausted dimension.
    pub fn check(&self, node: &NodePorts) -> Result<(), String> {
        for port in &self.fixed {
            let Static { label, number, .. } = port;
            let Ok(number) = u16::try_from(*number) else {
                return Err(format!("network: invalid port {number} (out of range)"));
            };
            if !port.may_collide && node.is_taken(number) {
                return Err(format!("network: reserved port collision {label}={number}"));
            }
        }
        let (least, most) = node.dynamic;
        let free = (least..=most).filter(|port| self.is_free(node, *port)).take(self.dynamic.len());
        if free.count() < self.dynamic.len() {
            return Err("network: dynamic port selection failed".to_string());
        }
        Ok(())
    }

    /// The numbers, in the order of the template. The node passed [`PortAsk::check`].
    ///
    /// Dynamic ports begin at a place drawn from the seed, so that a port that was just given back is not
    /// the first to be given out again, and go on upwards from there to the first free one, around the end.
    pub fn assign(&self, node: &NodePorts, rng: &mut Rng) -> Vec<u16> {
        let mut numbers = vec![0; self.len];
        for port in &self.fixed {
            numbers[port.slot] = u16::try_from(port.number).expect("the check refused other numbers");
        }
        let (least, most) = node.dynamic;
        for slot in &self.dynamic {
            let start = least + rng.below(u64::from(most - least) + 1) as u16;
            let mut from_start = (start..=most).chain(least..start);
            let free = from_start.find(|port| self.is_free(node, *port) && !numbers.contains(port));
            numbers[*slot] = free.expect("the check counted enough free ports");
        }
        numbers
    }

    fn is_free(&self, node: &NodePorts, port: u16) -> bool {
        !node.is_taken(port) && self.fixed.iter().all(|fixed| fixed.number != i64::from(port))
    }
}

/// One node's ports. Addresses are not told apart: a port that is taken on one is taken on all.
#[derive(Clone, Debug)]
pub struct NodePorts<'a> {
    taken: &'a PortSet,
    reserved: Vec<&'a str>,
    dynamic: (u16, u16),
}

impl<'a> NodePorts<'a> {
    pub fn new(node: &'a Node, taken: &'a PortSet) -> NodePorts<'a> {
        let own = node.reserved_resources.iter().map(|own| own.networks.reserved_host_ports.as_str());
        let networks = node.node_resources.iter().flat_map(|resources| &resources.node_networks);
        let addresses = networks.flat_map(|network| &network.addresses);
        let of_addresses = addresses.map(|address| address.reserved_ports.as_str());
        let reserved = own.chain(of_addresses).filter(|spec| !spec.is_empty()).collect();
        NodePorts { taken, reserved, dynamic: dynamic_range(node) }
    }

    fn is_taken(&self, port: u16) -> bool {
        self.taken.contains(port) || self.is_reserved(port)
    }

    pub fn is_reserved(&self, port: u16) -> bool {
        self.reserved.iter().any(|spec| names(spec, port))
    }
}

fn dynamic_range(node: &Node) -> (u16, u16) {
    let (least, most) = node
        .node_resources
        .as_ref()
        .map_or((0, 0), |resources| (resources.min_dynamic_port, resources.max_dynamic_port));
    let end = |port: i64, default: u16| match u16::try_from(port) {
        Ok(0) | Err(_) => default,
        Ok(port) => port,
    };
    let range = (end(least, DYNAMIC.0), end(most, DYNAMIC.1));
    if range.0 <= range.1 { range } else { DYNAMIC }
}

/// Whether a list such as `22,80,8500-8600` names the port. What is not a number names none.
fn names(spec: &str, port: u16) -> bool {
    spec.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bound = |text: &str| text.trim().parse::<u16>().ok();
        matches!((bound(first), bound(last)), (Some(first), Some(last)) if (first..=last).contains(&port))
    })
}

#[cfg(test)]
mod tests {
    use model::document::{NodeReservedResources, NodeResources};

    use super::*;

    fn node(least: i64, most: i64, reserved: &str) -> Node {
        let mut own = NodeReservedResources::default();
        own.networks.reserved_host_ports = reserved.to_string();
        let resources =
            NodeResources { min_dynamic_port: least, max_dynamic_port: most, ..NodeResources::default() };
        Node { node_resources: Some(resources), reserved_resources: Some(own), ..Node::default() }
    }

    fn ask(fixed: &[i64], dynamic: usize) -> PortAsk {
        let of = |(slot, number): (usize, &i64)| Static {
            slot,
            label: "p".into(),
            number: *number,
            may_collide: false,
        };
        PortAsk {
            fixed: fixed.iter().enumerate().map(of).collect(),
            dynamic: (fixed.len()..fixed.len() + dynamic).collect(),
            len: fixed.len() + dynamic,
        }
    }

    fn taken(ports: &[u16]) -> PortSet {
        let mut set = PortSet::default();
        ports.iter().for_each(|port| set.take(*port));
        set
    }

    /// J13, J14, J18.
    #[test]
    fn a_static_port_must_be_neither_taken_nor_reserved() {
        let (node, taken) = (node(0, 0, "22, 8500-8600,x"), taken(&[80]));
        let ports = NodePorts::new(&node, &taken);
        assert_eq!(ask(&[80], 0).check(&ports), Err("network: reserved port collision p=80".to_string()));
        assert_eq!(ask(&[8550], 0).check(&ports), Err("network: reserved port collision p=8550".to_string()));
        assert_eq!(
            ask(&[70_000], 0).check(&ports),
            Err("network: invalid port 70000 (out of range)".to_string())
        );
        assert_eq!(ask(&[8601], 0).check(&ports), Ok(()));
        let mut shared = ask(&[80], 0);
        shared.fixed[0].may_collide = true;
        assert_eq!(shared.check(&ports), Ok(()));
    }

    /// J15, J17.
    #[test]
    fn dynamic_ports_are_free_and_differ() {
        let node = node(20_000, 20_003, "");
        let none = taken(&[]);
        for seed in 0..50 {
            let ports = NodePorts::new(&node, &none);
            let numbers = ask(&[20_001], 3).assign(&ports, &mut Rng::new(seed));
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            assert_eq!((numbers[0], sorted), (20_001, vec![20_000, 20_001, 20_002, 20_003]));
        }
        let (full, failed) = (taken(&[20_000, 20_002]), "network: dynamic port selection failed");
        assert_eq!(ask(&[20_001], 2).check(&NodePorts::new(&node, &full)), Err(failed.to_string()));
    }

    #[test]
    fn a_node_that_does_not_say_gives_ports_from_the_default_range() {
        let (node, none) = (Node::default(), taken(&[]));
        let ports = NodePorts::new(&node, &none);
        let number = ask(&[], 1).assign(&ports, &mut Rng::new(1))[0];
        assert!((20_000..=32_000).contains(&number));
    }
}

use base::{Index, Time, Uuid};
use model::NodeId;
use model::document::{
    NodeNetworkAddress, NodeNetworkResource, NodeReservedResources, NodeResources, PortMapping,
};

use super::*;

/// A node with a default address and a private one, and dynamic ports from 20,000 to 20,003.
fn cold(addresses: &[(&str, &str, &str)], reserved: &str) -> NodeCold {
    let address = |(alias, ip, reserved): &(&str, &str, &str)| NodeNetworkAddress {
        alias: alias.to_string(),
        address: ip.to_string(),
        reserved_ports: reserved.to_string(),
        ..NodeNetworkAddress::default()
    };
    let network = NodeNetworkResource {
        addresses: addresses.iter().map(address).collect(),
        ..NodeNetworkResource::default()
    };
    let ip = addresses.first().map(|(_, ip, _)| ip.to_string()).unwrap_or_default();
    let resources = NodeResources {
        networks: vec![NetworkResource { ip, ..NetworkResource::default() }].into(),
        node_networks: vec![network].into(),
        min_dynamic_port: 20_000,
        max_dynamic_port: 20_003,
        ..NodeResources::default()
    };
    let mut own = NodeReservedResources::default();
    own.networks.reserved_host_ports = reserved.to_string();
    let document = Node { node_resources: Some(resources), reserved_resources: Some(own), ..Node::default() };
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

const BOTH: [(&str, &str, &str); 2] = [("default", "10.0.0.1", ""), ("private", "192.168.0.1", "")];

fn port(label: &str, value: i64, host_network: &str) -> Port {
    Port { label: label.into(), value, host_network: host_network.into(), ..Port::default() }
}

fn ask(fixed: Vec<Port>, dynamic: Vec<Port>) -> PortRequest {
    let network = NetworkResource {
        reserved_ports: fixed.into(),
        dynamic_ports: dynamic.into(),
        ..NetworkResource::default()
    };
    PortRequest::of(&TaskGroup { networks: vec![network].into(), ..TaskGroup::default() })
}

fn on(address: &str, number: u16) -> HeldPort<'_> {
    HeldPort { address: Some(address), number, may_collide: false }
}

fn offer(node: &NodeCold, ask: &PortRequest, held: &[HeldPort<'_>]) -> Result<PortAssignment, String> {
    let taken = PortSet::of(held.iter().map(|held| held.number).collect());
    let addresses = Addresses::of(&node.document, &taken, || held.iter().copied())?;
    ask.assign_ports(node, &addresses, &mut Rng::new(7))
}

fn given(numbers: &[u16], addresses: &[&str]) -> PortAssignment {
    let addresses = addresses.iter().map(ToString::to_string).collect();
    PortAssignment { numbers: numbers.to_vec(), addresses }
}

/// J19.
#[test]
fn a_port_is_on_an_address_of_its_host_network() {
    let node = cold(&BOTH, "");
    let web = ask(vec![port("web", 80, "private")], vec![]);
    assert_eq!(offer(&node, &web, &[]), Ok(given(&[80], &["192.168.0.1"])));
    let both = ask(vec![port("admin", 81, ""), port("web", 80, "private")], vec![]);
    assert_eq!(offer(&node, &both, &[]), Ok(given(&[81, 80], &["10.0.0.1", "192.168.0.1"])));
    let plain = ask(vec![port("web", 80, "default")], vec![]);
    assert_eq!(offer(&node, &plain, &[]), Ok(given(&[80], &[])), "the first address goes without saying");
    let public = ask(vec![], vec![port("web", 0, "public")]);
    assert_eq!(offer(&node, &public, &[]), Err("network: no addresses available for public network".into()));
}

/// J13, J14, J18.
#[test]
fn a_port_is_taken_where_it_is_taken() {
    let node = cold(&BOTH, "22");
    let web = |network: &str| ask(vec![port("web", 80, network)], vec![]);
    let held = [on("192.168.0.1", 80)];
    assert_eq!(offer(&node, &web("default"), &held), Ok(given(&[80], &[])));
    let collision = "network: reserved port collision web=80";
    assert_eq!(offer(&node, &web("private"), &held), Err(collision.to_string()));
    let shared = Port { ignore_collision: true, ..port("web", 80, "private") };
    assert_eq!(offer(&node, &ask(vec![shared], vec![]), &held), Ok(given(&[80], &["192.168.0.1"])));
    let reserved = ask(vec![port("ssh", 22, "private")], vec![]);
    assert_eq!(offer(&node, &reserved, &[]), Err("network: reserved port collision ssh=22".to_string()));
    let two = cold(&[("default", "10.0.0.1", ""), ("default", "10.0.0.2", "")], "");
    assert_eq!(offer(&two, &web(""), &[on("10.0.0.1", 80)]), Ok(given(&[80], &["10.0.0.2"])));
    let own = cold(&[("default", "10.0.0.1", "80-90"), ("default", "10.0.0.2", "")], "");
    assert_eq!(offer(&own, &web(""), &[]), Ok(given(&[80], &["10.0.0.2"])));
}

/// J15, J17.
#[test]
fn dynamic_ports_are_free_and_differ() {
    let node = cold(&BOTH, "");
    let three = |network: &str| vec![port("a", 0, network), port("b", 0, network), port("c", 0, network)];
    let numbers = offer(&node, &ask(vec![port("x", 20_001, "")], three("")), &[]).unwrap().numbers;
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!((numbers[3], sorted), (20_001, vec![20_000, 20_001, 20_002, 20_003]));
    let held = [on("10.0.0.1", 20_000), on("10.0.0.1", 20_002)];
    let failed = Err("network: dynamic port selection failed".to_string());
    assert_eq!(offer(&node, &ask(vec![], three("")), &held), failed);
    assert!(offer(&node, &ask(vec![], three("private")), &held).is_ok());
}

#[test]
fn another_address_family_is_not_a_second_host() {
    let loopback = cold(&[("default", "127.0.0.1", ""), ("default", "::1", "")], "");
    let web = ask(vec![port("web", 80, "")], vec![]);
    assert_eq!(offer(&loopback, &web, &[]), Ok(given(&[80], &[])));
    let taken = Err("network: reserved port collision web=80".to_string());
    assert_eq!(offer(&loopback, &web, &[on("127.0.0.1", 80)]), taken);
}

/// J25, the part that concerns the node itself.
#[test]
fn a_node_on_which_two_have_one_port_is_full() {
    let node = cold(&BOTH[..1], "");
    let web = ask(vec![port("web", 80, "")], vec![]);
    let twice = [on("10.0.0.1", 90), on("10.0.0.1", 90)];
    assert_eq!(offer(&node, &web, &twice), Err("network: port collision".to_string()));
    let shared = twice.map(|held| HeldPort { may_collide: true, ..held });
    assert!(offer(&node, &web, &shared).is_ok(), "they may share it");
    let apart = cold(&BOTH, "");
    assert!(offer(&apart, &web, &[on("10.0.0.1", 90), on("192.168.0.1", 90)]).is_ok());
}

#[test]
fn what_a_node_reserves_has_to_be_readable() {
    let web = ask(vec![port("web", 80, "")], vec![]);
    let invalid = Err("network: invalid node".to_string());
    assert_eq!(offer(&cold(&BOTH, "22,x"), &web, &[]), invalid);
    assert_eq!(offer(&cold(&[("default", "10.0.0.1", "9-1")], ""), &web, &[]), invalid);
    assert!(offer(&cold(&[], " 22 , 8500-8600,"), &web, &[]).is_ok());
}

#[test]
fn ports_that_make_no_sense_say_so() {
    let node = cold(&BOTH, "");
    let huge = ask(vec![port("web", 70_000, "")], vec![]);
    assert_eq!(offer(&node, &huge, &[]), Err("network: invalid port 70000 (out of range)".to_string()));
}

#[test]
fn an_allocations_ports_are_where_it_was_given_them() {
    let port = |label: &str| PortMapping { label: label.into(), ..PortMapping::default() };
    let shared = Port { label: "b".into(), ignore_collision: true, ..Port::default() };
    let network = NetworkResource { reserved_ports: vec![shared].into(), ..NetworkResource::default() };
    let mut template = Template { ports: vec![port("a"), port("b")].into(), ..Template::default() };
    template.resources.shared.networks = vec![network].into();
    let plain: Vec<HeldPort<'_>> = {
        let nothing = Given::default();
        held(&template, &[1, 2], &nothing).map(|held| HeldPort { address: None, ..held }).collect()
    };
    assert_eq!(plain[0], HeldPort { address: None, number: 1, may_collide: false });
    assert_eq!(plain[1], HeldPort { address: None, number: 2, may_collide: true });
}

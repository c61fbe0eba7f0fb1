use model::document::{
    NodeDevice, NodeDeviceResource, NodeResources, RequestedDevice, Resources, Task, TaskGroup,
};

use super::*;

fn amount(cpu_mhz: u32, memory_mib: u32, disk_mib: u32) -> Amount {
    Amount { cpu_mhz, memory_mib, disk_mib }
}

fn tenant(priority: u32, cpu_mhz: u32, memory_mib: u32) -> NodeAlloc {
    NodeAlloc { priority, amount: amount(cpu_mhz, memory_mib, 0), ..NodeAlloc::default() }
}

/// Who has to go on a node of 4,000 MHz and 4,000 MiB for a job of priority 50.
fn for_amount(cpu_mhz: u32, memory_mib: u32, tenants: &[NodeAlloc]) -> Option<Vec<usize>> {
    for_everything(amount(cpu_mhz, memory_mib, 0), &DeviceRequests::default(), &Node::default(), tenants)
}

fn for_everything(
    amount: Amount,
    devices: &DeviceRequests,
    node: &Node,
    tenants: &[NodeAlloc],
) -> Option<Vec<usize>> {
    let wanted = PreemptionRequest { priority: 50, amount, cores: 0, network: None, devices };
    victims(
        &wanted,
        &NodeRoom { node, capacity: self::amount(4000, 4000, 0), cores: 0, interfaces: &[] },
        tenants,
    )
}

/// I48.
#[test]
fn only_a_job_of_a_much_lower_priority_makes_room() {
    assert_eq!(for_amount(4000, 4000, &[tenant(41, 2000, 2000)]), None);
    assert_eq!(for_amount(4000, 4000, &[tenant(40, 2000, 2000)]), Some(vec![0]));
}

/// I49.
#[test]
fn a_jobs_own_allocations_stay_and_count() {
    let own = NodeAlloc { is_own: true, ..tenant(20, 2000, 2000) };
    assert_eq!(for_amount(4000, 4000, std::slice::from_ref(&own)), None);
    // Without what is its own the first alone would do.
    let tenants = [tenant(20, 1000, 1000), own, tenant(20, 1000, 1000)];
    assert_eq!(for_amount(2000, 2000, &tenants), Some(vec![0, 2]));
    assert_eq!(for_amount(2001, 2000, &tenants), None);
}

/// I50.
#[test]
fn one_that_covers_everything_goes_alone() {
    let tenants = [tenant(60, 2000, 2000), tenant(20, 2000, 2000)];
    assert_eq!(for_amount(2000, 2000, &tenants), Some(vec![1]));
}

/// I51.
#[test]
fn the_lowest_priorities_go_first_and_the_next_if_they_do_not_do() {
    let tenants = [tenant(30, 1500, 1500), tenant(20, 1500, 1500), tenant(45, 1000, 1000)];
    assert_eq!(for_amount(1500, 1500, &tenants), Some(vec![1]));
    assert_eq!(for_amount(3000, 3000, &tenants), Some(vec![0, 1]));
}

/// I52.
#[test]
fn of_equals_the_closer_one_goes() {
    let tenants = [tenant(20, 3000, 3000), tenant(20, 1000, 1000)];
    assert_eq!(for_amount(1000, 1000, &tenants), Some(vec![1]));
    assert_eq!(for_amount(3000, 3000, &tenants), Some(vec![0]));
}

/// I53.
#[test]
fn who_turns_out_not_to_be_needed_stays() {
    let tenants = [tenant(20, 500, 500), tenant(30, 3500, 3500)];
    assert_eq!(for_amount(500, 500, &tenants), Some(vec![0]));
    assert_eq!(for_amount(1000, 1000, &tenants), Some(vec![1]));
}

/// I54.
#[test]
fn nobody_goes_where_all_together_do_not_do() {
    let tenants = [tenant(20, 1000, 1000), tenant(30, 1000, 1000), tenant(48, 2000, 2000)];
    assert_eq!(for_amount(2001, 1, &tenants), None);
    assert_eq!(for_amount(2000, 1, &tenants), Some(vec![0, 1]));
}

#[test]
fn nobody_goes_where_there_is_room() {
    assert_eq!(for_amount(2000, 2000, &[tenant(20, 2000, 2000)]), Some(vec![]));
}

/// I56.
#[test]
fn a_group_that_gave_enough_already_is_spared() {
    let spared = NodeAlloc { max_parallel: 1, preempted: 1, ..tenant(20, 2000, 2000) };
    let farther = tenant(20, 2500, 2000);
    assert_eq!(for_amount(1500, 1500, &[spared.clone(), farther.clone()]), Some(vec![1]));
    let spared = NodeAlloc { preempted: 0, ..spared };
    assert_eq!(for_amount(1500, 1500, &[spared, farther]), Some(vec![0]));
    let penalty =
        |max_parallel, preempted| NodeAlloc { max_parallel, preempted, ..NodeAlloc::default() }.penalty();
    assert_eq!([penalty(0, 9), penalty(2, 1), penalty(2, 2), penalty(2, 4)], [0.0, 0.0, 50.0, 150.0]);
}

#[test]
fn cores_are_freed_like_everything_else() {
    let tenants = [NodeAlloc { cores: 2, ..tenant(20, 2000, 100) }, tenant(20, 1000, 100)];
    let devices = DeviceRequests::default();
    let wanted = PreemptionRequest {
        priority: 50,
        amount: amount(1000, 100, 0),
        cores: 3,
        network: None,
        devices: &devices,
    };
    let node = Node::default();
    let node_room = |cores| NodeRoom { node: &node, capacity: amount(4000, 4000, 0), cores, interfaces: &[] };
    assert_eq!(victims(&wanted, &node_room(4), &tenants), Some(vec![0]));
    assert_eq!(victims(&wanted, &node_room(5), &tenants), Some(vec![]));
    assert_eq!(victims(&wanted, &node_room(2), &tenants), None);
}

fn on(device: &str, mbits: u32, ports: &[u16]) -> NetworkUse {
    NetworkUse { device: device.into(), mbits, ports: ports.to_vec() }
}

fn linked(priority: u32, used: NetworkUse) -> NodeAlloc {
    NodeAlloc { network: Some(used), ..tenant(priority, 0, 0) }
}

/// Who has to go on a node with two links of 1,000 Mbit for a job of priority 50.
fn for_network(mbits: u32, ports: &[u16], tenants: &[NodeAlloc]) -> Option<Vec<usize>> {
    let interfaces = ["eth0", "eth1"].map(|device| NetworkInterface { device: device.into(), mbits: 1000 });
    let (network, devices) = (on("", mbits, ports), DeviceRequests::default());
    let wanted = PreemptionRequest {
        priority: 50,
        amount: amount(0, 0, 0),
        cores: 0,
        network: Some(&network),
        devices: &devices,
    };
    let node = Node::default();
    let node_room =
        NodeRoom { node: &node, capacity: amount(4000, 4000, 0), cores: 0, interfaces: &interfaces };
    victims(&wanted, &node_room, tenants)
}

/// I57.
#[test]
fn bandwidth_is_made_free() {
    let high = linked(60, on("eth1", 800, &[]));
    assert_eq!(for_network(800, &[], &[linked(20, on("eth0", 800, &[])), high.clone()]), Some(vec![0]));
    assert_eq!(for_network(1001, &[], &[linked(20, on("eth0", 800, &[])), high.clone()]), None);
    // The closest alone is enough.
    let tenants = [linked(20, on("eth0", 300, &[])), linked(20, on("eth0", 600, &[])), high];
    assert_eq!(for_network(600, &[], &tenants), Some(vec![1]));
}

/// I58.
#[test]
fn who_holds_a_static_port_goes_if_he_may() {
    let low = |device: &str| linked(20, on(device, 0, &[8080]));
    let high = |device: &str| linked(45, on(device, 0, &[8080]));
    assert_eq!(for_network(0, &[8080], &[low("eth0"), linked(20, on("eth0", 0, &[1]))]), Some(vec![0]));
    assert_eq!(
        for_network(0, &[8080], &[high("eth0"), low("eth1")]),
        Some(vec![1]),
        "the other link will do"
    );
    assert_eq!(for_network(0, &[8080], &[high("eth0"), high("eth1")]), None);
}

/// I59.
#[test]
fn victims_share_one_link() {
    let tenants = [
        linked(45, on("eth0", 500, &[])),
        linked(20, on("eth0", 400, &[])),
        linked(20, on("eth1", 500, &[])),
        linked(30, on("eth1", 500, &[])),
    ];
    assert_eq!(for_network(900, &[], &tenants), Some(vec![2, 3]));
}

fn gpus(name: &str, ids: &[&str]) -> NodeDeviceResource {
    let instance = |id: &&str| NodeDevice { id: id.to_string(), healthy: true, ..NodeDevice::default() };
    NodeDeviceResource {
        vendor: "nvidia".into(),
        kind: "gpu".into(),
        name: name.into(),
        instances: ids.iter().map(instance).collect(),
        ..NodeDeviceResource::default()
    }
}

fn with_gpus(devices: Vec<NodeDeviceResource>) -> Node {
    let resources = NodeResources { devices: devices.into(), ..NodeResources::default() };
    Node { node_resources: Some(resources), ..Node::default() }
}

fn wants(count: u64) -> DeviceRequests {
    let device = RequestedDevice { name: "gpu".into(), count: Some(count), ..RequestedDevice::default() };
    let resources = Resources { devices: vec![device].into(), ..Resources::default() };
    let task = Task { name: "t".into(), resources: Some(resources), ..Task::default() };
    DeviceRequests::of(&TaskGroup { tasks: vec![task].into(), ..TaskGroup::default() })
}

fn holding(priority: u32, device: &NodeDeviceResource, ids: &[&str]) -> NodeAlloc {
    let devices = ids.iter().map(|id| DeviceId::on(device, id)).collect();
    NodeAlloc { devices, ..tenant(priority, 500, 500) }
}

/// I60.
#[test]
fn who_holds_what_is_missing_goes() {
    let gpu = gpus("t4", &["a", "b", "c", "d"]);
    let tenants = [holding(60, &gpu, &["a", "b"]), holding(20, &gpu, &["c"]), tenant(10, 1000, 1000)];
    let node = with_gpus(vec![gpu]);
    let nothing = amount(0, 0, 0);
    assert_eq!(for_everything(nothing, &wants(2), &node, &tenants), Some(vec![1]));
    assert_eq!(for_everything(nothing, &wants(1), &node, &tenants), Some(vec![]));
    assert_eq!(for_everything(nothing, &wants(3), &node, &tenants), None);
}

/// I61.
#[test]
fn the_kind_whose_holders_matter_least_is_freed() {
    let (a100, t4) = (gpus("a100", &["a", "b"]), gpus("t4", &["c", "d", "e", "f"]));
    let tenants = [
        holding(20, &a100, &["a"]),
        holding(30, &a100, &["b"]),
        // Of equal priority, counted once: 35 in all, not 105.
        holding(35, &t4, &["c"]),
        holding(35, &t4, &["e", "f"]),
        holding(35, &t4, &["d"]),
    ];
    let node = with_gpus(vec![a100, t4]);
    let nothing = amount(0, 0, 0);
    assert_eq!(for_everything(nothing, &wants(2), &node, &tenants), Some(vec![3]), "who holds most");
    assert_eq!(for_everything(nothing, &wants(1), &node, &tenants), Some(vec![0]));
}

/// I62.
#[test]
fn who_goes_for_a_device_counts_for_the_rest() {
    let gpu = gpus("t4", &["a"]);
    let tenants = [tenant(10, 1000, 1000), holding(20, &gpu, &["a"]), tenant(10, 2000, 2000)];
    let node = with_gpus(vec![gpu]);
    assert_eq!(for_everything(amount(1000, 1000, 0), &wants(1), &node, &tenants), Some(vec![1]));
    assert_eq!(for_everything(amount(3000, 3000, 0), &wants(1), &node, &tenants), Some(vec![1, 2]));
    assert_eq!(for_everything(amount(4000, 4000, 0), &wants(1), &node, &tenants), Some(vec![0, 1, 2]));
}

/// I65: the number; who records it is tested with whole passes.
#[test]
fn the_score_of_a_preemption_is_nearly_one() {
    assert!((score([20]) - 0.999_94).abs() < 0.000_005, "{}", score([20]));
    assert!(score([20]) > score([20, 20]), "more victims speak against a node");
    for x in [-9.8_f64, -1.0, 0.0, 0.5, 7.0, 38.0] {
        assert!((exp(x) - x.exp()).abs() <= x.exp() * 1e-11, "{x}");
    }
}

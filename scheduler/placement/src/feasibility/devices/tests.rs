use model::document::{Affinity, Attribute, Constraint, NodeDevice, NodeResources, Resources, Task};

use super::*;

fn device(vendor: &str, name: &str, ids: &[&str]) -> NodeDeviceResource {
    let instance = |id: &&str| NodeDevice { id: id.to_string(), healthy: true, ..NodeDevice::default() };
    let attribute = |int, unit: &str| Attribute { int: Some(int), unit: unit.into(), ..Attribute::default() };
    let attributes = [("memory", attribute(4096, "MiB")), ("clock", attribute(1000, "MHz"))];
    NodeDeviceResource {
        vendor: vendor.into(),
        kind: "gpu".into(),
        name: name.into(),
        instances: ids.iter().map(instance).collect(),
        attributes: attributes.into_iter().map(|(key, value)| (key.to_string(), value)).collect(),
    }
}

fn node(devices: Vec<NodeDeviceResource>) -> Node {
    let resources = NodeResources { devices: devices.into(), ..NodeResources::default() };
    Node { node_resources: Some(resources), ..Node::default() }
}

fn request(name: &str, count: u64) -> RequestedDevice {
    RequestedDevice { name: name.into(), count: Some(count), ..RequestedDevice::default() }
}

/// With one constraint.
fn with(request: RequestedDevice, left: &str, operand: &str, right: &str) -> RequestedDevice {
    let constraint = Constraint { l_target: left.into(), operand: operand.into(), r_target: right.into() };
    RequestedDevice { constraints: vec![constraint].into(), ..request }
}

fn liking(mut request: RequestedDevice, left: &str, right: &str, weight: i8) -> RequestedDevice {
    let (l_target, r_target, operand) = (left.into(), right.into(), "=".into());
    request.affinities.push(Affinity { l_target, r_target, operand, weight: Some(weight) });
    request
}

fn ask(devices: Vec<RequestedDevice>) -> DeviceRequests {
    let resources = Resources { devices: devices.into(), ..Resources::default() };
    let task = Task { name: "t".into(), resources: Some(resources), ..Task::default() };
    DeviceRequests::of(&TaskGroup { tasks: vec![task].into(), ..TaskGroup::default() })
}

fn ids(assigned: &DeviceAssignment) -> Vec<&str> {
    let devices = assigned.tasks.iter().flat_map(|(_, devices)| devices);
    devices.flat_map(|device| device.device_ids.iter().map(String::as_str)).collect()
}

fn none() -> BTreeSet<DeviceId> {
    BTreeSet::new()
}

/// H40-H43.
#[test]
fn a_node_has_what_its_healthy_instances_make() {
    let two = node(vec![device("nvidia", "1080ti", &["a", "b"])]);
    for (name, count, expected) in [
        ("gpu", 1, true),
        ("gpu", 3, false),
        ("nvidia/gpu", 2, true),
        ("amd/gpu", 1, false),
        ("nvidia/gpu/1080ti", 1, true),
        ("nvidia/gpu/2080ti", 1, false),
        ("fpga", 1, false),
    ] {
        assert_eq!(ask(vec![request(name, count)]).exists(&two), expected, "{name} {count}");
    }
    let one_each = ask(vec![request("gpu", 1), request("gpu", 1)]);
    assert!(one_each.exists(&two));
    assert!(!one_each.exists(&node(vec![device("nvidia", "1080ti", &["a"])])));
    let both = node(vec![device("nvidia", "1080ti", &["a"]), device("amd", "vega", &["b"])]);
    assert!(ask(vec![request("gpu", 2)]).exists(&both), "what exists may be of several kinds");
    let mut sick = device("nvidia", "1080ti", &["a", "b"]);
    sick.instances.iter_mut().for_each(|instance| instance.healthy = false);
    assert!(!ask(vec![request("gpu", 1)]).exists(&node(vec![sick])));
    assert!(!ask(vec![request("gpu", 1)]).exists(&node(vec![])));
    assert!(ask(vec![]).exists(&node(vec![])));
}

/// H44-H47, H49.
#[test]
fn constraints_on_devices_compare_typed_values() {
    let node = node(vec![device("nvidia", "1080Ti", &["a"])]);
    for (left, operand, right, expected) in [
        ("${device.attr.memory}", ">=", "2 GiB", true),
        ("${device.attr.memory}", ">", "4 GiB", false),
        ("${device.attr.clock}", "=", "1 GHz", true),
        ("${device.attr.memory}", "=", "1 GHz", false),
        ("${device.attr.memory}", "!=", "1 GHz", false),
        ("${device.attr.memory}", "!=", "1 GiB", true),
        ("${device.attr.none}", "!=", "1", true),
        ("${device.attr.none}", "!=", "${device.attr.neither}", false),
        ("${device.attr.none}", "=", "1", false),
        ("${device.attr.none}", "is_not_set", "", true),
        ("${device.attr.memory}", "is_set", "", true),
        ("${device.model}", "regexp", ".*Ti", true),
        ("${device.model}", "regexp", "^Ti", false),
        ("${device.vendor}", "=", "nvidia", true),
        ("${device.type}", "is", "gpu", true),
        ("${device.bogus}", "=", "gpu", false),
        ("${device.model}", "bogus", "gpu", false),
    ] {
        let wanted = with(request("gpu", 1), left, operand, right);
        assert_eq!(ask(vec![wanted]).exists(&node), expected, "{left} {operand} {right}");
    }
}

#[test]
fn versions_may_be_texts_or_whole_numbers() {
    let mut gpu = device("nvidia", "1080ti", &["a"]);
    let text = Attribute { string: Some("470.82.1".into()), ..Attribute::default() };
    gpu.attributes.insert("driver".into(), text);
    gpu.attributes.insert("level".into(), Attribute { int: Some(3), ..Attribute::default() });
    let node = node(vec![gpu]);
    for (key, terms, expected) in
        [("driver", ">= 470, < 471", true), ("level", ">= 3", true), ("level", "> 3", false)]
    {
        let wanted = with(request("gpu", 1), &format!("${{device.attr.{key}}}"), "version", terms);
        assert_eq!(ask(vec![wanted]).exists(&node), expected, "{key} {terms}");
    }
}

/// H48.
#[test]
fn a_constraint_on_ids_holds_for_each_instance() {
    let node = node(vec![device("nvidia", "1080ti", &["id1", "id2"])]);
    let only = |count| with(request("gpu", count), "${device.ids}", "set_contains", "id1");
    assert_eq!(ids(&ask(vec![only(1)]).assign(&node, &none()).unwrap()), ["id1"]);
    assert_eq!(ask(vec![only(2)]).assign(&node, &none()), Err("no devices match request".into()));
    let turned = with(request("gpu", 1), "id2", "set_contains", "${device.ids}");
    assert!(ask(vec![turned]).assign(&node, &none()).is_err(), "the device as a whole has to hold as well");
}

/// I43, I44.
#[test]
fn the_device_that_is_liked_best_is_given() {
    let node = node(vec![device("nvidia", "a100", &["a"]), device("nvidia", "t4", &["b"])]);
    let liked = liking(request("gpu", 1), "${device.model}", "t4", 100);
    let assigned = ask(vec![liked]).assign(&node, &none()).unwrap();
    assert_eq!((ids(&assigned), assigned.score), (vec!["b"], Some(1.0)));
    // 50 of 100 here, 100 of 100 there: 150 of 200.
    let half =
        liking(liking(request("gpu", 1), "${device.model}", "a100", 50), "${device.vendor}", "amd", 50);
    let both = vec![half, liking(request("gpu", 1), "${device.model}", "t4", 100)];
    let assigned = ask(both).assign(&node, &none()).unwrap();
    assert_eq!((ids(&assigned), assigned.score), (vec!["a", "b"], Some(0.75)));
    let plain = ask(vec![request("gpu", 1)]).assign(&node, &none()).unwrap();
    assert_eq!((ids(&plain), plain.score), (vec!["a"], None), "of equals the first by name");
}

/// I45.
#[test]
fn all_instances_of_a_request_are_of_one_kind() {
    let node = node(vec![device("nvidia", "a100", &["a"]), device("nvidia", "t4", &["b"])]);
    assert_eq!(
        ask(vec![request("gpu", 2)]).assign(&node, &none()),
        Err("no devices match request".to_string())
    );
}

/// J24.
#[test]
fn an_instance_in_use_is_not_given_again() {
    let node = node(vec![device("nvidia", "t4", &["a", "b"])]);
    let one = ask(vec![request("gpu", 1)]);
    let first = one.assign(&node, &none()).unwrap();
    let mut taken = DeviceId::all(&first.tasks[0].1);
    let second = one.assign(&node, &taken).unwrap();
    assert_eq!((ids(&first), ids(&second)), (vec!["a"], vec!["b"]));
    taken.extend(DeviceId::all(&second.tasks[0].1));
    assert_eq!(one.assign(&node, &taken), Err("no devices match request".to_string()));
    let freed = DeviceId::all(&second.tasks[0].1);
    assert_eq!(ids(&one.assign(&node, &freed).unwrap()), ["a"], "what ended gave it back");
}

#[test]
fn requests_that_make_no_sense_say_so() {
    let gpu = node(vec![device("nvidia", "t4", &["a"])]);
    let assign = |node: &Node, count| ask(vec![request("gpu", count)]).assign(node, &none());
    assert_eq!(assign(&node(vec![]), 1), Err("no devices available".to_string()));
    assert_eq!(assign(&gpu, 0), Err("invalid request of zero devices".to_string()));
}

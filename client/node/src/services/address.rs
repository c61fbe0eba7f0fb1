//! Where a service or a check is reached.

use model::document::Allocation;

use crate::driver::DriverNetwork;
use crate::network::Status;
use crate::task::environment::group_ports;

/// The addresses and ports of one allocation, as one of its tasks, or the group, has them.
#[derive(Debug)]
pub(super) struct Addresses<'a> {
    pub alloc: &'a Allocation,
    /// Empty for the group.
    pub task: &'a str,
    /// What the driver gave the task, if it runs.
    pub driver: Option<&'a DriverNetwork>,
    /// The node's own address.
    pub node_ip: &'a str,
    /// Where the group is reached inside its own network, if it has one.
    pub network: Option<&'a Status>,
}

/// An address and a port. The address may be empty, the port 0: what the job does not say is not made up.
pub(super) type Place = (String, i64);

impl Addresses<'_> {
    /// `given` is the `address` of the service, which counts with `auto` only.
    ///
    /// # Errors
    /// Why there is no such address, naming the key.
    pub(super) fn find(&self, mode: &str, given: &str, label: &str) -> Result<Place, String> {
        match mode {
            "" | "auto" if !given.is_empty() => Ok((given.to_string(), self.on_host(label)?.1)),
            "" | "auto" => match self.driver.filter(|network| network.auto_advertise) {
                Some(network) => self.at_driver(network, label),
                None => self.on_host(label),
            },
            "host" => self.on_host(label),
            "driver" => match self.driver {
                Some(network) => self.at_driver(network, label),
                None => Err("address_mode \"driver\": the driver gives the task no network of its own; use \
                             \"host\""
                    .to_string()),
            },
            "alloc" | "alloc_ipv6" => {
                let ip = self.network.map_or("", |network| match mode {
                    "alloc" => &network.address,
                    _ => &network.address_v6,
                });
                match ip {
                    "" => Err(format!(
                        "address_mode {mode:?}: the allocation has no such address; use \"host\""
                    )),
                    ip => self.inside(ip, label),
                }
            }
            _ => Err(format!("address_mode {mode:?}: expected auto, host, driver, alloc or alloc_ipv6")),
        }
    }

    fn on_host(&self, label: &str) -> Result<Place, String> {
        if label.is_empty() {
            return Ok((self.host_ip(), 0));
        }
        if let Some(port) = group_ports(self.alloc).into_iter().find(|port| port.label == label) {
            return Ok((port.host_ip, port.value));
        }
        if let Some(place) = self.of_task(label) {
            return Ok(place);
        }
        Ok((String::new(), number(label)?))
    }

    fn at_driver(&self, network: &DriverNetwork, label: &str) -> Result<Place, String> {
        match network.port_map.get(label) {
            Some(port) => Ok((network.ip.clone(), *port)),
            None => self.inside(&network.ip, label),
        }
    }

    /// The port as it is behind that address.
    fn inside(&self, ip: &str, label: &str) -> Result<Place, String> {
        let ip = ip.to_string();
        if label.is_empty() {
            return Ok((ip, 0));
        }
        if let Some(port) = group_ports(self.alloc).into_iter().find(|port| port.label == label) {
            return Ok((ip, if port.to > 0 { port.to } else { port.value }));
        }
        Ok((ip, number(label)?))
    }

    /// A port of a network of the task itself, as older jobs have them.
    fn of_task(&self, label: &str) -> Option<Place> {
        let granted = self.alloc.allocated_resources.as_ref()?.tasks.get(self.task)?;
        granted.networks.iter().find_map(|network| {
            let mut ports = network.reserved_ports.iter().chain(&network.dynamic_ports.0);
            ports.find(|port| port.label == label).map(|port| (network.ip.clone(), port.value))
        })
    }

    fn host_ip(&self) -> String {
        let granted = self.alloc.allocated_resources.as_ref();
        let mut networks = granted.iter().flat_map(|granted| granted.shared.networks.iter());
        let of_group = networks.find(|network| !network.ip.is_empty()).map(|network| network.ip.clone());
        of_group.unwrap_or_else(|| self.node_ip.to_string())
    }
}

fn number(label: &str) -> Result<i64, String> {
    let number = label.parse::<u16>().ok().filter(|number| *number > 0);
    let unknown = || format!("port {label:?}: expected the label of a port of the group, or a number");
    number.map(i64::from).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn alloc() -> Allocation {
        serde_json::from_value(serde_json::json!({"AllocatedResources": {
            "Shared": {"Ports": [{"Label": "http", "Value": 20001, "To": 80, "HostIP": "10.0.0.1"}],
                       "Networks": [{"IP": "10.0.0.1"}]},
            "Tasks": {"t": {"Networks": [{"IP": "10.0.0.9", "DynamicPorts": [{"Label": "old", "Value": 20002}]}]}}
        }}))
        .unwrap()
    }

    fn find(driver: Option<&DriverNetwork>, mode: &str, given: &str, label: &str) -> Result<Place, String> {
        let network = None;
        Addresses { alloc: &alloc(), task: "t", driver, node_ip: "10.9.9.9", network }
            .find(mode, given, label)
    }

    fn place(address: &str, port: i64) -> Result<Place, String> {
        Ok((address.to_string(), port))
    }

    #[test]
    fn a_group_with_a_network_of_its_own_is_reached_inside() {
        let network = Status { address: "172.26.64.2".into(), ..Status::default() };
        let alloc = alloc();
        let all = Addresses { alloc: &alloc, task: "", driver: None, node_ip: "", network: Some(&network) };
        assert_eq!(all.find("alloc", "", "http"), place("172.26.64.2", 80));
        assert_eq!(all.find("alloc", "", "9000"), place("172.26.64.2", 9000));
        assert_eq!(all.find("alloc", "", ""), place("172.26.64.2", 0));
        let error = all.find("alloc_ipv6", "", "http").unwrap_err();
        assert!(error.starts_with("address_mode \"alloc_ipv6\": the allocation has no such address"));
    }

    #[test]
    fn each_mode_has_its_address() {
        let quiet =
            DriverNetwork { ip: "172.17.0.2".into(), port_map: BTreeMap::new(), auto_advertise: false };
        let port_map = BTreeMap::from([("admin".to_string(), 8080)]);
        let own = DriverNetwork { port_map, auto_advertise: true, ..quiet.clone() };
        for (driver, mode, given, label, expected) in [
            (None, "auto", "", "http", place("10.0.0.1", 20001)),
            (None, "", "", "old", place("10.0.0.9", 20002)),
            (None, "host", "", "9000", place("", 9000)),
            (None, "auto", "", "", place("10.0.0.1", 0)),
            (None, "auto", "example.com", "http", place("example.com", 20001)),
            (None, "auto", "example.com", "443", place("example.com", 443)),
            (Some(&quiet), "auto", "", "http", place("10.0.0.1", 20001)),
            (Some(&own), "auto", "", "http", place("172.17.0.2", 80)),
            (Some(&own), "host", "", "http", place("10.0.0.1", 20001)),
            (Some(&quiet), "driver", "", "http", place("172.17.0.2", 80)),
            (Some(&own), "driver", "", "admin", place("172.17.0.2", 8080)),
            (Some(&own), "driver", "", "", place("172.17.0.2", 0)),
        ] {
            assert_eq!(find(driver, mode, given, label), expected, "{mode} {given} {label}");
        }
        for (mode, label, named) in [
            ("auto", "nope", "port \"nope\""),
            ("host", "0", "port \"0\""),
            ("host", "70000", "port \"70000\""),
            ("driver", "http", "address_mode \"driver\""),
            ("alloc", "http", "address_mode \"alloc\""),
            ("elsewhere", "http", "address_mode \"elsewhere\""),
        ] {
            let error = find(None, mode, "", label).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
    }
}

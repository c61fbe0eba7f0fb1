//! What a group asks of its network, from the words of the job.

use std::net::IpAddr;

use model::document::{Allocation, NetworkResource, TaskGroup};

use super::rules::Forward;
use crate::task::environment::{Environment, group_ports};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    None,
    Bridge,
    /// The name of a configuration.
    Plugins(String),
}

/// The network of one allocation as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub alloc_id: String,
    pub mode: Mode,
    pub ports: Vec<Forward>,
    /// Those of the same name reach each other, others do not reach them.
    pub isolated: Option<String>,
    /// The driver that makes the namespace; empty for the agent.
    pub driver: String,
    /// The name that the job gives its host, with what it refers to.
    pub hostname: Option<String>,
    /// What plugins get to know of the allocation.
    pub args: Vec<(String, String)>,
}

/// What the group asks for; nothing for the network of the host. `bind_wildcard`: ports of the default host network are at
/// all addresses.
///
/// # Errors
/// Names the key that is not possible.
pub fn group_request(
    alloc: &Allocation,
    group: &TaskGroup,
    env: &Environment,
    region: &str,
    bind_wildcard: bool,
) -> Result<Option<Request>, String> {
    // Only the first counts, as in Nomad.
    let Some(network) = group.networks.first() else { return Ok(None) };
    let mode = match network.mode.as_str() {
        "" | "host" => return Ok(None),
        "none" => Mode::None,
        "bridge" => Mode::Bridge,
        mode => match mode.strip_prefix("cni/").filter(|name| !name.is_empty()) {
            Some(name) => Mode::Plugins(name.to_string()),
            None => return Err(format!("this node has no networking mode \"{mode}\"")),
        },
    };
    Ok(Some(Request {
        alloc_id: alloc.id.clone(),
        ports: if mode == Mode::None { Vec::new() } else { ports(alloc, network, bind_wildcard)? },
        isolated: isolated(alloc, network, &mode)?,
        mode,
        driver: String::new(),
        hostname: Some(env.replace(&network.hostname)).filter(|name| !name.is_empty()),
        args: args(alloc, network, env, region),
    }))
}

fn ports(alloc: &Allocation, network: &NetworkResource, bind_wildcard: bool) -> Result<Vec<Forward>, String> {
    let wanted = || network.reserved_ports.iter().chain(&network.dynamic_ports.0);
    let ports = group_ports(alloc).into_iter().map(|port| {
        let by_default = wanted()
            .find(|wanted| wanted.label == port.label)
            .is_none_or(|wanted| matches!(wanted.host_network.as_str(), "" | "default"));
        let number = |value: i64| {
            let number = u16::try_from(value).ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("port \"{}\": {value} is no port", port.label))
        };
        let host = match port.host_ip.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() || (bind_wildcard && by_default) => None,
            Ok(ip) => Some(ip),
            Err(_) if port.host_ip.is_empty() => None,
            Err(_) => return Err(format!("port \"{}\": \"{}\" is no address", port.label, port.host_ip)),
        };
        let host_port = number(port.value)?;
        let port = if port.to > 0 { number(port.to)? } else { host_port };
        Ok(Forward { host, host_port, port })
    });
    ports.collect()
}

/// The job, where only its own allocations are to be reached.
fn isolated(alloc: &Allocation, network: &NetworkResource, mode: &Mode) -> Result<Option<String>, String> {
    match (network.isolation.as_str(), mode) {
        ("", _) => Ok(None),
        ("job", Mode::Bridge) => Ok(Some(format!("{}/{}", alloc.namespace, alloc.job_id))),
        ("job", _) => Err("network isolation \"job\" is possible with mode \"bridge\" only".to_string()),
        (other, _) => Err(format!("network isolation \"{other}\": expected \"job\"")),
    }
}

/// Values with a `;` are left out, because it is what stands between them.
fn args(
    alloc: &Allocation,
    network: &NetworkResource,
    env: &Environment,
    region: &str,
) -> Vec<(String, String)> {
    let own = network.cni.iter().flat_map(|cni| cni.args.iter());
    let own = own.map(|(name, value)| (name.clone(), env.replace(value)));
    let names = [
        ("NOMAD_REGION", region),
        ("NOMAD_NAMESPACE", &alloc.namespace),
        ("NOMAD_JOB_ID", &alloc.job_id),
        ("NOMAD_GROUP_NAME", &alloc.task_group),
        ("NOMAD_ALLOC_ID", &alloc.id),
    ];
    let names = names.map(|(name, value)| (name.to_string(), value.to_string()));
    let all = [("IgnoreUnknown".to_string(), "true".to_string())].into_iter().chain(own).chain(names);
    all.filter(|(_, value)| !value.contains(';')).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(network: serde_json::Value) -> Result<Option<Request>, String> {
        let alloc: Allocation = serde_json::from_value(json!({
            "ID": "a1", "JobID": "web", "Namespace": "default", "TaskGroup": "g",
            "AllocatedResources": {"Shared": {"Ports": [
                {"Label": "http", "Value": 20001, "To": 80, "HostIP": "10.0.0.1"},
                {"Label": "own", "Value": 20002, "HostIP": "10.1.0.1"}
            ]}}
        }))
        .unwrap();
        let group = TaskGroup {
            networks: vec![serde_json::from_value(network).unwrap()].into(),
            ..TaskGroup::default()
        };
        group_request(&alloc, &group, &Environment::default(), "global", true)
    }

    #[test]
    fn ports_of_the_default_network_are_at_all_addresses() {
        let network = json!({"Mode": "bridge", "DynamicPorts": [
            {"Label": "http"}, {"Label": "own", "HostNetwork": "private"}
        ]});
        let found = request(network).unwrap().unwrap();
        let private = Some("10.1.0.1".parse().unwrap());
        assert_eq!(
            found.ports,
            [
                Forward { host: None, host_port: 20001, port: 80 },
                Forward { host: private, host_port: 20002, port: 20002 },
            ]
        );
        assert_eq!((found.mode, found.isolated), (Mode::Bridge, None));
        assert_eq!(found.args.last().unwrap(), &("NOMAD_ALLOC_ID".to_string(), "a1".to_string()));
    }

    #[test]
    fn what_is_not_possible_is_named() {
        assert_eq!(request(json!({"Mode": "host"})), Ok(None));
        for (network, named) in [
            (json!({"Mode": "overlay"}), "no networking mode \"overlay\""),
            (json!({"Mode": "cni/"}), "no networking mode \"cni/\""),
            (json!({"Mode": "bridge", "Isolation": "all"}), "isolation \"all\": expected \"job\""),
            (json!({"Mode": "none", "Isolation": "job"}), "isolation \"job\" is possible with"),
        ] {
            let error = request(network).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn args_leave_out_what_would_break_them() {
        let network = json!({"Mode": "cni/x", "CNI": {"Args": {"a": "b", "c": "d;e"}}});
        let found = request(network).unwrap().unwrap();
        assert_eq!(found.mode, Mode::Plugins("x".to_string()));
        let names: Vec<&str> = found.args.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(&names[..3], ["IgnoreUnknown", "a", "NOMAD_REGION"]);
    }
}

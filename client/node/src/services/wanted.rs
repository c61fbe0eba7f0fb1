//! What a job asks for, in the words of the servers: instances of services, and checks.

use model::document::{Allocation, List, Service, TaskGroup};
use wire::messages::ServiceRegistration;

use super::address::Addresses;
use super::check::Check;
use super::consul::{self, Registration, ServiceLogin};
use crate::driver::DriverNetwork;
use crate::network::Status;
use crate::settings::NodeSettings;
use crate::task::environment::Environment;

/// Longest name of a service, in bytes.
const NAME_MAX: usize = 63;

/// The node's own address, as texts may name it.
const NODE_IP: &str = "${attr.unique.network.ip-address}";

/// Where services of this node can be registered.
#[derive(Clone, Copy, Debug)]
pub struct Providers {
    pub nomad: bool,
    pub consul: bool,
}

impl Providers {
    pub fn of(settings: &NodeSettings) -> Providers {
        Providers { nomad: settings.service_discovery, consul: settings.consul.is_some() }
    }
}

/// What this node cannot do for a service, by the name of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("service {service:?}: {why}")]
pub struct Unsupported {
    pub service: String,
    pub why: String,
}

/// One instance and its checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub registration: ServiceRegistration,
    /// Of a service of provider consul: what Consul is sent instead.
    pub(super) consul: Option<Registration>,
    pub(super) checks: Vec<Check>,
}

/// The services of the group itself, which is reached `inside` its own network if it has one.
///
/// # Errors
/// What of them this node cannot do.
pub fn of_group(
    alloc: &Allocation,
    group: &TaskGroup,
    inside: Option<&Status>,
    env: &Environment,
    providers: Providers,
) -> Result<Vec<Wanted>, Unsupported> {
    refused(&group.services, inside.is_some(), providers)?;
    let workload = format!("group-{}", alloc.task_group);
    all(alloc, &group.services, ("", &workload), (None, inside), env)
}

/// The services of a task that runs, in the network that its driver gave it and in that of its group.
///
/// # Errors
/// As [`of_group`].
pub fn of_task(
    alloc: &Allocation,
    task: &str,
    services: &[Service],
    networks: (Option<&DriverNetwork>, Option<&Status>),
    env: &Environment,
    providers: Providers,
) -> Result<Vec<Wanted>, Unsupported> {
    refused(services, networks.1.is_some(), providers)?;
    all(alloc, services, (task, task), networks, env)
}

/// What can be refused before there are addresses, for a group with a network of its own or without.
///
/// # Errors
/// What of a service this node cannot do.
pub fn refused(services: &[Service], own_network: bool, providers: Providers) -> Result<(), Unsupported> {
    services.iter().try_for_each(|service| {
        let own = check_service(service, own_network, providers);
        let of_consul = service.provider != "nomad";
        let check = |check| super::check::refused(check, of_consul);
        let refused = own.and_then(|()| service.checks.iter().try_for_each(check));
        refused.map_err(|why| Unsupported { service: service.name.clone(), why })
    })
}

fn check_service(service: &Service, own_network: bool, providers: Providers) -> Result<(), String> {
    match service.provider.as_str() {
        "nomad" if providers.nomad => {}
        "nomad" => {
            return Err("provider \"nomad\": client.nomad_service_discovery is false on this node".into());
        }
        "" | "consul" if providers.consul => {
            if !matches!(service.cluster.as_str(), "" | "default") {
                return Err(format!("cluster {:?}: this node has the default one only", service.cluster));
            }
        }
        "" | "consul" => {
            return Err("provider \"consul\": this node has no Consul; use provider = \"nomad\"".into());
        }
        other => return Err(format!("provider {other:?}: expected nomad or consul")),
    }
    if service.connect.is_some() {
        return Err("connect: this node runs no proxies of Consul".into());
    }
    match service.address_mode.as_str() {
        "" | "auto" | "host" | "driver" => Ok(()),
        "alloc" | "alloc_ipv6" if own_network => Ok(()),
        mode @ ("alloc" | "alloc_ipv6") => {
            Err(format!("address_mode {mode:?}: the allocation has the network of the host; use \"host\""))
        }
        mode => Err(format!("address_mode {mode:?}: expected auto, host, driver, alloc or alloc_ipv6")),
    }
}

fn all(
    alloc: &Allocation,
    services: &[Service],
    (task, workload): (&str, &str),
    (driver, network): (Option<&DriverNetwork>, Option<&Status>),
    env: &Environment,
) -> Result<Vec<Wanted>, Unsupported> {
    let node_ip = Some(env.replace(NODE_IP)).filter(|ip| ip != NODE_IP).unwrap_or_default();
    let addresses = Addresses { alloc, task, driver, node_ip: &node_ip, network };
    let make = |service: &Service| {
        let made = wanted(service, workload, &addresses, env);
        made.map_err(|why| Unsupported { service: service.name.clone(), why })
    };
    services.iter().map(make).collect()
}

fn wanted(
    service: &Service,
    workload: &str,
    addresses: &Addresses<'_>,
    env: &Environment,
) -> Result<Wanted, String> {
    let alloc = addresses.alloc;
    let name = env.replace(&service.name);
    check_name(&name)?;
    let port_label = env.replace(&service.port_label);
    let (address, port) =
        addresses.find(&service.address_mode, &env.replace(&service.address), &port_label)?;
    let is_canary = alloc.deployment_status.as_ref().is_some_and(|status| status.canary);
    let tags =
        if is_canary && !service.canary_tags.is_empty() { &service.canary_tags } else { &service.tags };
    let of_consul = service.provider != "nomad";
    let registration = ServiceRegistration {
        id: format!("_nomad-task-{}-{workload}-{name}-{port_label}", alloc.id),
        service_name: name.clone(),
        namespace: alloc.namespace.clone(),
        node_id: env.replace("${node.unique.id}"),
        datacenter: env.replace("${node.datacenter}"),
        job_id: alloc.job_id.clone(),
        alloc_id: alloc.id.clone(),
        tags: List(tags.iter().map(|tag| env.replace(tag)).collect()),
        address,
        port,
        ..ServiceRegistration::default()
    };
    let make = |check| Check::make(check, service, &name, addresses, env);
    let checks = service.checks.iter().map(make).collect::<Result<Vec<_>, _>>()?;
    let login = service.identity.as_ref().map(|identity| ServiceLogin {
        alloc_id: alloc.id.clone(),
        identity: identity.name.clone(),
        service: service.name.clone(),
        name: name.clone(),
        created: alloc.create_index,
    });
    let consul = of_consul.then(|| Registration {
        login,
        ..consul::wanted::registration(service, &registration, &checks, is_canary, env)
    });
    Ok(Wanted { registration, consul, checks })
}

/// Servers have seen it before its variables were filled in.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if name.is_empty() || name.len() > NAME_MAX || !is_plain {
        return Err(format!("name {name:?}: expected 1 to {NAME_MAX} letters, digits and inner dashes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::services::check::Probe;
    use crate::testing::ALLOC_ID;

    fn alloc(canary: bool) -> Allocation {
        serde_json::from_value(json!({
            "ID": ALLOC_ID, "Name": "job.g[0]", "Namespace": "apps", "JobID": "job", "TaskGroup": "g",
            "DeploymentStatus": {"Canary": canary},
            "AllocatedResources": {"Shared": {"Ports": [{"Label": "http", "Value": 20001, "HostIP": "10.0.0.1"}]}}
        }))
        .unwrap()
    }

    fn made(service: Value, canary: bool) -> Result<Wanted, String> {
        let service: Service = serde_json::from_value(service).unwrap();
        let mut env = Environment::default();
        for (name, value) in [
            ("NOMAD_META_colour", "blue"),
            ("NOMAD_ALLOC_INDEX", "0"),
            ("node.unique.id", "n1"),
            ("node.datacenter", "dc1"),
        ] {
            env.variables.insert(name.to_string(), value.to_string());
        }
        let made = of_task(&alloc(canary), "t", &[service], (None, None), &env, NOMAD);
        made.map(|mut made| made.remove(0)).map_err(|error| error.to_string())
    }

    const NOMAD: Providers = Providers { nomad: true, consul: false };

    #[test]
    fn a_registration_has_the_id_address_and_tags_of_nomad() {
        let service = json!({
            "Name": "web-${NOMAD_ALLOC_INDEX}", "Provider": "nomad", "PortLabel": "http",
            "Tags": ["v1", "c-${NOMAD_META_colour}"], "CanaryTags": ["canary"]
        });
        let registration = made(service.clone(), false).unwrap().registration;
        assert_eq!(registration.id, format!("_nomad-task-{ALLOC_ID}-t-web-0-http"));
        assert_eq!((registration.address.as_str(), registration.port), ("10.0.0.1", 20001));
        assert_eq!(registration.tags.0, ["v1", "c-blue"]);
        let whose = [&registration.namespace, &registration.job_id, &registration.node_id];
        assert_eq!(whose, ["apps", "job", "n1"]);
        assert_eq!((registration.datacenter.as_str(), registration.alloc_id.as_str()), ("dc1", ALLOC_ID));
        assert_eq!(made(service, true).unwrap().registration.tags.0, ["canary"]);
        let plain = json!({"Name": "web", "Provider": "nomad", "Tags": ["v1"]});
        let plain = made(plain, true).unwrap().registration;
        assert_eq!(plain.tags.0, ["v1"], "a canary without tags of its own has the usual ones");
        assert_eq!(plain.id, format!("_nomad-task-{ALLOC_ID}-t-web-"), "there is no port");
        let group: TaskGroup =
            serde_json::from_value(json!({"Services": [{"Name": "web", "Provider": "nomad"}]})).unwrap();
        let of_group = of_group(&alloc(false), &group, None, &Environment::default(), NOMAD).unwrap();
        assert_eq!(of_group[0].registration.id, format!("_nomad-task-{ALLOC_ID}-group-g-web-"));
    }

    #[test]
    fn checks_are_made_of_their_service_and_have_ids_of_their_own() {
        let check = json!({"Type": "http", "Path": "/health?x=1", "Interval": "5s", "Timeout": "2s",
            "Header": {"X-Colour": ["${NOMAD_META_colour}"]}, "CheckRestart": {"Limit": 3}, "OnUpdate": "ignore"});
        let tcp =
            json!({"Name": "port", "Type": "tcp", "PortLabel": "9000", "Interval": "5s", "Timeout": "2s"});
        let service =
            json!({"Name": "web", "Provider": "nomad", "PortLabel": "http", "Checks": [check, tcp]});
        let checks = made(service.clone(), false).unwrap().checks;
        assert_eq!(checks, made(service, true).unwrap().checks, "the same check is the same for every agent");
        let [http, tcp] = &checks[..] else { panic!("{checks:?}") };
        assert_eq!((http.name.as_str(), http.service.as_str()), ("service: \"web\" check", "web"));
        assert!(http.is_readiness && !tcp.is_readiness && http.id.len() == 64 && http.id != tcp.id);
        let Probe::Http(probe) = &http.probe else { panic!("{http:?}") };
        assert_eq!((probe.method.as_str(), probe.url.as_str()), ("GET", "http://10.0.0.1:20001/health?x=1"));
        assert_eq!(probe.headers, [("X-Colour".to_string(), "blue".to_string())]);
        assert_eq!(tcp.probe, Probe::Tcp { address: "127.0.0.1:9000".into() });
        assert_eq!((http.restart.unwrap().limit, tcp.restart), (3, None));
    }

    #[test]
    fn a_node_without_service_discovery_registers_nothing_with_the_servers() {
        let service: Service = serde_json::from_value(json!({"Name": "web", "Provider": "nomad"})).unwrap();
        let refused = refused(&[service], false, Providers { nomad: false, consul: false }).unwrap_err();
        let why = "service \"web\": provider \"nomad\": client.nomad_service_discovery is false on this node";
        assert_eq!(refused.to_string(), why);
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let service = |extra: Value| {
            let mut service = json!({"Name": "web", "Provider": "nomad", "PortLabel": "http"});
            service.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            service
        };
        let with_check = |extra: Value| {
            let mut check = json!({"Name": "c", "Type": "tcp", "Interval": "5s", "Timeout": "2s"});
            check.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            service(json!({"Checks": [check]}))
        };
        for (service, expected) in [
            (service(json!({"Provider": ""})), "service \"web\": provider \"consul\": "),
            (service(json!({"Connect": {}})), "service \"web\": connect: "),
            (service(json!({"AddressMode": "alloc"})), "service \"web\": address_mode \"alloc\": "),
            (service(json!({"AddressMode": "driver"})), "service \"web\": address_mode \"driver\": "),
            (service(json!({"PortLabel": "nope"})), "service \"web\": port \"nope\": "),
            (service(json!({"Name": "a_b"})), "service \"a_b\": name \"a_b\": expected 1 to 63 "),
            (
                with_check(json!({"Type": "grpc"})),
                "service \"web\": check \"c\": type \"grpc\": expected http ",
            ),
            (with_check(json!({"Type": "script"})), "service \"web\": check \"c\": type \"script\": "),
            (
                with_check(json!({"SuccessBeforePassing": 2})),
                "service \"web\": check \"c\": success_before_passing: ",
            ),
            (with_check(json!({"TLSServerName": "a"})), "service \"web\": check \"c\": tls_server_name: "),
            (
                with_check(json!({"AddressMode": "alloc"})),
                "service \"web\": check \"c\": address_mode \"alloc\": ",
            ),
            (with_check(json!({"Interval": 0})), "service \"web\": check \"c\": interval: "),
        ] {
            let error = made(service, false).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}

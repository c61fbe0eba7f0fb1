//! Checks whose callers are not part of the mesh: the proxy lets their path through.

use model::document::{ConsulExposePath, NetworkResource, Service, ServiceCheck, TaskGroup};
use sha2::{Digest, Sha256};

use super::connect::add_port;

/// Gives each exposed check a port of its own, unless it names one, and its proxy the path to let through. Checks that
/// cannot be exposed stay as they are; validation says so.
pub(super) fn expose(group: &mut TaskGroup) {
    let TaskGroup { networks, services, .. } = group;
    let Some(network) = networks.first_mut() else { return };
    for service in services.iter_mut() {
        if let Some(port) = local_port(network, &service.port_label) {
            expose_service(network, service, port);
        }
    }
}

/// Whether the proxy can distinguish the calls of this check from others: by their path.
pub(crate) fn is_exposable(check: &ServiceCheck) -> bool {
    protocol(check).is_some() && check.path.starts_with('/')
}

/// Where the service listens behind its proxy: the port inside of the group's network, or the number it names.
pub(crate) fn local_port(network: &NetworkResource, label: &str) -> Option<i64> {
    let mut ports = network.reserved_ports.iter().chain(network.dynamic_ports.iter());
    let named = ports.find(|port| port.label == label);
    let inside = named.and_then(|port| [port.to, port.value].into_iter().find(|number| *number > 0));
    inside.or_else(|| label.parse().ok().filter(|number| *number > 0))
}

fn expose_service(network: &mut NetworkResource, service: &mut Service, local_path_port: i64) {
    let Service { name, port_label, checks, connect, .. } = service;
    let sidecar = connect.as_mut().and_then(|connect| connect.sidecar_service.as_mut());
    let Some(sidecar) = sidecar else { return };
    for check in checks.iter_mut().filter(|check| check.expose && is_exposable(check)) {
        if check.port_label.is_empty() {
            check.port_label = format!("svc_{name}_ck_{}", mark(port_label, check));
            add_port(network, &check.port_label);
        }
        let path = ConsulExposePath {
            path: check.path.clone(),
            protocol: protocol(check).unwrap_or_default().to_string(),
            local_path_port,
            listener_port: check.port_label.clone(),
        };
        let paths = &mut sidecar.proxy.get_or_insert_default().expose.get_or_insert_default().paths;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
}

/// The protocol of the proxy on the port of the check; `None` for checks that have no paths.
fn protocol(check: &ServiceCheck) -> Option<&'static str> {
    match check.kind.to_lowercase().as_str() {
        "http" => Some("http"),
        "grpc" => Some("http2"),
        _ => None,
    }
}

/// Six hexadecimal digits that distinguish the checks of a group, the same at every registration: another label would be
/// another network, and the group would be replaced for it. So only what a check is goes in, not how often it runs.
fn mark(service_port: &str, check: &ServiceCheck) -> String {
    let parts = [service_port, &check.name, &check.kind, &check.path];
    let digest = Sha256::digest(parts.join("\0"));
    digest.iter().take(3).map(|byte| format!("{byte:02x}")).collect()
}

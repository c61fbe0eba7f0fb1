//! Services of the mesh: where their proxies run, and what they may let through.

use model::document::{Service, ServiceCheck, TaskGroup};

use super::report::Report;
use crate::canonical::{is_exposable, local_port};

pub(super) fn check(report: &mut Report, group: &TaskGroup) {
    for (at, service) in group.services.iter().enumerate() {
        report.within(&format!("Services[{at}]"), &format!("service \"{}\"", service.name), |report| {
            place(report, group, service);
        });
    }
    for_exposed(report, &group.services, |report, service, check| exposed(report, group, service, check));
    for (at, task) in group.tasks.iter().enumerate() {
        report.within(&format!("Tasks[{at}]"), &format!("task \"{}\"", task.name), |report| {
            for_exposed(report, &task.services, |report, _, _| {
                report.error("Expose", "expose belongs to checks of the group's services");
            });
        });
    }
}

/// A sidecar shares a network with its service that is not the node's; a gateway has no service beside it.
fn place(report: &mut Report, group: &TaskGroup, service: &Service) {
    let Some(connect) = &service.connect else { return };
    let mode = match group.networks.as_slice() {
        [network] => Some(network.mode.as_str()),
        _ => None,
    };
    let own = mode.is_some_and(|mode| mode == "bridge" || mode.starts_with("cni/"));
    let host = matches!(mode, Some("" | "host"));
    if connect.sidecar_service.is_some() && !own {
        let message =
            "sidecar_service needs exactly one network in the group, of mode \"bridge\" or \"cni/<name>\"";
        report.error("Connect.SidecarService", message);
    }
    if connect.gateway.is_some() && !own && !host {
        let message = "a gateway needs exactly one network in the group, of mode \"bridge\", \"host\" or \"cni/<name>\"";
        report.error("Connect.Gateway", message);
    }
}

fn for_exposed(
    report: &mut Report,
    services: &[Service],
    judge: impl Fn(&mut Report, &Service, &ServiceCheck),
) {
    for (at, service) in services.iter().enumerate() {
        report.within(&format!("Services[{at}]"), &format!("service \"{}\"", service.name), |report| {
            for (at, check) in service.checks.iter().enumerate().filter(|(_, check)| check.expose) {
                report.within(&format!("Checks[{at}]"), &format!("check \"{}\"", check.name), |report| {
                    judge(report, service, check);
                });
            }
        });
    }
}

fn exposed(report: &mut Report, group: &TaskGroup, service: &Service, check: &ServiceCheck) {
    if service.connect.as_ref().is_none_or(|connect| connect.sidecar_service.is_none()) {
        return report.error("Expose", "expose needs a service with sidecar_service");
    }
    if !matches!(check.kind.to_lowercase().as_str(), "http" | "grpc") {
        return report.error("Expose", "only http and grpc checks are exposed");
    }
    let network = match group.networks.as_slice() {
        [network] if network.mode == "bridge" => network,
        _ => return report.error("Expose", "expose needs exactly one network, of mode \"bridge\""),
    };
    if !is_exposable(check) {
        return report.warn("without a path that starts with / the check is not exposed");
    }
    if local_port(network, &service.port_label).is_none() {
        let message = format!(
            "where the service listens cannot be determined from its port \"{}\"",
            service.port_label
        );
        report.error("Expose", message);
    }
}

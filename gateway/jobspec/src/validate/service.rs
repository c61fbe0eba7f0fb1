use std::collections::BTreeSet;

use model::document::{Duration, Service, ServiceCheck, TaskGroup};

use super::report::Report;
use crate::canonical::is_exposable;

const SECOND: Duration = Duration::from_secs(1);

/// Longest service name, in bytes, once a node has filled it in.
const NAME_MAX: usize = 63;

/// Longest notes of a check, in bytes.
const NOTES_MAX: usize = 255;

const ON_UPDATE: [&str; 3] = ["require_healthy", "ignore_warnings", "ignore"];

/// All services of a group (`task` is `None`) or of one task. Others may have services of the same name and port: each is
/// registered for its owner.
pub(super) fn check_all(report: &mut Report, services: &[Service], task: Option<&str>) {
    let mut seen = BTreeSet::new();
    for (at, service) in services.iter().enumerate() {
        report.within(&format!("Services[{at}]"), &format!("service \"{}\"", service.name), |report| {
            if !service.name.is_empty() && !seen.insert((&service.name, &service.port_label)) {
                report.error("Name", "a second service of this name and port");
            }
            check(report, service, task.is_some());
        });
    }
}

/// One provider for all services of a group and its tasks.
pub(super) fn check_providers(report: &mut Report, group: &TaskGroup) {
    let of_tasks = group.tasks.iter().flat_map(|task| task.services.iter());
    let providers = group.services.iter().chain(of_tasks).map(provider);
    if providers.collect::<BTreeSet<_>>().len() > 1 {
        report.error("Services", "the services of a group have one provider, not several");
    }
}

fn provider(service: &Service) -> &str {
    if service.provider.is_empty() { "consul" } else { &service.provider }
}

fn check(report: &mut Report, service: &Service, in_task: bool) {
    name(report, &service.name);
    report.one_of("Provider", &service.provider, &["consul", "nomad"]);
    report.one_of("AddressMode", &service.address_mode, &["auto", "host", "driver", "alloc", "alloc_ipv6"]);
    report.one_of("OnUpdate", &service.on_update, &ON_UPDATE);
    if !service.address.is_empty() && !matches!(service.address_mode.as_str(), "" | "auto") {
        report.error("Address", "address needs address_mode = \"auto\"");
    }
    if !in_task && service.address_mode == "driver" {
        report.error("AddressMode", "address_mode = \"driver\" belongs to services of tasks");
    }
    if provider(service) == "nomad" {
        nomad(report, service);
    }
    let mut seen = BTreeSet::new();
    for (at, check) in service.checks.iter().enumerate() {
        report.within(&format!("Checks[{at}]"), &format!("check \"{}\"", check.name), |report| {
            let repeated = !check.name.is_empty() && !seen.insert(&check.name);
            // Published job files have checks of one name in services of groups.
            if repeated && in_task {
                report.error("Name", "a second check of this name");
            }
            self::check_check(report, service, check);
        });
    }
}

fn name(report: &mut Report, name: &str) {
    if name.contains("${") {
        return;
    }
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if name.is_empty() || name.len() > NAME_MAX || !plain {
        let message =
            format!("a service name has 1 to {NAME_MAX} letters, digits and inner dashes, not \"{name}\"");
        report.error("Name", message);
    }
}

fn nomad(report: &mut Report, service: &Service) {
    if service.connect.is_some() {
        report.error("Connect", "the provider nomad has no connect");
    }
    if service.identity.is_some() {
        report.error("Identity", "the provider nomad takes no identity");
    }
    if service.checks.iter().any(|check| !matches!(check.kind.as_str(), "http" | "tcp")) {
        report.error("Checks", "the provider nomad has http and tcp checks only");
    }
}

fn check_check(report: &mut Report, service: &Service, check: &ServiceCheck) {
    const TYPES: [&str; 4] = ["http", "tcp", "grpc", "script"];
    if !TYPES.contains(&check.kind.to_lowercase().as_str()) {
        report.error(
            "Type",
            format!("there is no check type \"{}\"; known are {}", check.kind, TYPES.join(", ")),
        );
    }
    if check.interval < SECOND {
        report.error("Interval", "a check needs an interval of at least 1s");
    }
    if check.timeout < SECOND {
        report.error("Timeout", "a check needs a timeout of at least 1s");
    }
    match check.kind.as_str() {
        "http" if check.path.is_empty() => report.error("Path", "an http check needs a path"),
        "http" if check.path.contains("://") => {
            report.error("Path", "the path of a check has no scheme and no host")
        }
        "script" if check.command.is_empty() => report.error("Command", "a script check needs a command"),
        _ => {}
    }
    // One that is exposed gets a port.
    let needs_port = check.kind != "script" && !(check.expose && is_exposable(check));
    if needs_port && check.port_label.is_empty() && service.port_label.is_empty() {
        report.error("PortLabel", "neither the check nor its service has a port");
    }
    if check.notes.len() > NOTES_MAX {
        report.error("Notes", format!("the notes are longer than {NOTES_MAX} characters"));
    }
    report.one_of("AddressMode", &check.address_mode, &["host", "driver", "alloc", "alloc_ipv6", "auto"]);
    report.one_of("Protocol", &check.protocol, &["http", "https"]);
    report.one_of("InitialStatus", &check.initial_status, &["passing", "warning", "critical"]);
    report.one_of("OnUpdate", &check.on_update, &ON_UPDATE);
}

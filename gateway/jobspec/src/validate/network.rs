use std::collections::BTreeSet;

use model::document::{NetworkResource, Port};

use super::report::Report;

const PORT_MAX: i64 = u16::MAX as i64;

/// Longest part of a host name between dots, in bytes.
const HOST_LABEL_MAX: usize = 63;

pub(super) fn check(report: &mut Report, networks: &[NetworkResource]) {
    if networks.len() > 1 {
        report.error("Networks", "a group has at most one network block");
    }
    let mut labels = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for (at, network) in networks.iter().enumerate() {
        report.within(&format!("Networks[{at}]"), "network", |report| {
            shape(report, network);
            let host = matches!(network.mode.as_str(), "" | "host");
            // A static number of 0 or less leaves the port dynamic.
            let all = [
                ("ReservedPorts", &network.reserved_ports, 0),
                ("DynamicPorts", &network.dynamic_ports, i64::MIN),
            ];
            for (field, ports, least) in all {
                for (at, port) in ports.iter().enumerate() {
                    let field = format!("{field}[{at}]");
                    self::port(report, &field, port, least, host);
                    if !labels.insert(port.label.as_str()) {
                        report.error(&field, format!("a second port with the label \"{}\"", port.label));
                    }
                    let own = (network_of(port), port.value);
                    if port.value > 0 && !port.ignore_collision && !taken.insert(own) {
                        report.error(&field, format!("the static port {} is asked for twice", port.value));
                    }
                }
            }
        });
    }
}

fn network_of(port: &Port) -> &str {
    if port.host_network.is_empty() { "default" } else { &port.host_network }
}

fn shape(report: &mut Report, network: &NetworkResource) {
    let mode = network.mode.as_str();
    if !["", "none", "bridge", "host"].contains(&mode) && !mode.starts_with("cni/") {
        report.error(
            "Mode",
            format!("there is no network mode \"{mode}\"; known are host, bridge, none and cni/<name>"),
        );
    }
    match (network.isolation.as_str(), mode) {
        ("", _) | ("job", "bridge") => {}
        ("job", _) => report.error("Isolation", "isolation \"job\" needs mode \"bridge\"".to_string()),
        (other, _) => report.error("Isolation", format!("there is no isolation \"{other}\"; known is job")),
    }
    if !network.hostname.is_empty() && !network.hostname.contains("${") && !is_host_name(&network.hostname) {
        report.error("Hostname", format!("\"{}\" is not a host name", network.hostname));
    }
    let args = network.cni.iter().flat_map(|cni| &cni.args);
    for (name, value) in args {
        if name.contains(';') || value.contains(';') {
            report.error("CNI.Args", format!("the argument \"{name}\" contains a semicolon"));
        }
    }
    if network.mbits.unwrap_or(0) > 0 {
        report.warn("mbits is obsolete and has no effect");
    }
}

/// The label becomes part of environment variables.
pub(crate) fn is_port_label(label: &str) -> bool {
    !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

fn is_host_name(name: &str) -> bool {
    let part = |part: &str| {
        (1..=HOST_LABEL_MAX).contains(&part.len())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.trim_end_matches('.').split('.').all(part)
}

fn port(report: &mut Report, field: &str, port: &Port, least: i64, host_mode: bool) {
    let label = &port.label;
    if label.is_empty() {
        report.error(field, "a port has no label");
    } else if !is_port_label(label) {
        report.error(field, format!("{label:?} is not a port label: use letters, digits, _, - and ."));
    }
    if !(least..=PORT_MAX).contains(&port.value) {
        report
            .error(field, format!("port \"{label}\": static {} is not between 1 and {PORT_MAX}", port.value));
    }
    if !(-1..=PORT_MAX).contains(&port.to) {
        report.error(field, format!("port \"{label}\": to {} is not between -1 and {PORT_MAX}", port.to));
    }
    if port.ignore_collision && !host_mode {
        report.error(field, format!("port \"{label}\": ignore_collision belongs to host networks"));
    }
}

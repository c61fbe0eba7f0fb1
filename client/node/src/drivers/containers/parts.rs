//! What containers of every engine are given: their names, labels, ports and shares.

use std::collections::BTreeMap;

use model::document::PortMapping;

use crate::driver::{Limits, TaskConfig, TaskNames};

/// On every container, as Nomad has it.
pub const ALLOC_LABEL: &str = "com.hashicorp.nomad.alloc_id";

/// Whose container it is. Ours alone: what other agents on this host have started is not touched.
pub const NODE_LABEL: &str = "sojourn.node_id";

/// On containers that have the networks of groups, and no others.
pub const NETWORK_LABEL: &str = "sojourn.network";

pub const MIB: i64 = 1024 * 1024;

/// The name of the container of a task.
pub fn name(config: &TaskConfig) -> String {
    format!("{}-{}", config.task, config.alloc_id).replace('/', "_")
}

/// The task's own labels, those that the operator wants on all, and those by which containers are found again.
pub fn labels(extra_labels: &[String], config: &TaskConfig) -> BTreeMap<String, String> {
    let TaskNames { namespace, job_id, job_name, parent_job_id, group, node_id, node_name } = &config.names;
    let extra = [
        ("job_name", job_name),
        ("job_id", job_id),
        ("parent_job_id", parent_job_id),
        ("task_group_name", group),
        ("task_name", &config.task),
        ("namespace", namespace),
        ("node_name", node_name),
        ("node_id", node_id),
    ];
    let mut labels = config.config.map("labels");
    let wanted = |name: &str| extra_labels.iter().any(|pattern| base::matches_glob(pattern, name));
    for (name, value) in extra.into_iter().filter(|(name, value)| wanted(name) && !value.is_empty()) {
        labels.insert(format!("com.hashicorp.nomad.{name}"), value.clone());
    }
    labels.insert(ALLOC_LABEL.to_string(), config.alloc_id.clone());
    labels.insert(NODE_LABEL.to_string(), node_id.clone());
    labels
}

/// The task's share of the time that all cores have in a period; the kernel takes no less than a millisecond.
///
/// # Errors
/// When it is not known what the node has.
pub fn quota(limits: &Limits, period: i64) -> Result<i64, String> {
    let Limits { cpu_mhz, node_cpu_mhz, node_cores, .. } = *limits;
    if node_cpu_mhz <= 0 || node_cores <= 0 {
        return Err("cpu_hard_limit is not possible: this node does not know its CPU".to_string());
    }
    let quota = i128::from(cpu_mhz) * i128::from(period) * i128::from(node_cores) / i128::from(node_cpu_mhz);
    Ok((quota as i64).max(1000))
}

/// `SOFT` or `SOFT:HARD`.
///
/// # Errors
/// When it is neither.
pub fn ulimit(name: &str, text: &str) -> Result<(i64, i64), String> {
    let (soft, hard) = text.split_once(':').unwrap_or((text, text));
    match (soft.trim().parse(), hard.trim().parse()) {
        (Ok(soft), Ok(hard)) => Ok((soft, hard)),
        _ => Err(format!("ulimit {name} must be a number, or two with a colon between them, not \"{text}\"")),
    }
}

/// A port of the group, by its label, and what it is inside of the container.
///
/// # Errors
/// When the group has none of that label.
pub fn port<'a>(config: &'a TaskConfig, label: &str) -> Result<(&'a PortMapping, i64), String> {
    let missing = || format!("port \"{label}\" is not one of a network block of the group");
    let port = config.ports.iter().find(|port| port.label == label).ok_or_else(missing)?;
    Ok((port, inside(port)))
}

fn inside(port: &PortMapping) -> i64 {
    if port.to > 0 { port.to } else { port.value }
}

/// The labels of a task's ports with what they are inside of the container.
pub fn port_map(config: &TaskConfig) -> BTreeMap<String, i64> {
    let labels = config.config.texts("ports");
    let own = config.ports.iter().filter(|port| labels.contains(&port.label));
    own.map(|port| (port.label.clone(), inside(port))).collect()
}

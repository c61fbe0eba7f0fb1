//! Constraints that follow from what a job uses, so that it is placed only where that exists.

use std::collections::BTreeSet;

use model::document::{Constraint, List, Service, Task, TaskGroup};

use model::document::Job;

/// When an implied constraint counts as given already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// Any constraint about the same attribute will do: its author knows better.
    Left,
    /// Only the very same constraint.
    Full,
}

/// Adds to every group the constraints its tasks and services imply. Idempotent.
pub fn imply_constraints(job: &mut Job) {
    let of_job = job.constraints.clone();
    for group in &mut job.task_groups {
        for (constraint, by) in implied(group) {
            push(&mut group.constraints, &of_job, constraint, by);
        }
        for task in &mut group.tasks {
            if task.services.iter().any(is_consul) {
                push(&mut task.constraints, &[], consul(), Match::Left);
            }
        }
    }
}

/// Keeps groups with services of Nomad's own on nodes that register them. For clusters that have such nodes: where there are
/// none yet, or nodes of earlier releases only, the job would wait for ever.
///
/// `is_offered` looks at every node, so it is asked only about jobs that have such services.
pub fn imply_service_discovery(job: &mut Job, is_offered: impl FnOnce() -> bool) {
    let registers = |group: &TaskGroup| {
        let mut services =
            group.services.iter().chain(group.tasks.iter().flat_map(|task| task.services.iter()));
        services.any(|service| service.provider == "nomad")
    };
    if !job.task_groups.iter().any(registers) || !is_offered() {
        return;
    }
    let of_job = job.constraints.clone();
    let wanted = constraint("${attr.nomad.service_discovery}", "=", "true");
    for group in job.task_groups.iter_mut().filter(|group| registers(group)) {
        push(&mut group.constraints, &of_job, wanted.clone(), Match::Full);
    }
}

fn push(into: &mut List<Constraint>, above: &[Constraint], wanted: Constraint, by: Match) {
    let given = |constraint: &Constraint| match by {
        Match::Left => constraint.l_target == wanted.l_target,
        Match::Full => *constraint == wanted,
    };
    if !into.iter().chain(above).any(given) {
        into.push(wanted);
    }
}

fn constraint(left: &str, operand: &str, right: &str) -> Constraint {
    Constraint { l_target: left.to_string(), operand: operand.to_string(), r_target: right.to_string() }
}

fn consul() -> Constraint {
    constraint("${attr.consul.version}", "semver", ">= 1.8.0")
}

fn implied(group: &TaskGroup) -> Vec<(Constraint, Match)> {
    let mut all = Vec::new();
    for task in &group.tasks {
        of_task(task, &mut all);
    }
    let signals = signals(group);
    if !signals.is_empty() {
        let list = signals.into_iter().collect::<Vec<_>>().join(",");
        all.push((constraint("${attr.os.signals}", "set_contains", &list), Match::Full));
    }
    let services: Vec<&Service> =
        group.services.iter().chain(group.tasks.iter().flat_map(|task| task.services.iter())).collect();
    of_services(&services, &mut all);
    of_networks(group, &mut all);
    all
}

fn of_task(task: &Task, all: &mut Vec<(Constraint, Match)>) {
    if let Some(vault) = &task.vault {
        let attribute = match vault.cluster.as_str() {
            "" | "default" => "${attr.vault.version}".to_string(),
            cluster => format!("${{attr.vault.{cluster}.version}}"),
        };
        all.push((constraint(&attribute, "semver", ">= 0.6.1"), Match::Left));
    }
    for secret in task.secrets.iter().filter(|secret| !matches!(secret.provider.as_str(), "nomad" | "vault"))
    {
        let attribute = format!("${{attr.plugins.secrets.{}.version}}", secret.provider);
        all.push((constraint(&attribute, "is_set", ""), Match::Left));
    }
    if task.identities.iter().any(|identity| !matches!(identity.name.as_str(), "" | "default")) {
        all.push((constraint("${attr.nomad.version}", "semver", ">= 1.7.0-a"), Match::Full));
    }
    for consul in task.consul.iter().filter(|consul| !consul.partition.is_empty()) {
        all.push((constraint("${attr.consul.partition}", "=", &consul.partition), Match::Full));
    }
}

/// Every signal the group may have to send, sorted.
fn signals(group: &TaskGroup) -> BTreeSet<String> {
    let mut signals = BTreeSet::new();
    for task in &group.tasks {
        signals.insert(task.kill_signal.clone());
        let vault = task.vault.iter().map(|vault| (&vault.change_mode, &vault.change_signal));
        let templates =
            task.templates.iter().map(|template| (&template.change_mode, &template.change_signal));
        for (mode, signal) in vault.chain(templates) {
            if mode.as_deref() == Some("signal") {
                signals.extend(signal.clone());
            }
        }
        let identities = task.identities.iter().chain(&task.identity);
        let by_signal = identities.filter(|identity| identity.change_mode == "signal");
        signals.extend(by_signal.map(|identity| identity.change_signal.clone()));
    }
    signals.remove("");
    signals.into_iter().map(|signal| signal.to_uppercase()).collect()
}

fn is_consul(service: &Service) -> bool {
    matches!(service.provider.as_str(), "" | "consul")
}

fn of_services(services: &[&Service], all: &mut Vec<(Constraint, Match)>) {
    let of_nomad = || services.iter().filter(|service| service.provider == "nomad");
    if of_nomad().any(|service| !service.checks.is_empty()) {
        all.push((constraint("${attr.nomad.version}", "semver", ">= 1.4.0"), Match::Full));
    }
    if services.iter().any(|service| is_consul(service)) {
        all.push((consul(), Match::Left));
    }
    let transparent = services.iter().any(|service| {
        let sidecar = service.connect.as_ref().and_then(|connect| connect.sidecar_service.as_ref());
        sidecar
            .and_then(|sidecar| sidecar.proxy.as_ref())
            .is_some_and(|proxy| proxy.transparent_proxy.is_some())
    });
    if transparent {
        all.push((constraint("${attr.plugins.cni.version.consul-cni}", "semver", ">= 1.4.2"), Match::Left));
        all.push((constraint("${attr.nomad.version}", "semver", ">= 1.8.0-dev"), Match::Left));
    }
}

fn of_networks(group: &TaskGroup, all: &mut Vec<(Constraint, Match)>) {
    let bridged = group.networks.iter().any(|network| network.mode == "bridge");
    if bridged {
        for plugin in ["bridge", "firewall", "host-local", "loopback", "portmap"] {
            let attribute = format!("${{attr.plugins.cni.version.{plugin}}}");
            all.push((constraint(&attribute, "semver", ">= 0.4.0"), Match::Left));
        }
    }
    for consul in group.consul.iter().filter(|consul| !consul.partition.is_empty()) {
        all.push((constraint("${attr.consul.partition}", "=", &consul.partition), Match::Full));
    }
}

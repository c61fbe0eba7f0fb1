//! The proxies of the service mesh: tasks that servers add to a group for the `connect` blocks of its services.

use model::document::{
    Constraint, ConsulGateway, Duration, LogConfig, NetworkResource, Port, Resources, Service, SidecarTask,
    Task, TaskGroup, TaskLifecycle,
};
use serde_json::{Value as Json, json};

const PROXY_MHZ: i64 = 250;
const PROXY_MIB: i64 = 128;
const SHUTDOWN_DELAY: Duration = Duration::from_secs(5);

/// Adds what is not there yet. Groups without a network have no place for a proxy; validation says so.
pub(super) fn inject(group: &mut TaskGroup) {
    if group.networks.is_empty() {
        return;
    }
    let services = std::mem::take(&mut group.services);
    for service in &services {
        let Some(connect) = &service.connect else { continue };
        if connect.sidecar_service.is_some() {
            sidecar(group, service, connect.sidecar_task.as_ref());
        } else if let Some(gateway) = &connect.gateway {
            self::gateway(group, service, gateway);
        }
    }
    group.services = services;
    native(group);
}

/// A port for a proxy, the same number inside and outside of the group's network, unless the label is taken.
pub(super) fn add_port(network: &mut NetworkResource, label: &str) {
    let mut given = network.reserved_ports.iter().chain(network.dynamic_ports.iter());
    if given.all(|port| port.label != label) {
        network.dynamic_ports.push(Port { label: label.to_string(), to: -1, ..Port::default() });
    }
}

/// A service that implements the mesh's protocol itself belongs to the one task there is, unless it names another.
fn native(group: &mut TaskGroup) {
    let TaskGroup { services, tasks, .. } = group;
    for service in services.iter_mut() {
        if !service.connect.as_ref().is_some_and(|connect| connect.native) {
            continue;
        }
        if let (true, [only]) = (service.task_name.is_empty(), tasks.as_slice()) {
            service.task_name = only.name.clone();
        }
        let task = tasks.iter_mut().find(|task| task.name == service.task_name);
        if let Some(task) = task.filter(|task| task.kind.is_empty()) {
            task.kind = format!("connect-native:{}", service.name);
        }
    }
}

fn sidecar(group: &mut TaskGroup, service: &Service, given: Option<&SidecarTask>) {
    let name = format!("connect-proxy-{}", service.name);
    let kind = format!("connect-proxy:{}", service.name);
    add_port(&mut group.networks[0], &name);
    if group.tasks.iter().any(|task| task.kind == kind) {
        return;
    }
    let mut task = proxy(group, name, kind, "${meta.connect.sidecar_image}");
    task.lifecycle = Some(TaskLifecycle { hook: "prestart".to_string(), sidecar: true });
    given.into_iter().for_each(|given| overlay(&mut task, given));
    group.tasks.push(task);
}

fn gateway(group: &mut TaskGroup, service: &Service, gateway: &ConsulGateway) {
    let which = match gateway {
        ConsulGateway { ingress: Some(_), .. } => "ingress",
        ConsulGateway { terminating: Some(_), .. } => "terminating",
        _ => "mesh",
    };
    let kind = format!("connect-{which}:{}", service.name);
    if group.tasks.iter().any(|task| task.kind == kind) {
        return;
    }
    let name = format!("connect-{which}-{}", service.name);
    let mut task = proxy(group, name, kind, "${meta.connect.gateway_image}");
    if matches!(group.networks[0].mode.as_str(), "" | "host") {
        task.config.insert("network_mode".to_string(), json!("host"));
    }
    let sidecar = service.connect.as_ref().and_then(|connect| connect.sidecar_task.as_ref());
    sidecar.into_iter().for_each(|given| overlay(&mut task, given));
    group.tasks.push(task);
}

fn proxy(group: &TaskGroup, name: String, kind: String, image: &str) -> Task {
    let runs = |driver: &str| group.tasks.iter().any(|task| task.driver == driver);
    let driver = if runs("podman") && !runs("docker") { "podman" } else { "docker" };
    let arguments = [
        "-c",
        "${NOMAD_SECRETS_DIR}/envoy_bootstrap.json",
        "-l",
        "${meta.connect.log_level}",
        "--concurrency",
        "${meta.connect.proxy_concurrency}",
        "--disable-hot-restart",
    ];
    let config = [("image", json!(image)), ("args", json!(arguments))];
    let constraint = |left: &str, operand: &str, right: &str| Constraint {
        l_target: left.to_string(),
        operand: operand.to_string(),
        r_target: right.to_string(),
    };
    let constraints = vec![
        constraint("${attr.consul.version}", "semver", ">= 1.8.0"),
        constraint("${attr.consul.grpc}", ">", "0"),
    ];
    Task {
        name,
        kind,
        driver: driver.to_string(),
        config: config.into_iter().map(|(name, value): (&str, Json)| (name.to_string(), value)).collect(),
        shutdown_delay: SHUTDOWN_DELAY,
        log_config: Some(LogConfig { max_files: Some(2), max_file_size_mb: Some(2), ..LogConfig::default() }),
        resources: Some(Resources {
            cpu: Some(PROXY_MHZ),
            memory_mb: Some(PROXY_MIB),
            ..Resources::default()
        }),
        constraints: constraints.into(),
        ..Task::default()
    }
}

/// What the author says of the proxy's task wins.
fn overlay(task: &mut Task, given: &SidecarTask) {
    let texts = [
        (&mut task.name, &given.name),
        (&mut task.driver, &given.driver),
        (&mut task.user, &given.user),
        (&mut task.kill_signal, &given.kill_signal),
    ];
    for (slot, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        slot.clone_from(text);
    }
    if !given.config.is_empty() {
        task.config = given.config.clone();
    }
    task.env.extend(given.env.clone().0);
    task.meta.extend(given.meta.clone().0);
    task.resources = given.resources.clone().or(task.resources.take());
    task.log_config = given.log_config.clone().or(task.log_config.take());
    task.kill_timeout = given.kill_timeout.or(task.kill_timeout);
    task.shutdown_delay = given.shutdown_delay.unwrap_or(task.shutdown_delay);
    task.volume_mounts.extend(given.volume_mounts.clone().0);
    task.identities.extend(given.identities.clone().0);
}

use model::document::{
    DisconnectStrategy, Duration, Job, Map, NetworkResource, Resources, Service, Task, TaskGroup,
    UpdateStrategy, WorkloadIdentity,
};

use super::group::complete_disconnect;
use super::policy::overlay_restart;
use super::service::Owner;
use super::{connect, expose, fill, fill_text, gateway, task};

/// The pool of nodes that belong to no other.
const DEFAULT_NODE_POOL: &str = "default";
/// The Consul that is meant where none is named, and where a service goes there.
const DEFAULT_CLUSTER: &str = "default";
const DEFAULT_CONSUL_NAMESPACE: &str = "default";
/// The audience of the identity of every task.
const DEFAULT_AUDIENCE: &str = "nomadproject.io";

pub(super) fn complete(job: &mut Job) {
    if job.datacenters.is_empty() {
        job.datacenters = vec!["*".to_string()].into();
    }
    if job.node_pool.as_deref().is_none_or(str::is_empty) {
        job.node_pool = Some(DEFAULT_NODE_POOL.to_string());
    }
    fill(&mut job.dispatch_idempotency_token, "");
    fill(&mut job.submit_time, 0_i64);
    // The groups have taken these over.
    job.reschedule = None;
    job.migrate = None;
    job.update = Some(shown_update(job.update.as_ref()));
    if let Some(parameterized) = &mut job.parameterized_job {
        fill_text(&mut parameterized.payload, "optional");
    }
    let names = Names {
        namespace: job.namespace.clone().unwrap_or_default(),
        id: job.id.clone().unwrap_or_default(),
        name: job.name.clone().unwrap_or_default(),
    };
    for group in &mut job.task_groups {
        complete_group(group, &names);
    }
}

/// What the parts of a job are called after.
struct Names {
    namespace: String,
    id: String,
    name: String,
}

impl Names {
    fn target(&self, below: &[(&str, &str)]) -> Map<String, String> {
        let above = [("Namespace", self.namespace.as_str()), ("Job", self.id.as_str())];
        let all = above.into_iter().chain(below.iter().copied());
        all.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }
}

/// Of the job's own update block only these two remain; the groups have the rest.
fn shown_update(given: Option<&UpdateStrategy>) -> UpdateStrategy {
    UpdateStrategy {
        stagger: Some(given.and_then(|update| update.stagger).unwrap_or_default()),
        max_parallel: Some(given.and_then(|update| update.max_parallel).unwrap_or(0)),
        health_check: Some(String::new()),
        min_healthy_time: Some(Duration::default()),
        healthy_deadline: Some(Duration::default()),
        progress_deadline: Some(Duration::default()),
        canary: Some(0),
        auto_revert: Some(false),
        auto_promote: Some(false),
    }
}

fn complete_group(group: &mut TaskGroup, names: &Names) {
    disconnect(group);
    fill(&mut group.prevent_reschedule_on_lost, false);
    let name = group.name.clone().unwrap_or_default();
    if let Some(scaling) = &mut group.scaling {
        scaling.target = names.target(&[("Group", &name)]);
    }
    for service in &mut group.services {
        complete_service(service, names, &Owner { job: &names.name, group: &name, task: None });
    }
    fill_text(&mut group.consul.get_or_insert_default().cluster, DEFAULT_CLUSTER);
    inject(group, names);
    for task in &mut group.tasks {
        complete_task(task, names, &name);
    }
}

/// The older spellings become a disconnect block; next to one they stay, for validation to refuse.
fn disconnect(group: &mut TaskGroup) {
    let legacy = group.stop_after_client_disconnect.is_some()
        || group.max_client_disconnect.is_some()
        || group.prevent_reschedule_on_lost.unwrap_or(false);
    if legacy && group.disconnect.is_none() {
        group.disconnect = Some(DisconnectStrategy {
            lost_after: group.max_client_disconnect.take(),
            stop_on_client_after: group.stop_after_client_disconnect.take(),
            replace: Some(!group.prevent_reschedule_on_lost.take().unwrap_or(false)),
            reconcile: None,
        });
        complete_disconnect(group);
    }
}

/// The proxies that services of the group need, as complete as the tasks that were written.
fn inject(group: &mut TaskGroup, names: &Names) {
    connect::inject(group);
    gateway::bind(group);
    expose::expose(group);
    let name = group.name.clone().unwrap_or_default();
    let restart = group.restart_policy.clone().unwrap_or_default();
    for task in &mut group.tasks {
        task.restart_policy = Some(overlay_restart(task.restart_policy.as_ref(), &restart));
        task::apply_defaults(task, &names.name, &name);
    }
    group.networks.iter_mut().for_each(complete_network);
}

fn complete_task(task: &mut Task, names: &Names, group: &str) {
    let unnamed = |identity: &WorkloadIdentity| matches!(identity.name.as_str(), "" | "default");
    if task.identity.is_none()
        && let Some(at) = task.identities.iter().position(unnamed)
    {
        task.identity = Some(task.identities.remove(at));
    }
    complete_identity(task.identity.get_or_insert_default());
    task.resources.iter_mut().for_each(complete_resources);
    if let Some(logs) = &mut task.log_config {
        logs.enabled = None;
    }
    for policy in &mut task.scaling_policies {
        policy.target = names.target(&[("Group", group), ("Task", &task.name)]);
    }
    for service in &mut task.services {
        complete_service(service, names, &Owner { job: &names.name, group, task: Some(&task.name) });
    }
}

/// The identity of every task; of an empty one it makes what a task is given unasked.
fn complete_identity(identity: &mut WorkloadIdentity) {
    identity.name = "default".to_string();
    if identity.audience.is_empty() {
        identity.audience = vec![DEFAULT_AUDIENCE.to_string()].into();
    }
}

fn complete_resources(resources: &mut Resources) {
    for amount in
        [&mut resources.memory_max_mb, &mut resources.disk_mb, &mut resources.secrets_mb, &mut resources.iops]
    {
        fill(amount, 0_i64);
    }
    resources.networks.iter_mut().for_each(complete_network);
}

fn complete_network(network: &mut NetworkResource) {
    let NetworkResource { reserved_ports, dynamic_ports, .. } = network;
    for port in reserved_ports.iter_mut().chain(dynamic_ports.iter_mut()) {
        fill_text(&mut port.host_network, "default");
    }
}

/// The service's own restart rule has been copied into its checks.
fn complete_service(service: &mut Service, names: &Names, owner: &Owner) {
    service.check_restart = None;
    service.name = owner.expand(&service.name);
    match service.provider.as_str() {
        // Wherever the document came from: it is the job that is registered.
        "nomad" => service.namespace.clone_from(&names.namespace),
        _ => fill_text(&mut service.namespace, DEFAULT_CONSUL_NAMESPACE),
    }
    let Service { name, checks, task_name, .. } = service;
    for check in checks.iter_mut().filter(|check| check.name.is_empty()) {
        check.name = format!("service: {name:?} check");
    }
    if let Some(task) = owner.task {
        fill_text(task_name, task);
        checks.iter_mut().for_each(|check| fill_text(&mut check.task_name, task));
    }
}

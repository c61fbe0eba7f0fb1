use model::document::{
    Duration, Job, NetworkResource, Resources, Service, Task, TaskGroup, UpdateStrategy, WorkloadIdentity,
};

use super::fill;

/// The pool of nodes that belong to no other.
const DEFAULT_NODE_POOL: &str = "default";
/// Whom the identity of every task speaks to.
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
    job.task_groups.iter_mut().for_each(complete_group);
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

fn complete_group(group: &mut TaskGroup) {
    fill(&mut group.prevent_reschedule_on_lost, false);
    group.networks.iter_mut().for_each(complete_network);
    group.services.iter_mut().for_each(complete_service);
    group.tasks.iter_mut().for_each(complete_task);
}

fn complete_task(task: &mut Task) {
    let unnamed = |identity: &WorkloadIdentity| matches!(identity.name.as_str(), "" | "default");
    if task.identity.is_none()
        && let Some(at) = task.identities.iter().position(unnamed)
    {
        task.identity = Some(task.identities.remove(at));
    }
    let identity = task.identity.get_or_insert_default();
    identity.name = "default".to_string();
    if identity.audience.is_empty() {
        identity.audience = vec![DEFAULT_AUDIENCE.to_string()].into();
    }
    task.resources.iter_mut().for_each(complete_resources);
    if let Some(logs) = &mut task.log_config {
        logs.enabled = None;
    }
    task.services.iter_mut().for_each(complete_service);
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
        super::fill_text(&mut port.host_network, "default");
    }
}

/// The service's own restart rule has been copied into its checks.
fn complete_service(service: &mut Service) {
    service.check_restart = None;
}

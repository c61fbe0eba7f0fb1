use model::document::{CheckRestart, ConsulConnect, Duration, Service, ServiceCheck, SidecarTask};

use super::group::complete_resources;
use super::task::{complete_logs, complete_mount};
use super::{fill, fill_text};

/// Who registers a service.
pub(super) struct Owner<'a> {
    pub job: &'a str,
    pub group: &'a str,
    /// `None` for a service of the group.
    pub task: Option<&'a str>,
}

impl Owner<'_> {
    pub(super) fn base(&self) -> String {
        match self.task {
            Some(task) => format!("{}-{}-{task}", self.job, self.group),
            None => format!("{}-{}", self.job, self.group),
        }
    }

    /// Names may be built from these four, which are known without a node.
    pub(super) fn expand(&self, name: &str) -> String {
        let name = name.replace("${JOB}", self.job).replace("${TASKGROUP}", self.group);
        name.replace("${TASK}", self.task.unwrap_or("group")).replace("${BASE}", &self.base())
    }
}

pub(super) fn apply_defaults(service: &mut Service, owner: &Owner) {
    fill_text(&mut service.name, &owner.base());
    fill_text(&mut service.address_mode, "auto");
    fill_text(&mut service.on_update, "require_healthy");
    fill_text(&mut service.provider, "consul");
    if service.provider == "consul" {
        fill_text(&mut service.cluster, "default");
    }
    if let Some(weights) = &mut service.weights {
        let or_one = |weight: i64| if weight == 0 { 1 } else { weight };
        weights.passing = or_one(weights.passing);
        weights.warning = or_one(weights.warning);
    }
    let Service { checks, check_restart, on_update, connect, .. } = service;
    for check in checks.iter_mut() {
        complete_check(check, check_restart.as_ref(), on_update);
    }
    connect.iter_mut().for_each(complete_connect);
}

fn complete_check(check: &mut ServiceCheck, restart: Option<&CheckRestart>, on_update: &str) {
    fill_text(&mut check.on_update, on_update);
    match (&mut check.check_restart, restart) {
        (Some(own), Some(of_service)) => {
            own.limit = if own.limit == 0 { of_service.limit } else { own.limit };
            own.grace = own.grace.or(of_service.grace);
            own.ignore_warnings |= of_service.ignore_warnings;
        }
        (None, Some(of_service)) => check.check_restart = Some(of_service.clone()),
        (_, None) => {}
    }
    if let Some(restart) = &mut check.check_restart {
        fill(&mut restart.grace, Duration::from_secs(1));
    }
}

fn complete_connect(connect: &mut ConsulConnect) {
    if let Some(gateway) = &mut connect.gateway {
        if let Some(proxy) = &mut gateway.proxy {
            fill(&mut proxy.connect_timeout, Duration::from_secs(5));
        }
        for listener in gateway.ingress.iter_mut().flat_map(|ingress| &mut ingress.listeners) {
            fill_text(&mut listener.protocol, "tcp");
        }
    }
    let sidecar = connect.sidecar_service.iter_mut();
    for proxy in sidecar.flat_map(|sidecar| &mut sidecar.proxy) {
        for upstream in &mut proxy.upstreams {
            upstream.mesh_gateway.get_or_insert_default();
        }
    }
    connect.sidecar_task.iter_mut().for_each(complete_sidecar);
}

fn complete_sidecar(task: &mut SidecarTask) {
    complete_resources(task.resources.get_or_insert_default());
    complete_logs(task.log_config.get_or_insert_default());
    fill(&mut task.kill_timeout, Duration::from_secs(5));
    fill(&mut task.shutdown_delay, Duration::default());
    task.volume_mounts.iter_mut().for_each(complete_mount);
}

//! What a job asks for that this release reads but does not do. The list shrinks as releases grow.

use model::document::{
    Consul, Duration, Job, NetworkResource, Resources, Service, Task, TaskGroup, UpdateStrategy,
};

use crate::canonical::DEFAULT_STAGGER;

/// Drivers whose `config` is executed.
const DRIVERS: [&str; 2] = ["raw_exec", "mock_driver"];

/// One sentence for each block or attribute that this release does not execute, or has a newer spelling for.
///
/// Defaults are not named, whether they were written or not: jobs come as parsed, canonical, or as a server showed them.
pub fn unsupported(job: &Job) -> Vec<String> {
    let mut all = Names { place: String::new(), found: Vec::new() };
    all.name(&[("multiregion", job.multiregion.is_some())]);
    job.update.iter().for_each(|block| all.update(block));
    for group in &job.task_groups {
        let name = group.name.as_deref().unwrap_or_default();
        all.place = format!("group \"{name}\": ");
        all.group(group);
        for task in &group.tasks {
            all.place = format!("group \"{name}\", task \"{}\": ", task.name);
            all.task(task);
        }
    }
    all.found
}

/// It is about another Consul than the default one, or another part of it.
fn is_special(consul: &Consul) -> bool {
    let is_default = consul.namespace.is_empty() && consul.partition.is_empty();
    !is_default || !matches!(consul.cluster.as_str(), "" | "default")
}

struct Names {
    place: String,
    found: Vec<String>,
}

impl Names {
    fn name(&mut self, asked: &[(&str, bool)]) {
        for (what, _) in asked.iter().filter(|(_, asked)| *asked) {
            self.found.push(format!("{}{what} is not executed yet", self.place));
        }
    }

    /// They take effect, but new job files should not use them.
    fn older_spelling(&mut self, written: &[(&str, &str, bool)]) {
        for (older, newer, _) in written.iter().filter(|(.., written)| *written) {
            self.found
                .push(format!("{}{older} is an older spelling of {newer} in a disconnect block", self.place));
        }
    }

    fn group(&mut self, group: &TaskGroup) {
        let disk = group.ephemeral_disk.clone().unwrap_or_default();
        let restart = group.restart_policy.as_ref();
        self.name(&[
            ("consul", group.consul.as_ref().is_some_and(is_special)),
            ("ephemeral_disk migrate", disk.migrate == Some(true)),
            (
                "restart render_templates",
                restart.is_some_and(|restart| restart.render_templates == Some(true)),
            ),
        ]);
        self.older_spelling(&[
            (
                "stop_after_client_disconnect",
                "stop_on_client_after",
                group.stop_after_client_disconnect.is_some(),
            ),
            ("max_client_disconnect", "lost_after", group.max_client_disconnect.is_some()),
            ("prevent_reschedule_on_lost", "replace = false", group.prevent_reschedule_on_lost == Some(true)),
        ]);
        group.update.iter().for_each(|block| self.update(block));
        group.networks.iter().for_each(|network| self.network(network));
        group.services.iter().for_each(|service| self.service(service));
    }

    /// There are no updates without a deployment to pace.
    fn update(&mut self, update: &UpdateStrategy) {
        let default = [Duration::default(), DEFAULT_STAGGER];
        self.name(&[("update stagger", update.stagger.is_some_and(|stagger| !default.contains(&stagger)))]);
    }

    fn network(&mut self, network: &NetworkResource) {
        if !matches!(network.mode.as_str(), "" | "host") {
            let mode = format!("network mode \"{}\"", network.mode);
            self.name(&[(mode.as_str(), true)]);
        }
        self.name(&[
            ("network dns", network.dns.is_some()),
            ("network cni", network.cni.is_some()),
            ("network hostname", !network.hostname.is_empty()),
            ("network device", !network.device.is_empty()),
        ]);
    }

    fn service(&mut self, service: &Service) {
        let service_name = format!("service \"{}\"", service.name);
        self.name(&[
            (if service.name.is_empty() { "service" } else { &service_name }, true),
            ("check", !service.checks.is_empty()),
            ("connect", service.connect.is_some()),
            ("service identity", service.identity.is_some()),
        ]);
    }

    fn task(&mut self, task: &Task) {
        if !task.driver.is_empty() && !DRIVERS.contains(&task.driver.as_str()) {
            let driver = format!("driver \"{}\"", task.driver);
            self.name(&[(driver.as_str(), true)]);
        }
        let restart = task.restart_policy.as_ref();
        self.name(&[
            ("kind", !task.kind.is_empty()),
            ("artifact", !task.artifacts.is_empty()),
            ("template", !task.templates.is_empty()),
            ("vault", task.vault.is_some()),
            ("consul", task.consul.as_ref().is_some_and(is_special)),
            ("secret", !task.secrets.is_empty()),
            ("action", !task.actions.is_empty()),
            ("schedule", task.schedule.is_some()),
            ("scaling", !task.scaling_policies.is_empty()),
            ("volume_mount", !task.volume_mounts.is_empty()),
            ("csi_plugin", task.csi_plugin_config.is_some()),
            (
                "restart render_templates",
                restart.is_some_and(|restart| restart.render_templates == Some(true)),
            ),
        ]);
        task.resources.iter().for_each(|resources| self.resources(resources));
        task.services.iter().for_each(|service| self.service(service));
    }

    fn resources(&mut self, resources: &Resources) {
        self.name(&[
            ("resources cores", resources.cores.unwrap_or(0) > 0),
            ("resources memory_max", resources.memory_max_mb.unwrap_or(0) != 0),
            ("resources secrets", resources.secrets_mb.unwrap_or(0) > 0),
            ("resources network", !resources.networks.is_empty()),
            ("resources device", !resources.devices.is_empty()),
            ("resources numa", resources.numa.is_some()),
        ]);
    }
}

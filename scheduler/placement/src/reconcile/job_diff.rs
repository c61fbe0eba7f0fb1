//! Which changes of a job are destructive, so that its allocations have to be replaced. All others are made in place.

use std::collections::BTreeMap;

use model::document::{
    ConsulConnect, Job, NetworkResource, Port, Resources, RestartPolicy, Service, Task, TaskGroup,
};

use crate::feasibility::resource_request::mode;

/// The definition of a group with its job.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    pub job: &'a Job,
    pub group: &'a TaskGroup,
}

/// Whether going from `old` to `new` needs new allocations.
pub fn is_destructive(old: Definition, new: Definition) -> bool {
    let (a, b) = (old.group, new.group);
    a.tasks.len() != b.tasks.len()
        || a.ephemeral_disk != b.ephemeral_disk
        || networks_differ(&a.networks, &b.networks)
        || consul_differs(a, b)
        || services_differ(&a.services, &b.services)
        || a.volumes != b.volumes
        || renders(&a.restart_policy) != renders(&b.restart_policy)
        || a.tasks.iter().any(|task| task_differs(old, new, task))
}

fn task_differs(old: Definition, new: Definition, a: &Task) -> bool {
    let Some(b) = new.group.tasks.iter().find(|task| task.name == a.name) else { return true };
    a.driver != b.driver
        || a.user != b.user
        || a.config != b.config
        || a.env != b.env
        || a.artifacts != b.artifacts
        || a.vault != b.vault
        || a.secrets != b.secrets
        || a.consul != b.consul
        || a.templates != b.templates
        || a.csi_plugin_config != b.csi_plugin_config
        || a.volume_mounts != b.volume_mounts
        || meta(old, a) != meta(new, b)
        || resources_differ(a.resources.as_ref(), b.resources.as_ref())
        || a.identity != b.identity
        || a.identities != b.identities
        || logs_are_off(a) != logs_are_off(b)
        || renders(&a.restart_policy) != renders(&b.restart_policy)
        || services_differ(&a.services, &b.services)
}

/// The metadata as the task sees it: the inner definition wins.
fn meta<'a>(of: Definition<'a>, task: &'a Task) -> BTreeMap<&'a str, &'a str> {
    let maps = [&of.job.meta, &of.group.meta, &task.meta];
    maps.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn resources_differ(a: Option<&Resources>, b: Option<&Resources>) -> bool {
    let default = Resources::default();
    let (a, b) = (a.unwrap_or(&default), b.unwrap_or(&default));
    a.cpu != b.cpu
        || a.cores != b.cores
        || a.memory_mb != b.memory_mb
        || a.memory_max_mb != b.memory_max_mb
        || a.secrets_mb != b.secrets_mb
        || a.devices != b.devices
        || a.numa != b.numa
        || networks_differ(&a.networks, &b.networks)
}

fn networks_differ(a: &[NetworkResource], b: &[NetworkResource]) -> bool {
    let differ = |(a, b): (&NetworkResource, &NetworkResource)| {
        mode(a) != mode(b)
            || a.mbits.unwrap_or(0) != b.mbits.unwrap_or(0)
            || a.hostname != b.hostname
            || a.dns != b.dns
            || a.cni != b.cni
            || a.isolation != b.isolation
            || ports(a) != ports(b)
    };
    a.len() != b.len() || a.iter().zip(b).any(differ)
}

/// Ports in no particular order: label, number if static, inner port, host network.
fn ports(network: &NetworkResource) -> Vec<(&str, Option<i64>, i64, &str)> {
    fn seen(port: &Port, number: Option<i64>) -> (&str, Option<i64>, i64, &str) {
        (&port.label, number, port.to, &port.host_network)
    }
    let fixed = network.reserved_ports.iter().map(|port| seen(port, Some(port.value)));
    let mut ports: Vec<_> = fixed.chain(network.dynamic_ports.iter().map(|port| seen(port, None))).collect();
    ports.sort_unstable();
    ports
}

fn consul_differs(a: &TaskGroup, b: &TaskGroup) -> bool {
    let namespace = |group: &TaskGroup| group.consul.as_ref().map_or(String::new(), |c| c.namespace.clone());
    if namespace(a) != namespace(b) {
        return true;
    }
    match (&a.consul, &b.consul) {
        (Some(a), Some(b)) => a.cluster != b.cluster || a.partition != b.partition,
        _ => false,
    }
}

/// Only for services that were part of a service mesh and still exist: their sidecar cannot change while it runs.
fn services_differ(a: &[Service], b: &[Service]) -> bool {
    let meshed = a.iter().filter_map(|service| Some((service, service.connect.as_ref()?)));
    meshed.into_iter().any(|(old, connect)| {
        let Some(new) = b.iter().find(|service| service.name == old.name) else { return false };
        let Some(kept) = &new.connect else { return true };
        old.port_label != new.port_label || old.cluster != new.cluster || connect_differs(connect, kept)
    })
}

fn connect_differs(a: &ConsulConnect, b: &ConsulConnect) -> bool {
    let sidecar_port = |connect: &ConsulConnect| connect.sidecar_service.as_ref().map(|s| s.port.clone());
    a.native != b.native
        || a.gateway != b.gateway
        || a.sidecar_task != b.sidecar_task
        || sidecar_port(a) != sidecar_port(b)
}

fn logs_are_off(task: &Task) -> bool {
    task.log_config.as_ref().and_then(|logs| logs.disabled).unwrap_or(false)
}

fn renders(policy: &Option<RestartPolicy>) -> bool {
    policy.as_ref().and_then(|policy| policy.render_templates).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use model::document::{
        Constraint, ConsulProxy, ConsulSidecarService, ConsulUpstream, Duration, LogConfig, ReschedulePolicy,
    };

    use super::*;

    fn job() -> Job {
        let resources = Resources { cpu: Some(500), memory_mb: Some(256), ..Resources::default() };
        let task = Task {
            name: "main".into(),
            driver: "exec".into(),
            resources: Some(resources),
            ..Task::default()
        };
        let port = |label: &str, value| Port { label: label.into(), value, ..Port::default() };
        let network = NetworkResource {
            reserved_ports: vec![port("static", 80)].into(),
            dynamic_ports: vec![port("one", 0), port("two", 0)].into(),
            ..NetworkResource::default()
        };
        let group = TaskGroup {
            name: Some("web".into()),
            tasks: vec![task].into(),
            networks: vec![network].into(),
            ..TaskGroup::default()
        };
        Job { task_groups: vec![group].into(), ..Job::default() }
    }

    fn destructive(change: impl FnOnce(&mut Job)) -> bool {
        let (old, mut new) = (job(), job());
        change(&mut new);
        let definition = |job| Definition { job, group: &job.task_groups[0] };
        let forth = is_destructive(definition(&old), definition(&new));
        assert_eq!(forth, is_destructive(definition(&new), definition(&old)), "both ways alike");
        forth
    }

    fn task(job: &mut Job) -> &mut Task {
        &mut job.task_groups[0].tasks[0]
    }

    fn network(job: &mut Job) -> &mut NetworkResource {
        &mut job.task_groups[0].networks[0]
    }

    /// B27-B29, B32-B35, B37.
    #[test]
    fn what_a_running_task_cannot_follow_is_destructive() {
        assert!(destructive(|job| network(job).reserved_ports[0].value = 81));
        assert!(destructive(|job| network(job).dynamic_ports[0].label = "three".into()));
        assert!(destructive(|job| network(job).dynamic_ports[0].to = 8080));
        assert!(destructive(|job| network(job).hostname = "a".into()));
        assert!(destructive(|job| network(job).isolation = "job".into()));
        assert!(destructive(|job| network(job).mode = "bridge".into()));
        assert!(destructive(|job| task(job).driver = "docker".into()));
        assert!(destructive(|job| _ = task(job).env.insert("A".into(), "1".into())));
        assert!(destructive(|job| _ = task(job).config.insert("image".into(), "a".into())));
        assert!(destructive(|job| task(job).user = "nobody".into()));
        assert!(destructive(|job| _ = job.meta.insert("a".into(), "b".into())));
        assert!(destructive(|job| task(job).resources.get_or_insert_default().memory_mb = Some(300)));
        assert!(destructive(|job| task(job).resources.get_or_insert_default().memory_max_mb = Some(512)));
        assert!(destructive(|job| task(job).resources.get_or_insert_default().cores = Some(1)));
        assert!(destructive(|job| task(job).name = "other".into()));
        assert!(destructive(|job| {
            let disabled = Some(true);
            task(job).log_config = Some(LogConfig { disabled, ..LogConfig::default() });
        }));
        assert!(destructive(|job| {
            job.task_groups[0].ephemeral_disk.get_or_insert_default().sticky = Some(true);
        }));
        assert!(destructive(|job| {
            task(job).restart_policy.get_or_insert_default().render_templates = Some(true);
        }));
    }

    /// B24, B25, B30, B31, B33, B35.
    #[test]
    fn the_rest_is_in_place() {
        assert!(!destructive(|_| {}));
        assert!(!destructive(|job| network(job).dynamic_ports.reverse()));
        assert!(!destructive(|job| network(job).mode = "host".into()));
        assert!(!destructive(|job| job.task_groups[0].count = Some(7)));
        assert!(!destructive(|job| task(job).kill_timeout = Some(Duration::from_secs(20))));
        assert!(!destructive(|job| job.constraints.push(Constraint::default())));
        assert!(!destructive(|job| task(job).restart_policy.get_or_insert_default().attempts = Some(9)));
        assert!(!destructive(|job| {
            job.task_groups[0].reschedule_policy = Some(ReschedulePolicy::default());
        }));
        assert!(!destructive(|job| task(job).log_config.get_or_insert_default().max_files = Some(3)));
        assert!(!destructive(|job| job.priority = Some(70)));
    }

    /// B36.
    #[test]
    fn of_a_mesh_only_what_is_wired_is_destructive() {
        let connected = |connect: Option<ConsulConnect>| {
            let mut job = job();
            job.task_groups[0].services =
                vec![Service { name: "web".into(), connect, ..Service::default() }].into();
            job
        };
        let sidecar = |port: &str, upstream: &str| {
            let upstream = ConsulUpstream { destination_name: upstream.into(), ..ConsulUpstream::default() };
            let proxy = ConsulProxy { upstreams: vec![upstream].into(), ..ConsulProxy::default() };
            let sidecar = ConsulSidecarService {
                port: port.into(),
                proxy: Some(proxy),
                ..ConsulSidecarService::default()
            };
            connected(Some(ConsulConnect { sidecar_service: Some(sidecar), ..ConsulConnect::default() }))
        };
        fn definition(job: &Job) -> Definition<'_> {
            Definition { job, group: &job.task_groups[0] }
        }
        let old = sidecar("9000", "db");
        let destructive = |new: &Job| is_destructive(definition(&old), definition(new));
        assert!(!destructive(&sidecar("9000", "cache")));
        assert!(destructive(&sidecar("9001", "db")));
        assert!(destructive(&connected(None)));
        assert!(destructive(&connected(Some(ConsulConnect::default()))));
    }

    /// B33: the same value seen by the task, from elsewhere.
    #[test]
    fn meta_is_compared_as_the_task_sees_it() {
        let (mut old, mut new) = (job(), job());
        old.meta.insert("a".into(), "1".into());
        new.meta.insert("a".into(), "2".into());
        new.task_groups[0].meta.insert("a".into(), "1".into());
        let definition = |job| Definition { job, group: &job.task_groups[0] };
        assert!(!is_destructive(definition(&old), definition(&new)));
    }
}

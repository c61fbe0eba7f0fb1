//! A task as a plugin gets it.

use std::path::Path;

use plugin::proto::base::{Core, Distances, NomadConfig, NomadDriverConfig, Topology};
use plugin::proto::driver as proto;

use crate::driver::{Limits, TaskConfig, TaskMount};
use crate::task::environment::ranges;

/// The ports that a driver may use for itself: Nomad's, since none of ours reads them.
const DRIVER_PORTS: (u32, u32) = (14_000, 14_512);

const MIB: i64 = 1024 * 1024;

/// What a driver may know of this node.
pub fn nomad_config(topology: Option<&model::document::NumaTopology>) -> NomadConfig {
    let topology = topology.map(|known| Topology {
        node_ids: known.nodes.iter().map(|id| *id as u32).collect(),
        distances: Some(Distances {
            dimension: known.distances.len() as u32,
            values: known.distances.iter().flat_map(|row| row.iter().map(|one| u32::from(*one))).collect(),
        }),
        cores: known.cores.iter().map(core).collect(),
        override_total_compute: known.override_total_compute,
        override_withhold_compute: known.override_withold_compute,
    });
    let driver =
        NomadDriverConfig { client_min_port: DRIVER_PORTS.0, client_max_port: DRIVER_PORTS.1, topology };
    NomadConfig { driver: Some(driver) }
}

fn core(core: &model::document::NumaCore) -> Core {
    Core {
        socket_id: core.socket_id.into(),
        node_id: core.node_id.into(),
        core_id: core.id.into(),
        core_grade: i32::from(!core.grade),
        disable: core.disable,
        base_speed: core.base_speed,
        max_speed: core.max_speed,
        guess_speed: core.guess_speed,
    }
}

/// Where the output and the network of a task are, for its plugin.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    pub stdout_path: String,
    pub stderr_path: String,
    /// Of the network that the plugin has made, if it has.
    pub network: Option<proto::NetworkIsolationSpec>,
}

/// `block` is the task's configuration, encoded.
pub fn task(id: &str, config: &TaskConfig, block: Vec<u8>, outside: Outside) -> proto::TaskConfig {
    let alloc_dir = config.dir.root.parent().unwrap_or(Path::new("/"));
    let names = &config.names;
    proto::TaskConfig {
        id: id.to_string(),
        name: config.task.clone(),
        msgpack_driver_config: block,
        env: config.env.clone(),
        device_env: config.device_env.clone(),
        resources: Some(resources(config)),
        mounts: config.mounts.iter().map(mount).chain(files(config)).collect(),
        devices: config.devices.iter().map(device).collect(),
        user: config.user.clone(),
        alloc_dir: text(alloc_dir),
        stdout_path: outside.stdout_path,
        stderr_path: outside.stderr_path,
        task_group_name: names.group.clone(),
        job_name: names.job_name.clone(),
        alloc_id: config.alloc_id.clone(),
        network_isolation_spec: config
            .network_namespace
            .as_ref()
            .map(|namespace| network(namespace, config, outside.network)),
        dns: config.resolv_conf.as_ref().map(|path| dns(&read(path))),
        job_id: names.job_id.clone(),
        namespace: names.namespace.clone(),
        node_name: names.node_name.clone(),
        node_id: names.node_id.clone(),
        parent_job_id: names.parent_job_id.clone(),
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn resources(config: &TaskConfig) -> proto::Resources {
    let Limits { cpu_mhz, memory_mb, memory_max_mb, node_cpu_mhz, .. } = config.limits;
    let port = |port: &model::document::PortMapping| proto::PortMapping {
        label: port.label.clone(),
        value: port.value as i32,
        to: port.to as i32,
        host_ip: port.host_ip.clone(),
    };
    let hard = if memory_max_mb > 0 { memory_max_mb } else { memory_mb };
    proto::Resources {
        allocated_resources: Some(proto::AllocatedTaskResources {
            cpu: Some(proto::AllocatedCpu { cpu_shares: cpu_mhz }),
            memory: Some(proto::AllocatedMemory { memory_mb, memory_max_mb }),
            networks: Vec::new(),
        }),
        linux_resources: Some(proto::LinuxResources {
            cpu_shares: config.limits.cpu_shares(),
            memory_limit_bytes: if memory_max_mb < 0 { 0 } else { hard * MIB },
            cpuset_cpus: ranges(&config.cores),
            percent_ticks: if node_cpu_mhz > 0 { cpu_mhz as f64 / node_cpu_mhz as f64 } else { 0.0 },
            ..proto::LinuxResources::default()
        }),
        ports: config.ports.iter().map(port).collect(),
    }
}

fn mount(mount: &TaskMount) -> proto::Mount {
    let propagation_mode = match mount.propagation {
        "rslave" => "host-to-task",
        "rshared" => "bidirectional",
        _ => "private",
    };
    proto::Mount {
        task_path: mount.task_path.clone(),
        host_path: text(&mount.host_path),
        readonly: mount.read_only,
        propagation_mode: propagation_mode.to_string(),
        selinux_label: mount.selinux_label.clone(),
        request_name: String::new(),
    }
}

/// The files by which a task finds names.
fn files(config: &TaskConfig) -> impl Iterator<Item = proto::Mount> {
    let named = [("/etc/hosts", &config.hosts_file), ("/etc/resolv.conf", &config.resolv_conf)];
    let found = named.into_iter().filter_map(|(task_path, path)| Some((task_path, text(path.as_ref()?))));
    let found: Vec<_> = found.collect();
    found.into_iter().map(|(task_path, host_path)| proto::Mount {
        task_path: task_path.to_string(),
        host_path,
        propagation_mode: "private".to_string(),
        ..proto::Mount::default()
    })
}

fn device(device: &crate::driver::TaskDevice) -> proto::Device {
    proto::Device {
        task_path: device.task_path.clone(),
        host_path: text(&device.host_path),
        cgroup_permissions: device.permissions.clone(),
    }
}

fn network(
    namespace: &Path,
    config: &TaskConfig,
    made: Option<proto::NetworkIsolationSpec>,
) -> proto::NetworkIsolationSpec {
    let mode = proto::NetworkMode::Group.into();
    let made = made.unwrap_or_default();
    let hosts = config.hosts_file.as_ref().and_then(|path| last_host(&read(path)));
    proto::NetworkIsolationSpec {
        mode,
        path: text(namespace),
        hosts_config: made.hosts_config.clone().or(hosts),
        labels: made.labels,
    }
}

/// The task's own line, which is the last of its file.
fn last_host(hosts: &str) -> Option<proto::HostsConfig> {
    let (address, hostname) = hosts.lines().last()?.split_once(' ')?;
    let is_own = !hostname.contains(' ') && !address.starts_with("ff") && hostname != "localhost";
    is_own.then(|| proto::HostsConfig { hostname: hostname.to_string(), address: address.to_string() })
}

/// What a file for the resolver says.
fn dns(text: &str) -> proto::DnsConfig {
    let mut dns = proto::DnsConfig::default();
    for line in text.lines() {
        let mut words = line.split_whitespace().map(str::to_string);
        match words.next().as_deref() {
            Some("nameserver") => dns.servers.extend(words.next()),
            Some("search") => dns.searches = words.collect(),
            Some("options") => dns.options = words.collect(),
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::task_config;

    #[test]
    fn a_task_is_described_with_its_resources_and_its_network() {
        let dir = tempfile::tempdir().unwrap();
        let (hosts, resolv) = (dir.path().join("hosts"), dir.path().join("resolv.conf"));
        std::fs::write(&hosts, crate::network::hosts::hosts("10.0.0.2", "web")).unwrap();
        std::fs::write(&resolv, "nameserver 1.1.1.1\nsearch a b\noptions ndots:2\n").unwrap();
        let config = TaskConfig {
            limits: Limits {
                cpu_mhz: 500,
                memory_mb: 64,
                memory_max_mb: 128,
                node_cpu_mhz: 2000,
                node_cores: 2,
            },
            network_namespace: Some("/run/netns/x".into()),
            hosts_file: Some(hosts),
            resolv_conf: Some(resolv),
            cores: vec![1, 2],
            ..task_config()
        };
        let task = task("id", &config, vec![0x80], Outside::default());
        let linux = task.resources.unwrap().linux_resources.unwrap();
        assert_eq!((linux.memory_limit_bytes, linux.cpuset_cpus.as_str()), (128 * MIB, "1-2"));
        assert_eq!((linux.cpu_shares, linux.percent_ticks), (500, 0.25));
        let network = task.network_isolation_spec.unwrap();
        let hosts = network.hosts_config.unwrap();
        assert_eq!((hosts.hostname.as_str(), hosts.address.as_str()), ("web", "10.0.0.2"));
        assert_eq!((network.mode, network.path.as_str()), (1, "/run/netns/x"));
        let dns = task.dns.unwrap();
        assert_eq!(
            (dns.servers, dns.searches.len(), dns.options),
            (vec!["1.1.1.1".into()], 2, vec!["ndots:2".into()])
        );
        let mounts: Vec<&str> = task.mounts.iter().map(|mount| mount.task_path.as_str()).collect();
        assert_eq!(mounts, ["/etc/hosts", "/etc/resolv.conf"]);
        assert!(task.alloc_dir.ends_with(crate::testing::ALLOC_ID));
    }
}

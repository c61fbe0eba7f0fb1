//! What the engine is asked to make for a task. Pure, but for links of files that are followed.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, DeviceMapping, EndpointIpamConfig, EndpointSettings, HealthConfig, HostConfig,
    HostConfigCgroupnsModeEnum, HostConfigLogConfig, NetworkingConfig, PortBinding, PortMap,
    ResourcesUlimits,
};

use super::super::containers::parts::{self, MIB, quota};
use super::mounts;
use super::settings::{Settings, logging};
use crate::driver::capabilities;
use crate::driver::{Limits, TaskConfig, TaskDevice, Values};
use crate::task::environment::ranges;

/// The variable by which a plugin for GPUs of Nvidia gives them to a container, and which their runtime reads.
const NVIDIA: &str = "NVIDIA_VISIBLE_DEVICES";

/// # Errors
/// Names the key whose value is not possible or not allowed.
pub fn body(settings: &Settings, config: &TaskConfig, image: &str) -> Result<ContainerCreateBody, String> {
    let keys = &config.config;
    let shared = shared_network(config)?;
    let mut host = HostConfig {
        network_mode: Some(network_mode(config, shared)),
        log_config: Some(log_config(settings, keys)?),
        devices: Some(devices(config)),
        readonly_rootfs: Some(keys.boolean("readonly_rootfs")),
        init: Some(keys.boolean("init")),
        dns: some_texts(keys, "dns_servers").filter(|_| !shared),
        dns_search: some_texts(keys, "dns_search_domains").filter(|_| !shared),
        dns_options: some_texts(keys, "dns_options").filter(|_| !shared),
        extra_hosts: some_texts(keys, "extra_hosts").filter(|_| !shared),
        group_add: some_texts(keys, "group_add"),
        security_opt: some_texts(keys, "security_opt"),
        sysctls: some_map(keys, "sysctl"),
        storage_opt: some_map(keys, "storage_opt"),
        volume_driver: text(keys, "volume_driver"),
        ..HostConfig::default()
    };
    limits(settings, config, &mut host)?;
    isolation(settings, keys, &mut host)?;
    if host.runtime.is_none() && config.device_env.contains_key(NVIDIA) {
        host.runtime = Some(settings.nvidia_runtime.clone());
    }
    mounts::add(settings, config, &mut host)?;
    name_files(config, shared, &mut host);
    // Those of a group are mapped to its namespace.
    let (exposed, bindings) = if shared { Default::default() } else { ports(config)? };
    host.port_bindings = Some(bindings);
    let disabled = keys.block("healthchecks").is_some_and(|block| block.boolean("disable"));
    let none = || HealthConfig { test: Some(vec!["NONE".to_string()]), ..HealthConfig::default() };
    Ok(ContainerCreateBody {
        image: Some(image.to_string()),
        cmd: command(keys),
        entrypoint: some_texts(keys, "entrypoint"),
        working_dir: text(keys, "work_dir"),
        hostname: text(keys, "hostname"),
        user: Some(config.user.clone()).filter(|user| !user.is_empty()),
        env: Some(config.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        labels: Some(parts::labels(&settings.extra_labels, config).into_iter().collect()),
        open_stdin: Some(keys.boolean("interactive")),
        tty: Some(keys.boolean("tty")),
        healthcheck: disabled.then(none),
        exposed_ports: Some(exposed),
        networking_config: networking(keys)?,
        host_config: Some(host),
        ..ContainerCreateBody::default()
    })
}

/// True when the container is in the network of its group, which another container has.
///
/// # Errors
/// Names the key that does not go with it.
pub fn shared_network(config: &TaskConfig) -> Result<bool, String> {
    let keys = &config.config;
    if config.network_namespace.is_none() {
        return Ok(false);
    }
    match keys.text("network_mode") {
        None => {}
        // Such a task leaves the group's network.
        Some("host") => return Ok(false),
        Some(mode) => {
            let why = "the group has a network of its own; leave it out, or use \"host\"";
            return Err(format!("network_mode \"{mode}\": {why}"));
        }
    }
    match keys.text("hostname") {
        None => Ok(true),
        Some(_) => {
            Err("hostname: the group has a network of its own; set it in its network block".to_string())
        }
    }
}

fn network_mode(config: &TaskConfig, shared: bool) -> String {
    match shared {
        true => format!("container:{}", super::pause::name(&config.alloc_id)),
        false => config.config.text("network_mode").unwrap_or("default").to_string(),
    }
}

/// A container in the network of another one has the files of that one, which know nothing of the task.
fn name_files(config: &TaskConfig, shared: bool, host: &mut HostConfig) {
    let own_dns = ["dns_servers", "dns_search_domains", "dns_options"];
    let own_dns = !shared && own_dns.iter().any(|key| !config.config.texts(key).is_empty());
    let hosts = config.hosts_file.as_ref().filter(|_| shared);
    let resolv = config.resolv_conf.as_ref().filter(|_| !own_dns);
    for (file, inside) in [(hosts, "/etc/hosts"), (resolv, "/etc/resolv.conf")] {
        if let Some(file) = file {
            host.binds.get_or_insert_default().push(format!("{}:{inside}", file.display()));
        }
    }
}

fn text(keys: &Values, key: &str) -> Option<String> {
    keys.text(key).map(str::to_string)
}

fn some_texts(keys: &Values, key: &str) -> Option<Vec<String>> {
    Some(keys.texts(key).to_vec()).filter(|texts| !texts.is_empty())
}

fn some_map(keys: &Values, key: &str) -> Option<HashMap<String, String>> {
    Some(keys.map(key).into_iter().collect()).filter(|map: &HashMap<_, _>| !map.is_empty())
}

/// None leaves it to the image.
fn command(keys: &Values) -> Option<Vec<String>> {
    let words: Vec<String> =
        text(keys, "command").into_iter().chain(keys.texts("args").iter().cloned()).collect();
    Some(words).filter(|words| !words.is_empty())
}

fn log_config(settings: &Settings, keys: &Values) -> Result<HostConfigLogConfig, String> {
    let logging = match keys.block("logging") {
        Some(block) => logging(block)?,
        None => settings.logging.clone(),
    };
    Ok(HostConfigLogConfig { typ: Some(logging.kind), config: Some(logging.config.into_iter().collect()) })
}

/// Those of the job's `config`, and those that the task was given.
fn devices(config: &TaskConfig) -> Vec<DeviceMapping> {
    let device = |block: &Values| DeviceMapping {
        path_on_host: text(block, "host_path"),
        path_in_container: text(block, "container_path").or_else(|| text(block, "host_path")),
        cgroup_permissions: Some(block.text("cgroup_permissions").unwrap_or("rwm").to_string()),
    };
    let given = |device: &TaskDevice| DeviceMapping {
        path_on_host: Some(device.host_path.display().to_string()),
        path_in_container: Some(device.task_path.clone()),
        cgroup_permissions: Some(device.permissions.clone()),
    };
    config.config.blocks("devices").iter().map(device).chain(config.devices.iter().map(given)).collect()
}

fn limits(settings: &Settings, config: &TaskConfig, host: &mut HostConfig) -> Result<(), String> {
    let keys = &config.config;
    memory(&config.limits, keys.number("memory_hard_limit").unwrap_or_default(), host)?;
    host.cpu_shares = Some(config.limits.cpu_shares());
    if !config.cores.is_empty() {
        host.cpuset_cpus = Some(ranges(&config.cores));
    }
    let period = keys.number("cpu_cfs_period").unwrap_or(0);
    if !(0..=1_000_000).contains(&period) {
        return Err("cpu_cfs_period must be between 0 and 1000000".to_string());
    }
    if keys.boolean("cpu_hard_limit") {
        let period = if period == 0 { 100_000 } else { period };
        host.cpu_period = Some(period);
        host.cpu_quota = Some(quota(&config.limits, period)?);
    }
    let pids = keys.number("pids_limit").filter(|limit| *limit > 0);
    host.pids_limit = match (pids, settings.pids_limit) {
        (Some(wanted), Some(most)) if wanted > most => {
            return Err(format!("pids_limit {wanted} is above that of this node, {most}"));
        }
        (wanted, most) => wanted.or(most).or(Some(-1)),
    };
    host.oom_score_adj = Some(keys.number("oom_score_adj").unwrap_or(settings.oom_score_adj));
    if let Some(size) = keys.number("shm_size") {
        if size < 0 {
            return Err("shm_size must be a number of bytes".to_string());
        }
        host.shm_size = Some(size);
    }
    host.ulimits = Some(keys.map("ulimit").iter().map(ulimit).collect::<Result<_, _>>()?);
    Ok(())
}

/// A hard limit beside `memory` makes that a reservation. Nothing is swapped.
fn memory(limits: &Limits, hard_mb: i64, host: &mut HostConfig) -> Result<(), String> {
    let Limits { memory_mb, memory_max_mb, .. } = *limits;
    if memory_max_mb < 0 && hard_mb == 0 {
        host.memory_reservation = Some(memory_mb * MIB);
        return Ok(());
    }
    let hard = hard_mb.max(memory_max_mb);
    if hard <= 0 {
        host.memory = Some(memory_mb * MIB);
    } else if hard < memory_mb {
        return Err(format!("memory_hard_limit {hard} is below memory, {memory_mb}"));
    } else {
        host.memory = Some(hard * MIB);
        host.memory_reservation = Some(memory_mb * MIB);
    }
    host.memory_swap = host.memory;
    Ok(())
}

fn ulimit((name, text): (&String, &String)) -> Result<ResourcesUlimits, String> {
    let (soft, hard) = parts::ulimit(name, text)?;
    Ok(ResourcesUlimits { name: Some(name.clone()), soft: Some(soft), hard: Some(hard) })
}

fn isolation(settings: &Settings, keys: &Values, host: &mut HostConfig) -> Result<(), String> {
    if keys.boolean("privileged") {
        if !settings.allow_privileged {
            return Err("Docker privileged mode is disabled on this Nomad agent".to_string());
        }
        host.privileged = Some(true);
    }
    let (add, drop) =
        capabilities::delta(&settings.allow_caps, keys.texts("cap_add"), keys.texts("cap_drop"))?;
    (host.cap_add, host.cap_drop) = (Some(add), Some(drop));
    host.pid_mode = mode(settings, keys, "pid", "pid_mode", &[])?;
    host.ipc_mode = mode(settings, keys, "ipc", "ipc_mode", &["private", "shareable", "none"])?;
    host.uts_mode = mode(settings, keys, "uts", "uts_mode", &[])?;
    host.userns_mode = mode(settings, keys, "userns", "userns_mode", &[])?;
    host.cgroupns_mode = match keys.text("cgroupns") {
        None => None,
        Some("host") => Some(HostConfigCgroupnsModeEnum::HOST),
        Some("private") => Some(HostConfigCgroupnsModeEnum::PRIVATE),
        Some(other) => return Err(format!("cgroupns must be \"host\" or \"private\", not \"{other}\"")),
    };
    if let Some(runtime) = keys.text("runtime") {
        if !settings.allow_runtimes.iter().any(|allowed| allowed == runtime) {
            return Err(format!("requested runtime \"{runtime}\" is not allowed"));
        }
        host.runtime = Some(runtime.to_string());
    }
    Ok(())
}

/// A mode that reaches out of the container has to be listed by the operator.
fn mode(
    settings: &Settings,
    keys: &Values,
    namespace: &str,
    key: &str,
    own: &[&str],
) -> Result<Option<String>, String> {
    let Some(mode) = keys.text(key) else { return Ok(None) };
    let listed = settings
        .allowed_modes
        .get(namespace)
        .is_some_and(|modes| modes.iter().any(|pattern| base::matches_glob(pattern, mode)));
    if own.contains(&mode) || listed {
        return Ok(Some(mode.to_string()));
    }
    Err(format!("{key} \"{mode}\" is not among the allowed_modes of the plugin on this node"))
}

/// Ports of the group that the container has: those inside, and where they are on the node.
fn ports(config: &TaskConfig) -> Result<(Vec<String>, PortMap), String> {
    let (mut exposed, mut bindings) = (Vec::new(), PortMap::new());
    for label in config.config.texts("ports") {
        let (port, inside) = parts::port(config, label)?;
        let binding =
            PortBinding { host_ip: Some(port.host_ip.clone()), host_port: Some(port.value.to_string()) };
        for protocol in ["tcp", "udp"] {
            let key = format!("{inside}/{protocol}");
            exposed.push(key.clone());
            bindings.entry(key).or_default().get_or_insert_default().push(binding.clone());
        }
    }
    exposed.sort_unstable();
    exposed.dedup();
    Ok((exposed, bindings))
}

/// Addresses and names can be chosen in networks that users have made.
fn networking(keys: &Values) -> Result<Option<NetworkingConfig>, String> {
    let aliases = keys.texts("network_aliases");
    let [ipv4, ipv6, mac] = ["ipv4_address", "ipv6_address", "mac_address"].map(|key| text(keys, key));
    if aliases.is_empty() && ipv4.is_none() && ipv6.is_none() && mac.is_none() {
        return Ok(None);
    }
    let mode = keys.text("network_mode").unwrap_or("default");
    if matches!(mode, "default" | "bridge" | "host" | "none") || mode.starts_with("container:") {
        let keys = "network_aliases, ipv4_address, ipv6_address and mac_address";
        return Err(format!("{keys} need a network of one's own as network_mode, not \"{mode}\""));
    }
    let ipam = EndpointIpamConfig { ipv4_address: ipv4, ipv6_address: ipv6, link_local_ips: None };
    let endpoint = EndpointSettings {
        aliases: Some(aliases.to_vec()),
        ipam_config: Some(ipam),
        mac_address: mac,
        ..EndpointSettings::default()
    };
    let endpoints_config = Some(HashMap::from([(mode.to_string(), endpoint)]));
    Ok(Some(NetworkingConfig { endpoints_config }))
}

#[cfg(test)]
mod tests;

//! The node part of the settings.

use std::path::Path;

use anyhow::Context;
use node::csi::CsiSettings;
use node::settings::{Capacity, GcSettings, Reserved};

use super::{ProcessContext, advertised};
use crate::settings::{AddressFamily, AgentSettings, clouds_with_addresses};

/// Default settings of Connect proxies; jobs read them as `${meta.connect.…}`.
const CONNECT_META: [(&str, &str); 6] = [
    ("connect.sidecar_image", ENVOY_IMAGE),
    ("connect.gateway_image", ENVOY_IMAGE),
    ("connect.log_level", "info"),
    ("connect.proxy_concurrency", "1"),
    ("connect.transparent_proxy.default_uid", "101"),
    ("connect.transparent_proxy.default_outbound_port", "15001"),
];
const ENVOY_IMAGE: &str = "docker.io/envoyproxy/envoy:v${NOMAD_envoy_version}";

pub(super) fn node_settings(
    settings: &AgentSettings,
    process: &ProcessContext<'_>,
    home: &Path,
) -> anyhow::Result<node::NodeSettings> {
    let client = &settings.client;
    let http = advertised(settings.advertise.http.as_deref(), settings.http_ip(), settings.ports.http)?;
    let state_dir = client.state_dir.clone().unwrap_or_else(|| home.join("client"));
    Ok(node::NodeSettings {
        alloc_dir: client.alloc_dir.clone().unwrap_or_else(|| home.join("alloc")),
        ephemeral_disk_quota: client.ephemeral_disk_quota,
        dev: settings.dev,
        ephemeral: settings.dev && settings.data_dir.is_none(),
        region: settings.region.clone(),
        datacenter: settings.datacenter.clone(),
        node_name: settings.name.clone(),
        node_class: client.node_class.clone(),
        node_pool: client.node_pool.clone(),
        meta: CONNECT_META
            .map(|(key, value)| (key.into(), value.into()))
            .into_iter()
            .chain(client.meta.clone())
            .collect(),
        http_address: http,
        tls_http: settings.tls.http,
        tls: process.tls.clone(),
        reserved: Reserved {
            cpu_mhz: client.reserved.cpu_mhz,
            memory_mib: client.reserved.memory_mib,
            disk_mib: client.reserved.disk_mib,
            ports: client.reserved.ports.clone(),
            cores: client.reserved.cores.clone(),
        },
        reservable_cores: client.reservable_cores.clone(),
        disable_remote_exec: client.disable_remote_exec,
        capacity: Capacity {
            cpu_mhz: client.cpu_total_compute,
            memory_mib: client.memory_total_mb,
            disk_mib: client.disk_total_mb,
        },
        network_interface: client.network_interface.clone(),
        network_speed_mbits: client.network_speed,
        ipv6_first: client.preferred_address_family == AddressFamily::Ipv6,
        service_discovery: client.nomad_service_discovery,
        id_of_host: client.id_of_host,
        network: client.network.clone(),
        dns: client.dns.clone(),
        min_dynamic_port: client.min_dynamic_port,
        max_dynamic_port: client.max_dynamic_port,
        max_kill_timeout: client.max_kill_timeout.to_std(),
        drivers: node::drivers::BUILTIN.to_vec(),
        driver_filter: client.drivers.clone(),
        fingerprint_filter: client.fingerprints.clone(),
        clouds: clouds_with_addresses(&client.clouds, |name| std::env::var(name).ok()),
        host_volumes: client.host_volumes.clone(),
        host_volumes_dir: client.host_volumes_dir.clone().unwrap_or_else(|| state_dir.join("host_volumes")),
        host_volume_plugin_dir: client
            .host_volume_plugin_dir
            .clone()
            .unwrap_or_else(|| home.join("host_volume_plugins")),
        csi: CsiSettings::usual(),
        gc_volumes_on_node_gc: client.gc_volumes_on_node_gc,
        state_dir,
        plugins: settings.plugins.clone(),
        plugin_dir: settings.plugin_dir().unwrap_or_else(|| home.join("plugins")),
        external_plugins: settings.external_plugins.clone(),
        executor_program: std::env::current_exe().context("this program cannot find itself")?,
        cgroup_parent: client.cgroup_parent.clone(),
        chroot_env: client.chroot_env.clone(),
        denied_users: client.denied_users.clone(),
        dynamic_users: client.dynamic_users.clone(),
        log_sinks: client.log_sinks.clone(),
        default_ineligible: client.default_ineligible,
        node_max_allocs: client.node_max_allocs,
        gc: GcSettings {
            interval: client.gc_interval.to_std(),
            disk_usage_percent_max: client.gc_disk_usage_threshold,
            inode_usage_percent_max: client.gc_inode_usage_threshold,
            allocs_max: client.gc_max_allocs as usize,
            parallel_destroys: client.gc_parallel_destroys as usize,
        },
        consul: None,
        vaults: super::vault::settings(settings),
        templates: client.templates.clone(),
        artifacts: client.artifacts.with_environment(|name| std::env::var(name).ok()),
        common_plugin_dir: client.common_plugin_dir.clone().unwrap_or_else(|| home.join("common_plugins")),
        task_open_files: process.open_files,
        intro_token: client.intro_token.clone(),
        log: process.log.clone(),
        debug: settings.enable_debug,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::live_config::{ConfigSources, LiveConfig};
    use super::*;

    #[test]
    fn directories_are_below_the_data_directory_by_default() {
        let mut settings = AgentSettings::dev();
        settings.client.alloc_dir = Some("/elsewhere".into());
        let sources =
            ConfigSources { read: Box::new(|| Ok(AgentSettings::dev())), set_log_level: Box::new(|_| ()) };
        let config = Arc::new(LiveConfig::new(settings.clone(), "/data".into(), sources, None));
        let process =
            ProcessContext { log: &monitor::Monitor::default(), open_files: Some(9), config, tls: None };
        let node = super::node_settings(&settings, &process, Path::new("/data")).unwrap();
        assert_eq!(node.state_dir, Path::new("/data/client"));
        assert_eq!(node.alloc_dir, Path::new("/elsewhere"));
        assert_eq!(
            (node.http_address.as_str(), &node.plugins["raw_exec"]["enabled"]),
            ("127.0.0.1:4646", &true.into())
        );
    }
}

//! Maps the keys of configuration files to fields of the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jobspec::Diagnostics;
use jobspec::config::Section;
use keyring::IntroductionSettings;
use node::settings::HostVolume;

use super::unsupported::Refused;
use super::value::{set, set_map, set_option};
use super::{
    AgentSettings, ClientSettings, LimitSettings, ReservedSettings, ServerSettings, cluster, plugins,
    unsupported,
};

/// Merges a file into the settings.
///
/// # Errors
/// Every unsupported key, and of each block the first that is unknown or of a wrong type, with their positions.
pub(super) fn file(settings: &mut AgentSettings, top: Section) -> Result<(), Diagnostics> {
    let mut refused = Refused::default();
    let merged = merge(settings, top, &mut refused);
    refused.finish(merged)
}

fn merge(settings: &mut AgentSettings, mut top: Section, refused: &mut Refused) -> Result<(), Diagnostics> {
    set(&mut top, "region", &mut settings.region)?;
    set(&mut top, "datacenter", &mut settings.datacenter)?;
    set(&mut top, "name", &mut settings.name)?;
    set_option(&mut top, "data_dir", &mut settings.data_dir)?;
    set(&mut top, "log_level", &mut settings.log.level)?;
    set(&mut top, "log_json", &mut settings.log.json)?;
    addresses(settings, &mut top)?;
    for section in top.sections("server")? {
        let read = server(&mut settings.server, section, refused);
        refused.also(read);
    }
    for section in top.sections("autopilot")? {
        let read = cluster::autopilot(&mut settings.autopilot, section, refused);
        refused.also(read);
    }
    set(&mut top, "leave_on_terminate", &mut settings.leave_on_terminate)?;
    set(&mut top, "leave_on_interrupt", &mut settings.leave_on_interrupt)?;
    for section in top.sections("client")? {
        let read = client(&mut settings.client, section, refused);
        refused.also(read);
    }
    for section in top.sections("plugin")? {
        let read = plugins::read(&mut settings.plugins, section, refused);
        refused.also(read);
    }
    for section in top.sections("limits")? {
        let read = limits(&mut settings.limits, section, refused);
        refused.also(read);
    }
    for mut section in top.sections("http_api_response_headers")? {
        set_map(&mut section, &mut settings.response_headers)?;
    }
    for section in top.sections("telemetry")? {
        let read = telemetry(settings, section, refused);
        refused.also(read);
    }
    unsupported::top(&mut top, &mut settings.notes, refused)?;
    top.finish()
}

fn addresses(settings: &mut AgentSettings, top: &mut Section) -> Result<(), Diagnostics> {
    set(top, "bind_addr", &mut settings.bind_addr)?;
    for mut section in top.sections("ports")? {
        set(&mut section, "http", &mut settings.ports.http)?;
        set(&mut section, "rpc", &mut settings.ports.rpc)?;
        set(&mut section, "serf", &mut settings.ports.serf)?;
        section.finish()?;
    }
    for mut section in top.sections("addresses")? {
        set_option(&mut section, "http", &mut settings.addresses.http)?;
        set_option(&mut section, "rpc", &mut settings.addresses.rpc)?;
        set_option(&mut section, "serf", &mut settings.addresses.serf)?;
        section.finish()?;
    }
    for mut section in top.sections("advertise")? {
        set_option(&mut section, "http", &mut settings.advertise.http)?;
        set_option(&mut section, "rpc", &mut settings.advertise.rpc)?;
        set_option(&mut section, "serf", &mut settings.advertise.serf)?;
        section.finish()?;
    }
    Ok(())
}

fn limits(
    limits: &mut LimitSettings,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    set(&mut section, "http_max_conns_per_client", &mut limits.http_max_conns_per_client)?;
    set(&mut section, "rpc_max_conns_per_client", &mut limits.rpc_max_conns_per_client)?;
    set(&mut section, "rpc_handshake_timeout", &mut limits.rpc_handshake_timeout)?;
    unsupported::limits(&mut section, refused);
    section.finish()
}

fn telemetry(
    settings: &mut AgentSettings,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    set(&mut section, "prometheus_metrics", &mut settings.prometheus_metrics)?;
    settings.notes.extend(unsupported::telemetry(section, refused)?);
    Ok(())
}

/// `false` is what nobody asked for: it does not switch off what `-dev` or an earlier file did switch on.
fn enabled(section: &mut Section) -> Result<bool, Diagnostics> {
    let mut enabled = false;
    set(section, "enabled", &mut enabled)?;
    Ok(enabled)
}

fn server(
    server: &mut ServerSettings,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    server.enabled |= enabled(&mut section)?;
    set(&mut section, "bootstrap_expect", &mut server.bootstrap_expect)?;
    set_option(&mut section, "num_schedulers", &mut server.num_schedulers)?;
    set(&mut section, "heartbeat_grace", &mut server.heartbeat_grace)?;
    set(&mut section, "min_heartbeat_ttl", &mut server.min_heartbeat_ttl)?;
    set(&mut section, "job_gc_interval", &mut server.garbage.every)?;
    set(&mut section, "job_gc_threshold", &mut server.garbage.jobs_after)?;
    set(&mut section, "node_gc_threshold", &mut server.garbage.nodes_after)?;
    set(&mut section, "scrub_interval", &mut server.scrub_interval)?;
    set_option(&mut section, "encrypt", &mut server.encrypt)?;
    cluster::joins(server, &mut section)?;
    for section in section.sections("server_join")? {
        cluster::server_join(server, section)?;
    }
    for section in section.sections("client_introduction")? {
        refused.also(introduction(&mut server.introduction, section));
    }
    unsupported::server(&mut section, refused);
    section.finish()
}

fn introduction(settings: &mut IntroductionSettings, mut section: Section) -> Result<(), Diagnostics> {
    set(&mut section, "enforcement", &mut settings.enforcement)?;
    set(&mut section, "default_identity_ttl", &mut settings.default_ttl)?;
    set(&mut section, "max_identity_ttl", &mut settings.max_ttl)?;
    section.finish()
}

fn client(
    client: &mut ClientSettings,
    mut section: Section,
    refused: &mut Refused,
) -> Result<(), Diagnostics> {
    client.enabled |= enabled(&mut section)?;
    list(&mut section, "servers", &mut client.servers)?;
    for mut join in section.sections("server_join")? {
        list(&mut join, "retry_join", &mut client.servers)?;
        unsupported::server_join(&mut join, refused);
        join.finish()?;
    }
    set_option(&mut section, "state_dir", &mut client.state_dir)?;
    set_option(&mut section, "alloc_dir", &mut client.alloc_dir)?;
    set(&mut section, "node_class", &mut client.node_class)?;
    set(&mut section, "node_pool", &mut client.node_pool)?;
    for mut meta in section.sections("meta")? {
        set_map(&mut meta, &mut client.meta)?;
    }
    for mut options in section.sections("options")? {
        set_map(&mut options, &mut client.options)?;
    }
    for section in section.sections("host_volume")? {
        host_volumes(&mut client.host_volumes, section)?;
    }
    for section in section.sections("reserved")? {
        reserved(&mut client.reserved, section)?;
    }
    set(&mut section, "network_interface", &mut client.network_interface)?;
    set(&mut section, "cpu_total_compute", &mut client.cpu_total_compute)?;
    set(&mut section, "memory_total_mb", &mut client.memory_total_mb)?;
    set(&mut section, "disk_total_mb", &mut client.disk_total_mb)?;
    set(&mut section, "min_dynamic_port", &mut client.min_dynamic_port)?;
    set(&mut section, "max_dynamic_port", &mut client.max_dynamic_port)?;
    set(&mut section, "max_kill_timeout", &mut client.max_kill_timeout)?;
    set(&mut section, "gc_interval", &mut client.gc_interval)?;
    set(&mut section, "gc_disk_usage_threshold", &mut client.gc_disk_usage_threshold)?;
    set(&mut section, "gc_inode_usage_threshold", &mut client.gc_inode_usage_threshold)?;
    set(&mut section, "gc_max_allocs", &mut client.gc_max_allocs)?;
    set(&mut section, "node_max_allocs", &mut client.node_max_allocs)?;
    set(&mut section, "default_ineligible", &mut client.default_ineligible)?;
    set(&mut section, "intro_token", &mut client.intro_token)?;
    unsupported::client(&mut section, refused);
    section.finish()
}

/// One volume by its label, or in JSON some by their keys.
fn host_volumes(volumes: &mut BTreeMap<String, HostVolume>, mut section: Section) -> Result<(), Diagnostics> {
    let Some(name) = section.labels.first().cloned() else {
        for name in section.names() {
            for inner in section.sections(&name)? {
                host_volume(volumes, name.clone(), inner)?;
            }
        }
        return section.finish();
    };
    host_volume(volumes, name, section)
}

fn host_volume(
    volumes: &mut BTreeMap<String, HostVolume>,
    name: String,
    mut section: Section,
) -> Result<(), Diagnostics> {
    let mut path = PathBuf::new();
    let mut read_only = false;
    set(&mut section, "path", &mut path)?;
    set(&mut section, "read_only", &mut read_only)?;
    if name.is_empty() || !path.is_absolute() {
        let text = format!("host_volume \"{name}\": expected a name, and a path that begins with /");
        return Err(section.wrong(text));
    }
    volumes.insert(name, HostVolume { path, read_only });
    section.finish()
}

fn list(section: &mut Section, key: &str, field: &mut Vec<String>) -> Result<(), Diagnostics> {
    if let Some(items) = section.take(key)? {
        *field = items;
    }
    Ok(())
}

fn reserved(reserved: &mut ReservedSettings, mut section: Section) -> Result<(), Diagnostics> {
    set(&mut section, "cpu", &mut reserved.cpu_mhz)?;
    set(&mut section, "memory", &mut reserved.memory_mib)?;
    set(&mut section, "disk", &mut reserved.disk_mib)?;
    set(&mut section, "cores", &mut reserved.cores)?;
    set(&mut section, "reserved_ports", &mut reserved.ports)?;
    section.finish()
}

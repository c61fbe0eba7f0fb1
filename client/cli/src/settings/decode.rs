//! Names of the configuration language to fields of the settings.

use jobspec::Diagnostics;
use jobspec::config::Section;

use super::word::{map, maybe, word};
use super::{
    ClientSettings, LimitSettings, ReservedSettings, ServerSettings, Settings, cluster, plugins, refused,
};

/// Lays a file over the settings.
///
/// # Errors
/// What is not known, not supported or of a wrong kind, with its position.
pub fn file(settings: &mut Settings, mut top: Section) -> Result<(), Diagnostics> {
    word(&mut top, "region", &mut settings.region)?;
    word(&mut top, "datacenter", &mut settings.datacenter)?;
    word(&mut top, "name", &mut settings.name)?;
    maybe(&mut top, "data_dir", &mut settings.data_dir)?;
    word(&mut top, "log_level", &mut settings.log.level)?;
    word(&mut top, "log_json", &mut settings.log.json)?;
    addresses(settings, &mut top)?;
    for section in top.sections("server")? {
        server(&mut settings.server, section)?;
    }
    for section in top.sections("autopilot")? {
        cluster::autopilot(&mut settings.autopilot, section)?;
    }
    word(&mut top, "leave_on_terminate", &mut settings.leave_on_terminate)?;
    word(&mut top, "leave_on_interrupt", &mut settings.leave_on_interrupt)?;
    for section in top.sections("client")? {
        client(&mut settings.client, section)?;
    }
    for section in top.sections("plugin")? {
        plugins::read(&mut settings.plugins, section)?;
    }
    for section in top.sections("limits")? {
        limits(&mut settings.limits, section)?;
    }
    for section in top.sections("telemetry")? {
        telemetry(settings, section)?;
    }
    refused::top(&mut top, &mut settings.notes)?;
    top.finish()
}

fn addresses(settings: &mut Settings, top: &mut Section) -> Result<(), Diagnostics> {
    word(top, "bind_addr", &mut settings.bind_addr)?;
    for mut section in top.sections("ports")? {
        word(&mut section, "http", &mut settings.ports.http)?;
        word(&mut section, "rpc", &mut settings.ports.rpc)?;
        word(&mut section, "serf", &mut settings.ports.serf)?;
        section.finish()?;
    }
    for mut section in top.sections("addresses")? {
        maybe(&mut section, "http", &mut settings.addresses.http)?;
        maybe(&mut section, "rpc", &mut settings.addresses.rpc)?;
        maybe(&mut section, "serf", &mut settings.addresses.serf)?;
        section.finish()?;
    }
    for mut section in top.sections("advertise")? {
        maybe(&mut section, "http", &mut settings.advertise.http)?;
        maybe(&mut section, "rpc", &mut settings.advertise.rpc)?;
        maybe(&mut section, "serf", &mut settings.advertise.serf)?;
        section.finish()?;
    }
    Ok(())
}

fn limits(limits: &mut LimitSettings, mut section: Section) -> Result<(), Diagnostics> {
    word(&mut section, "http_max_conns_per_client", &mut limits.http_max_conns_per_client)?;
    word(&mut section, "rpc_max_conns_per_client", &mut limits.rpc_max_conns_per_client)?;
    word(&mut section, "rpc_handshake_timeout", &mut limits.rpc_handshake_timeout)?;
    refused::limits(&mut section)?;
    section.finish()
}

fn telemetry(settings: &mut Settings, mut section: Section) -> Result<(), Diagnostics> {
    word(&mut section, "prometheus_metrics", &mut settings.prometheus_metrics)?;
    settings.notes.extend(refused::telemetry(section)?);
    Ok(())
}

fn server(server: &mut ServerSettings, mut section: Section) -> Result<(), Diagnostics> {
    word(&mut section, "enabled", &mut server.enabled)?;
    word(&mut section, "bootstrap_expect", &mut server.bootstrap_expect)?;
    maybe(&mut section, "num_schedulers", &mut server.num_schedulers)?;
    word(&mut section, "heartbeat_grace", &mut server.heartbeat_grace)?;
    word(&mut section, "min_heartbeat_ttl", &mut server.min_heartbeat_ttl)?;
    word(&mut section, "scrub_interval", &mut server.scrub_interval)?;
    maybe(&mut section, "encrypt", &mut server.encrypt)?;
    cluster::joins(server, &mut section)?;
    for section in section.sections("server_join")? {
        cluster::server_join(server, section)?;
    }
    refused::server(&mut section)?;
    section.finish()
}

fn client(client: &mut ClientSettings, mut section: Section) -> Result<(), Diagnostics> {
    word(&mut section, "enabled", &mut client.enabled)?;
    list(&mut section, "servers", &mut client.servers)?;
    for mut join in section.sections("server_join")? {
        list(&mut join, "retry_join", &mut client.servers)?;
        refused::server_join(&mut join)?;
        join.finish()?;
    }
    maybe(&mut section, "state_dir", &mut client.state_dir)?;
    maybe(&mut section, "alloc_dir", &mut client.alloc_dir)?;
    word(&mut section, "node_class", &mut client.node_class)?;
    word(&mut section, "node_pool", &mut client.node_pool)?;
    for mut meta in section.sections("meta")? {
        map(&mut meta, &mut client.meta)?;
    }
    for mut options in section.sections("options")? {
        map(&mut options, &mut client.options)?;
    }
    for section in section.sections("reserved")? {
        reserved(&mut client.reserved, section)?;
    }
    word(&mut section, "network_interface", &mut client.network_interface)?;
    word(&mut section, "cpu_total_compute", &mut client.cpu_total_compute)?;
    word(&mut section, "memory_total_mb", &mut client.memory_total_mb)?;
    word(&mut section, "disk_total_mb", &mut client.disk_total_mb)?;
    word(&mut section, "min_dynamic_port", &mut client.min_dynamic_port)?;
    word(&mut section, "max_dynamic_port", &mut client.max_dynamic_port)?;
    word(&mut section, "max_kill_timeout", &mut client.max_kill_timeout)?;
    word(&mut section, "gc_interval", &mut client.gc_interval)?;
    word(&mut section, "gc_disk_usage_threshold", &mut client.gc_disk_usage_threshold)?;
    word(&mut section, "gc_inode_usage_threshold", &mut client.gc_inode_usage_threshold)?;
    word(&mut section, "gc_max_allocs", &mut client.gc_max_allocs)?;
    word(&mut section, "node_max_allocs", &mut client.node_max_allocs)?;
    word(&mut section, "default_ineligible", &mut client.default_ineligible)?;
    refused::client(&mut section)?;
    section.finish()
}

fn list(section: &mut Section, key: &str, field: &mut Vec<String>) -> Result<(), Diagnostics> {
    if let Some(items) = section.take(key)? {
        *field = items;
    }
    Ok(())
}

fn reserved(reserved: &mut ReservedSettings, mut section: Section) -> Result<(), Diagnostics> {
    word(&mut section, "cpu", &mut reserved.cpu_mhz)?;
    word(&mut section, "memory", &mut reserved.memory_mib)?;
    word(&mut section, "disk", &mut reserved.disk_mib)?;
    word(&mut section, "cores", &mut reserved.cores)?;
    word(&mut section, "reserved_ports", &mut reserved.ports)?;
    section.finish()
}

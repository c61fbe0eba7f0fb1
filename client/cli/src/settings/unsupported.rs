//! Keys of Nomad's agent configuration that this release does not support.

use jobspec::Diagnostics;
use jobspec::config::Section;
use serde::de::IgnoredAny;

use super::value::{reject, set};

/// Keys that are listed one by one, so that the error says "not supported" and not "unexpected key".
const TOP: [&str; 15] = [
    "consul",
    "enable_debug",
    "enable_syslog",
    "eventlog",
    "http_api_response_headers",
    "keyring",
    "log_file",
    "log_include_location",
    "log_rotate_bytes",
    "log_rotate_duration",
    "log_rotate_max_files",
    "plugin_dir",
    "rpc",
    "syslog_facility",
    "vault",
];

const SERVER: [&str; 41] = [
    "acl_token_gc_threshold",
    "authoritative_region",
    "batch_eval_gc_threshold",
    "client_introduction",
    "csi_plugin_gc_threshold",
    "csi_volume_claim_gc_interval",
    "csi_volume_claim_gc_threshold",
    "data_dir",
    "default_scheduler_config",
    "deploy_query_rate_limit",
    "deployment_gc_threshold",
    "enable_event_broker",
    "enabled_schedulers",
    "eval_gc_threshold",
    "event_buffer_size",
    "failover_heartbeat_ttl",
    "job_default_priority",
    "job_gc_interval",
    "job_gc_threshold",
    "job_max_count",
    "job_max_priority",
    "job_max_source_size",
    "job_tracked_versions",
    "license_path",
    "max_heartbeats_per_second",
    "node_gc_threshold",
    "oidc_issuer",
    "plan_apply_pipeline",
    "plan_rejection_tracker",
    "raft_boltdb",
    "raft_logstore",
    "raft_multiplier",
    "raft_protocol",
    "raft_snapshot_interval",
    "raft_snapshot_threshold",
    "raft_trailing_logs",
    "redundancy_zone",
    "rejoin_after_leave",
    "root_key_gc_interval",
    "search",
    "start_timeout",
];

const CLIENT: [&str; 32] = [
    "alloc_mounts_dir",
    "artifact",
    "bind_wildcard_default_host_network",
    "bridge_network_hairpin_mode",
    "bridge_network_name",
    "bridge_network_subnet",
    "bridge_network_subnet_ipv6",
    "cgroup_parent",
    "chroot_env",
    "client_max_port",
    "client_min_port",
    "cni_config_dir",
    "cni_path",
    "common_plugin_dir",
    "cpu_disable_dmidecode",
    "disable_remote_exec",
    "disk_free_mb",
    "drain_on_shutdown",
    "fingerprint",
    "gc_parallel_destroys",
    "gc_volumes_on_node_gc",
    "host_network",
    "host_volume",
    "host_volume_plugin_dir",
    "host_volumes_dir",
    "network_speed",
    "no_host_uuid",
    "nomad_service_discovery",
    "preferred_address_family",
    "reservable_cores",
    "template",
    "users",
];

/// Keys of Nomad Enterprise: the community edition accepts and ignores them.
const ENTERPRISE: [&str; 3] = ["audit", "reporting", "sentinel"];

/// Keys of `telemetry` that are accepted and have no effect.
const TELEMETRY: [&str; 9] = [
    "collection_interval",
    "disable_hostname",
    "filter_default",
    "in_memory_collection_interval",
    "in_memory_retention_period",
    "prefix_filter",
    "publish_allocation_metrics",
    "publish_node_metrics",
    "use_node_name",
];

/// # Errors
/// The first unsupported key.
pub(super) fn top(top: &mut Section, notes: &mut Vec<String>) -> Result<(), Diagnostics> {
    // Always in effect: nothing is ever sent to the vendor.
    has(top, "disable_update_check")?;
    has(top, "disable_anonymous_signature")?;
    for key in ENTERPRISE {
        if has(top, key)? {
            notes.push(format!("{key} belongs to enterprise releases and has no effect"));
        }
    }
    off_only(top, "acl", &["enabled"])?;
    off_only(top, "tls", &["http", "rpc"])?;
    for mut ui in top.sections("ui")? {
        let (mut enabled, mut hints) = (false, false);
        set(&mut ui, "enabled", &mut enabled)?;
        set(&mut ui, "show_cli_hints", &mut hints)?;
        if enabled {
            notes.push(
                "the web interface is not part of this build yet: ui.enabled has no effect".to_string(),
            );
        }
        ui.finish()?;
    }
    reject(top, &TOP)
}

/// Removes a key unread; true when it was present.
fn has(section: &mut Section, key: &str) -> Result<bool, Diagnostics> {
    Ok(section.take::<IgnoredAny>(key)?.is_some())
}

/// # Errors
/// A sink, which is not supported.
pub(super) fn telemetry(mut section: Section) -> Result<Option<String>, Diagnostics> {
    let mut said = Vec::new();
    for key in TELEMETRY {
        if has(&mut section, key)? {
            said.push(key);
        }
    }
    for sink in section.names() {
        reject(&mut section, &[&sink])?;
    }
    Ok((!said.is_empty())
        .then(|| format!("telemetry is not collected yet: {} have no effect", said.join(", "))))
}

/// A block that is allowed as long as it is switched off. Its other keys are ignored then.
fn off_only(top: &mut Section, part: &'static str, switches: &[&'static str]) -> Result<(), Diagnostics> {
    for mut section in top.sections(part)? {
        for switch in switches {
            let mut on = false;
            set(&mut section, switch, &mut on)?;
            if on {
                return Err(
                    section.wrong(format!("{part}.{switch} is not supported yet: this release runs without"))
                );
            }
        }
    }
    Ok(())
}

/// # Errors
/// The first unsupported key.
pub(super) fn limits(section: &mut Section) -> Result<(), Diagnostics> {
    reject(section, &["https_handshake_timeout"])
}

/// # Errors
/// The first unsupported key.
pub(super) fn server(section: &mut Section) -> Result<(), Diagnostics> {
    reject(section, &SERVER)
}

/// # Errors
/// The first unsupported key.
pub(super) fn client(section: &mut Section) -> Result<(), Diagnostics> {
    reject(section, &CLIENT)
}

/// # Errors
/// The first unsupported key.
pub(super) fn server_join(section: &mut Section) -> Result<(), Diagnostics> {
    reject(section, &["start_join", "retry_interval", "retry_max"])
}

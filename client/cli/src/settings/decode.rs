//! Maps the keys of configuration files to fields of the settings.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use base::Duration;
use jobspec::config::Section;
use keyring::IntroductionSettings;
use node::drain::ShutdownDrain;
use node::settings::HostVolume;
use node::users::DynamicUsers;
use server::PageFolder;

use super::dns;
use super::network;
use super::unsupported::Refused;
use super::{
    AgentSettings, ClientSettings, LimitSettings, ServerSettings, artifacts, audit, clouds, cluster, consul,
    history, plugins, reserved, scheduler, templates, tls, unsupported, value, vault,
};

/// Merges a file into the settings. Everything that is wrong with it goes to `refused`, with its position.
pub(super) fn file(
    settings: &mut AgentSettings,
    mut top: Section,
    places: &mut tls::Places,
    refused: &mut Refused,
) {
    refused.set(&mut top, "region", &mut settings.region);
    refused.set(&mut top, "datacenter", &mut settings.datacenter);
    refused.set(&mut top, "name", &mut settings.name);
    refused.set_option(&mut top, "data_dir", &mut settings.data_dir);
    refused.set(&mut top, "log_level", &mut settings.log.level);
    refused.set(&mut top, "log_json", &mut settings.log.json);
    refused.set(&mut top, "log_include_location", &mut settings.log.include_location);
    refused.set_option(&mut top, "log_file", &mut settings.log.file);
    refused.set(&mut top, "log_rotate_bytes", &mut settings.log.rotate_bytes);
    refused.set(&mut top, "log_rotate_duration", &mut settings.log.rotate_duration);
    refused.set(&mut top, "log_rotate_max_files", &mut settings.log.rotate_max_files);
    refused.set(&mut top, "enable_debug", &mut settings.enable_debug);
    addresses(settings, &mut top, refused);
    for section in refused.sections(&mut top, "server") {
        server(&mut settings.server, &mut settings.notes, section, refused);
    }
    for section in refused.sections(&mut top, "autopilot") {
        cluster::autopilot(&mut settings.autopilot, section, refused);
    }
    refused.set(&mut top, "leave_on_terminate", &mut settings.leave_on_terminate);
    refused.set(&mut top, "leave_on_interrupt", &mut settings.leave_on_interrupt);
    for section in refused.sections(&mut top, "client") {
        client(&mut settings.client, &mut settings.notes, section, refused);
    }
    for section in refused.sections(&mut top, "consul") {
        consul::read(&mut settings.consul, &settings.consul_usual, section, refused);
    }
    for section in refused.sections(&mut top, "vault") {
        vault::read(&mut settings.vaults, section, refused);
    }
    let mut plugin_dir = settings.plugin_dir.take().unwrap_or_default();
    refused.set(&mut top, "plugin_dir", &mut plugin_dir);
    settings.plugin_dir = Some(plugin_dir).filter(|path| !path.as_os_str().is_empty());
    for section in refused.sections(&mut top, "plugin") {
        let read = plugins::read(settings, section, refused);
        refused.also(read);
    }
    for section in refused.sections(&mut top, "limits") {
        limits(&mut settings.limits, section, refused);
    }
    for section in refused.sections(&mut top, "acl") {
        access(settings, section, refused);
    }
    for section in refused.sections(&mut top, "audit") {
        audit::read(&mut settings.audit, section, refused);
    }
    for section in refused.sections(&mut top, "history") {
        history::read(&mut settings.history, section, refused);
    }
    for section in refused.sections(&mut top, "tls") {
        tls::read(settings, places, section, refused);
    }
    for mut section in refused.sections(&mut top, "http_api_response_headers") {
        refused.set_map(&mut section, &mut settings.response_headers);
    }
    for section in refused.sections(&mut top, "telemetry") {
        telemetry(settings, section, refused);
    }
    for section in refused.sections(&mut top, "ui") {
        ui(settings, section, refused);
    }
    unsupported::top(&mut top, &mut settings.notes, refused);
    refused.done(top);
}

fn ui(settings: &mut AgentSettings, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "enabled", &mut settings.ui.enabled);
    refused.set(&mut section, "show_cli_hints", &mut settings.ui.show_cli_hints);
    let mut folder: Option<PathBuf> = None;
    refused.set_option(&mut section, "dir", &mut folder);
    if let Some(path) = folder {
        match PageFolder::open(&path) {
            Ok(folder) => settings.ui.folder = Some(folder),
            Err(error) => {
                let expected = format!("\"dir\" {}: expected a directory with an index.html", path.display());
                refused.also(Err(section.wrong(format!("{expected}: {error}"))));
            }
        }
    }
    settings.notes.extend(unsupported::ui(&mut section));
    refused.done(section);
}

fn addresses(settings: &mut AgentSettings, top: &mut Section, refused: &mut Refused) {
    refused.set(top, "bind_addr", &mut settings.bind_addr);
    for mut section in refused.sections(top, "ports") {
        refused.set(&mut section, "http", &mut settings.ports.http);
        refused.set(&mut section, "rpc", &mut settings.ports.rpc);
        refused.set(&mut section, "serf", &mut settings.ports.serf);
        refused.done(section);
    }
    for mut section in refused.sections(top, "addresses") {
        refused.set_option(&mut section, "http", &mut settings.addresses.http);
        refused.set_option(&mut section, "rpc", &mut settings.addresses.rpc);
        refused.set_option(&mut section, "serf", &mut settings.addresses.serf);
        refused.done(section);
    }
    for mut section in refused.sections(top, "advertise") {
        refused.set_option(&mut section, "http", &mut settings.advertise.http);
        refused.set_option(&mut section, "rpc", &mut settings.advertise.rpc);
        refused.set_option(&mut section, "serf", &mut settings.advertise.serf);
        refused.done(section);
    }
}

fn limits(limits: &mut LimitSettings, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "http_max_conns_per_client", &mut limits.http_max_conns_per_client);
    refused.also(value::set_list(&mut section, "http_proxies", &mut limits.http_proxies));
    refused.set(&mut section, "rpc_max_conns_per_client", &mut limits.rpc_max_conns_per_client);
    refused.set(&mut section, "rpc_handshake_timeout", &mut limits.rpc_handshake_timeout);
    refused.set(&mut section, "https_handshake_timeout", &mut limits.https_handshake_timeout);
    refused.done(section);
}

fn telemetry(settings: &mut AgentSettings, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "prometheus_metrics", &mut settings.prometheus_metrics);
    let telemetry = &mut settings.telemetry;
    refused.set(&mut section, "collection_interval", &mut telemetry.collection_interval);
    refused.set(&mut section, "disable_hostname", &mut telemetry.disable_hostname);
    refused.set(&mut section, "publish_node_metrics", &mut telemetry.publish_node_metrics);
    refused.set(&mut section, "publish_allocation_metrics", &mut telemetry.publish_allocation_metrics);
    settings.notes.extend(unsupported::telemetry(section, refused));
}

/// `false` is what nobody asked for: it does not switch off what `-dev` or an earlier file did switch on.
fn enabled(section: &mut Section, refused: &mut Refused) -> bool {
    let mut enabled = false;
    refused.set(section, "enabled", &mut enabled);
    enabled
}

fn server(server: &mut ServerSettings, notes: &mut Vec<String>, mut section: Section, refused: &mut Refused) {
    server.enabled |= enabled(&mut section, refused);
    refused.set(&mut section, "bootstrap_expect", &mut server.bootstrap_expect);
    refused.set_option(&mut section, "num_schedulers", &mut server.num_schedulers);
    refused.set(&mut section, "job_max_count", &mut server.job_max_count);
    refused.set(&mut section, "placement_lag_max", &mut server.placement_lag_max);
    refused.set(&mut section, "heartbeat_grace", &mut server.heartbeats.grace);
    refused.set(&mut section, "min_heartbeat_ttl", &mut server.heartbeats.min_ttl);
    refused.set(&mut section, "failover_heartbeat_ttl", &mut server.heartbeats.failover_ttl);
    garbage(server, &mut section, refused);
    refused.set(&mut section, "scrub_interval", &mut server.scrub_interval);
    refused.set_option(&mut section, "oidc_issuer", &mut server.oidc_issuer);
    refused.set_option(&mut section, "encrypt", &mut server.encrypt);
    refused.set(&mut section, "authoritative_region", &mut server.authoritative_region);
    refused.set(&mut section, "raise_epoch", &mut server.raise_epoch);
    cluster::joins(server, &mut section, refused);
    for section in refused.sections(&mut section, "server_join") {
        cluster::server_join(server, section, refused);
    }
    for section in refused.sections(&mut section, "client_introduction") {
        introduction(&mut server.introduction, section, refused);
    }
    for mut section in refused.sections(&mut section, "sinks") {
        refused.also(value::set_list(&mut section, "allow", &mut server.sinks.allow));
        refused.also(value::set_list(&mut section, "deny", &mut server.sinks.deny));
        refused.done(section);
    }
    for section in refused.sections(&mut section, "default_scheduler_config") {
        scheduler::read(&mut server.scheduler, section, refused);
    }
    unsupported::nothing_to_collect(&mut section, notes, refused);
    unsupported::server(&mut section, refused);
    refused.done(section);
}

fn garbage(server: &mut ServerSettings, section: &mut Section, refused: &mut Refused) {
    let (garbage, keys) = (&mut server.garbage, &mut server.root_keys);
    refused.set(section, "job_gc_interval", &mut garbage.every);
    refused.set(section, "job_gc_threshold", &mut garbage.jobs_after);
    refused.set(section, "node_gc_threshold", &mut garbage.nodes_after);
    refused.set(section, "eval_gc_threshold", &mut garbage.leftovers.evals);
    refused.set(section, "batch_eval_gc_threshold", &mut garbage.leftovers.batch_evals);
    refused.set(section, "deployment_gc_threshold", &mut garbage.leftovers.deployments);
    refused.set(section, "root_key_gc_interval", &mut keys.every);
    refused.set(section, "root_key_gc_threshold", &mut keys.remove_after);
    refused.set(section, "root_key_rotation_threshold", &mut keys.rotate_after);
}

fn introduction(settings: &mut IntroductionSettings, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "enforcement", &mut settings.enforcement);
    refused.set(&mut section, "default_identity_ttl", &mut settings.default_ttl);
    refused.set(&mut section, "max_identity_ttl", &mut settings.max_ttl);
    refused.done(section);
}

/// How long servers of Nomad go by what they once found out.
const ACL_CACHES: [&str; 3] = ["token_ttl", "policy_ttl", "role_ttl"];
const ACL_CACHED: Duration = Duration::from_secs(30);

fn access(settings: &mut AgentSettings, mut section: Section, refused: &mut Refused) {
    let AgentSettings { acl, notes, server: ServerSettings { replication_token, .. }, .. } = settings;
    acl.enabled |= enabled(&mut section, refused);
    refused.set(&mut section, "token_min_expiration_ttl", &mut acl.ttl_min);
    refused.set(&mut section, "token_max_expiration_ttl", &mut acl.ttl_max);
    for key in ACL_CACHES {
        let mut given = None::<Duration>;
        refused.set_option(&mut section, key, &mut given);
        if given.is_some_and(|given| given != ACL_CACHED) {
            notes.push(format!("acl.{key} has no effect: changes of rights take effect at once"));
        }
    }
    refused.set(&mut section, "replication_token", replication_token);
    refused.done(section);
}

fn client(client: &mut ClientSettings, notes: &mut Vec<String>, mut section: Section, refused: &mut Refused) {
    client.enabled |= enabled(&mut section, refused);
    refused.list(&mut section, "servers", &mut client.servers);
    for mut join in refused.sections(&mut section, "server_join") {
        refused.list(&mut join, "retry_join", &mut client.servers);
        unsupported::server_join(&mut join, refused);
        refused.done(join);
    }
    refused.set_option(&mut section, "state_dir", &mut client.state_dir);
    refused.set_option(&mut section, "alloc_dir", &mut client.alloc_dir);
    refused.set_option(&mut section, "host_volumes_dir", &mut client.host_volumes_dir);
    refused.set_option(&mut section, "host_volume_plugin_dir", &mut client.host_volume_plugin_dir);
    refused.set(&mut section, "gc_volumes_on_node_gc", &mut client.gc_volumes_on_node_gc);
    refused.set(&mut section, "ephemeral_disk_quota", &mut client.ephemeral_disk_quota);
    refused.set_option(&mut section, "common_plugin_dir", &mut client.common_plugin_dir);
    refused.set(&mut section, "node_class", &mut client.node_class);
    refused.set(&mut section, "node_pool", &mut client.node_pool);
    for mut meta in refused.sections(&mut section, "meta") {
        refused.set_map(&mut meta, &mut client.meta);
    }
    for mut options in refused.sections(&mut section, "options") {
        refused.set_map(&mut options, &mut client.options);
    }
    for section in refused.sections(&mut section, "host_volume") {
        host_volumes(&mut client.host_volumes, section, refused);
    }
    for section in refused.sections(&mut section, "fingerprint") {
        clouds::fingerprint(&mut client.clouds, section, refused);
    }
    for section in refused.sections(&mut section, "reserved") {
        reserved::reserved(&mut client.reserved, section, refused);
    }
    refused.set(&mut section, "reservable_cores", &mut client.reservable_cores);
    refused.set(&mut section, "disable_remote_exec", &mut client.disable_remote_exec);
    for section in refused.sections(&mut section, "template") {
        templates::templates(&mut client.templates, section, refused);
    }
    for section in refused.sections(&mut section, "chroot_env") {
        chroot_env(&mut client.chroot_env, section, refused);
    }
    for section in refused.sections(&mut section, "users") {
        users(&mut client.dynamic_users, section, refused);
    }
    refused.set(&mut section, "cgroup_parent", &mut client.cgroup_parent);
    for section in refused.sections(&mut section, "artifact") {
        artifacts::artifacts(&mut client.artifacts, section, refused);
    }
    refused.set(&mut section, "network_interface", &mut client.network_interface);
    host(client, &mut section, refused);
    for section in refused.sections(&mut section, "drain_on_shutdown") {
        shutdown_drain(&mut client.drain_on_shutdown, section, refused);
    }
    refused.set(&mut section, "node_max_allocs", &mut client.node_max_allocs);
    refused.set(&mut section, "default_ineligible", &mut client.default_ineligible);
    refused.set(&mut section, "intro_token", &mut client.intro_token);
    network::client(&mut client.network, &mut section, refused);
    for section in refused.sections(&mut section, "dns") {
        dns::dns(&mut client.dns, section, refused);
    }
    unsupported::client(&mut section, notes, refused);
    refused.done(section);
}

/// What the node says of its host, whatever that says of itself, and when it cleans up.
fn host(client: &mut ClientSettings, section: &mut Section, refused: &mut Refused) {
    refused.set(section, "network_speed", &mut client.network_speed);
    refused.set(section, "preferred_address_family", &mut client.preferred_address_family);
    refused.set(section, "nomad_service_discovery", &mut client.nomad_service_discovery);
    let mut no_host_uuid = !client.id_of_host;
    refused.set(section, "no_host_uuid", &mut no_host_uuid);
    client.id_of_host = !no_host_uuid;
    refused.set(section, "cpu_total_compute", &mut client.cpu_total_compute);
    refused.set(section, "memory_total_mb", &mut client.memory_total_mb);
    refused.set(section, "disk_total_mb", &mut client.disk_total_mb);
    refused.set(section, "min_dynamic_port", &mut client.min_dynamic_port);
    refused.set(section, "max_dynamic_port", &mut client.max_dynamic_port);
    refused.set(section, "max_kill_timeout", &mut client.max_kill_timeout);
    refused.set(section, "gc_interval", &mut client.gc_interval);
    refused.set(section, "gc_disk_usage_threshold", &mut client.gc_disk_usage_threshold);
    refused.set(section, "gc_inode_usage_threshold", &mut client.gc_inode_usage_threshold);
    refused.set(section, "gc_max_allocs", &mut client.gc_max_allocs);
    refused.set(section, "gc_parallel_destroys", &mut client.gc_parallel_destroys);
}

fn shutdown_drain(drain: &mut Option<ShutdownDrain>, mut section: Section, refused: &mut Refused) {
    let mut deadline = Duration::from_secs(3600);
    let (mut force, mut ignore_system_jobs) = (false, false);
    refused.set(&mut section, "deadline", &mut deadline);
    refused.set(&mut section, "force", &mut force);
    refused.set(&mut section, "ignore_system_jobs", &mut ignore_system_jobs);
    if deadline.0 <= 0 {
        let text = format!("drain_on_shutdown.deadline: expected a time above 0, got {deadline}");
        refused.also(Err(section.wrong(text)));
    }
    *drain = Some(ShutdownDrain { deadline: deadline.to_std(), force, ignore_system_jobs });
    refused.done(section);
}

/// Paths of the host by the paths that tasks have for them.
fn chroot_env(paths: &mut BTreeMap<PathBuf, PathBuf>, mut section: Section, refused: &mut Refused) {
    let mut given = BTreeMap::new();
    refused.set_map(&mut section, &mut given);
    for (source, target) in given {
        let (source, target) = (PathBuf::from(source), PathBuf::from(target));
        let inside =
            |path: &Path| path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
        if !inside(&source) || !inside(&target) || target == Path::new("/") {
            let (source, target) = (source.display(), target.display());
            let text = format!(
                "chroot_env: \"{source}\" = \"{target}\": expected two paths that begin with / and have no .."
            );
            refused.also(Err(section.wrong(text)));
        }
        paths.insert(source, target);
    }
}

fn users(users: &mut DynamicUsers, mut section: Section, refused: &mut Refused) {
    refused.set(&mut section, "dynamic_user_min", &mut users.uid_min);
    refused.set(&mut section, "dynamic_user_max", &mut users.uid_max);
    refused.set_option(&mut section, "home_dir", &mut users.home_dir);
    // The last number stands for no user at all.
    if users.uid_min == 0 || users.uid_max < users.uid_min || users.uid_max == u32::MAX {
        let text = format!(
            "users: dynamic_user_min = {} and dynamic_user_max = {}: expected two numbers above 0, the smaller one first",
            users.uid_min, users.uid_max
        );
        refused.also(Err(section.wrong(text)));
    }
    if users.home_dir.as_ref().is_some_and(|path| !path.is_absolute()) {
        refused.also(Err(section.wrong("users.home_dir: expected a path that begins with /".to_string())));
    }
    refused.done(section);
}

/// One volume by its label, or in JSON some by their keys.
fn host_volumes(volumes: &mut BTreeMap<String, HostVolume>, mut section: Section, refused: &mut Refused) {
    if let Some(name) = section.labels.first().cloned() {
        return host_volume(volumes, name, section, refused);
    }
    for name in section.names() {
        for inner in refused.sections(&mut section, &name) {
            host_volume(volumes, name.clone(), inner, refused);
        }
    }
    refused.done(section);
}

fn host_volume(
    volumes: &mut BTreeMap<String, HostVolume>,
    name: String,
    mut section: Section,
    refused: &mut Refused,
) {
    let mut path = PathBuf::new();
    let mut read_only = false;
    refused.set(&mut section, "path", &mut path);
    refused.set(&mut section, "read_only", &mut read_only);
    if name.is_empty() || !path.is_absolute() {
        let text = format!("host_volume \"{name}\": expected a name, and a path that begins with /");
        refused.also(Err(section.wrong(text)));
    }
    volumes.insert(name, HostVolume { path, read_only });
    refused.done(section);
}

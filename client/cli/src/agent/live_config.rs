//! The configuration that an agent runs with, read again at SIGHUP and when operators ask for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use control::{Control, WorkerPool};
use monitor::{AgentConfig, Reloaded};
use serde_json::{Map, Value, json};
use tls::{AgentTls, TlsSettings};
use tracing::Level;

use crate::command::version;
use crate::settings::AgentSettings;

/// Where the configuration comes from, and what prints the log.
pub(crate) struct ConfigSources {
    /// Reads files, environment and flags again, as at the start.
    pub read: Box<dyn Fn() -> anyhow::Result<AgentSettings> + Send + Sync>,
    pub set_log_level: Box<dyn Fn(Level) + Send + Sync>,
}

pub(super) struct LiveConfig {
    sources: ConfigSources,
    home: PathBuf,
    /// What the agent runs with: what needs a restart is as it was at the start.
    running: Mutex<AgentSettings>,
    control: OnceLock<Control>,
    tls: Option<Arc<AgentTls>>,
}

impl fmt::Debug for LiveConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveConfig").finish_non_exhaustive()
    }
}

impl LiveConfig {
    pub(super) fn new(
        settings: AgentSettings,
        home: PathBuf,
        sources: ConfigSources,
        tls: Option<Arc<AgentTls>>,
    ) -> LiveConfig {
        LiveConfig { sources, home, running: Mutex::new(settings), control: OnceLock::new(), tls }
    }

    /// The scheduler of the server in this process, once it runs.
    pub(super) fn schedules_with(&self, control: Control) {
        let _set_before = self.control.set(control);
    }

    fn running(&self) -> MutexGuard<'_, AgentSettings> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// The certificates cannot be used. Nothing has changed then.
    fn apply(
        &self,
        running: &mut AgentSettings,
        wanted: &AgentSettings,
    ) -> Result<Vec<&'static str>, String> {
        let mut applied = Vec::new();
        if let Some(tls) = &self.tls {
            if tls.reload(&wanted.tls).map_err(|error| format!("tls.{error}"))? {
                applied.push("tls");
            }
            let (http, rpc) = (running.tls.http, running.tls.rpc);
            running.tls = TlsSettings { http, rpc, ..wanted.tls.clone() };
        }
        if running.log.level != wanted.log.level {
            (self.sources.set_log_level)(wanted.log.level);
            running.log.level = wanted.log.level;
            applied.push("log_level");
        }
        if let Some(control) = self.control.get()
            && running.server.num_schedulers != wanted.server.num_schedulers
        {
            let pool = WorkerPool { workers: super::server::workers(wanted), ..control.worker_pool() };
            control.set_worker_pool(pool);
            running.server.num_schedulers = wanted.server.num_schedulers;
            applied.push("server.num_schedulers");
        }
        Ok(applied)
    }
}

impl AgentConfig for LiveConfig {
    fn shown(&self) -> Map<String, Value> {
        config_json(&self.running(), &self.home)
    }

    fn reload(&self) -> Result<Reloaded, String> {
        // One at a time, from reading to applying: the newest files win.
        let mut running = self.running();
        let not_read = |why: String| {
            let why = format!("the configuration is not read again: {why}");
            tracing::error!("{why}");
            why
        };
        let wanted = (self.sources.read)().map_err(|error| not_read(format!("{error:#}")))?;
        let applied = self.apply(&mut running, &wanted).map_err(not_read)?;
        let needs_restart = differences(&running, &wanted);
        tracing::info!(applied = applied.join(", "), "the configuration was read again");
        if !needs_restart.is_empty() {
            let keys = needs_restart.join(", ");
            tracing::warn!(keys, "these settings have changed and count when the agent starts again");
        }
        Ok(Reloaded { applied, needs_restart })
    }
}

/// The keys in which two configurations differ.
fn differences(running: &AgentSettings, wanted: &AgentSettings) -> Vec<&'static str> {
    let mut left = running.clone();
    let mut found = Vec::new();
    macro_rules! compare {
        ($($key:literal: $($field:ident).+;)+) => {$(
            if left.$($field).+ != wanted.$($field).+ {
                left.$($field).+ = wanted.$($field).+.clone();
                found.push($key);
            }
        )+};
    }
    compare! {
        "region": region;
        "datacenter": datacenter;
        "name": name;
        "data_dir": data_dir;
        "bind_addr": bind_addr;
        "addresses": addresses;
        "advertise": advertise;
        "ports": ports;
        "log_level": log.level;
        "log_json": log.json;
        "log_include_location": log.include_location;
        "log_file": log.file;
        "log_rotate_bytes": log.rotate_bytes;
        "log_rotate_duration": log.rotate_duration;
        "log_rotate_max_files": log.rotate_max_files;
        "audit": audit;
        "limits": limits;
        "tls": tls;
        "acl": acl;
        "enable_debug": enable_debug;
        "telemetry": telemetry;
        "ui": ui;
        "telemetry.prometheus_metrics": prometheus_metrics;
        "http_api_response_headers": response_headers;
        "autopilot": autopilot;
        "leave_on_terminate": leave_on_terminate;
        "leave_on_interrupt": leave_on_interrupt;
        "plugin": plugins;
        "plugin_dir": plugin_dir;
        "plugin": external_plugins;
        "history.memory": history.memory;
        "history.min_age": history.min_age;
        "history.max_bytes": history.max_bytes;
        "history.archive": history.archive;
        "server.enabled": server.enabled;
        "server.bootstrap_expect": server.bootstrap_expect;
        "server.server_join": server.join;
        "server.encrypt": server.encrypt;
        "server.authoritative_region": server.authoritative_region;
        "server.raise_epoch": server.raise_epoch;
        "acl.replication_token": server.replication_token;
        "server.num_schedulers": server.num_schedulers;
        "server.job_max_count": server.job_max_count;
        "server.placement_lag_max": server.placement_lag_max;
        "server.heartbeat_grace": server.heartbeats.grace;
        "server.min_heartbeat_ttl": server.heartbeats.min_ttl;
        "server.failover_heartbeat_ttl": server.heartbeats.failover_ttl;
        "server.client_introduction": server.introduction;
        "server.default_scheduler_config": server.scheduler;
        "server.sinks": server.sinks;
        "server.scrub_interval": server.scrub_interval;
        "server": server;
        "client.enabled": client.enabled;
        "client.servers": client.servers;
        "client.node_class": client.node_class;
        "client.node_pool": client.node_pool;
        "client.meta": client.meta;
        "client.options": client.options;
        "client.host_volume": client.host_volumes;
        "client.reserved": client.reserved;
        "client": client;
    }
    // Which files there are and what is noted about them is no setting.
    (left.files, left.notes) = (wanted.files.clone(), wanted.notes.clone());
    if left != *wanted {
        found.push("others");
    }
    found
}

/// The configuration as `agent/self` shows it.
fn config_json(settings: &AgentSettings, home: &Path) -> Map<String, Value> {
    let config_json = json!({
        "Region": settings.region,
        "Datacenter": settings.datacenter,
        "Name": settings.name,
        "NodeName": settings.name,
        "DataDir": home.display().to_string(),
        "BindAddr": settings.bind_addr.to_string(),
        "DevMode": settings.dev,
        "LogLevel": settings.log.level.to_string(),
        "LogJson": settings.log.json,
        "LogFile": settings.log.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
        "LogRotateBytes": settings.log.rotate_bytes,
        "LogRotateDuration": settings.log.rotate_duration.to_string(),
        "LogRotateMaxFiles": settings.log.rotate_max_files,
        "Ports": {"HTTP": settings.ports.http, "RPC": settings.ports.rpc, "Serf": settings.ports.serf},
        "Server": {"Enabled": settings.server.enabled, "BootstrapExpect": settings.server.bootstrap_expect,
            "EncryptKey": settings.server.encrypt.as_ref().map(|_| "<redacted>"),
            "AuthoritativeRegion": settings.server.authoritative_region,
            "ServerJoin": {"StartJoin": settings.server.join.start_join, "RetryJoin": settings.server.join.retry_join,
                "RetryInterval": settings.server.join.retry_interval.to_string(),
                "RetryMaxAttempts": settings.server.join.retry_max}},
        "Client": {"Enabled": settings.client.enabled, "NodeClass": settings.client.node_class,
            "NodePool": settings.client.node_pool, "Meta": settings.client.meta},
        "HTTPAPIResponseHeaders": settings.response_headers,
        "UI": {"Enabled": settings.ui.enabled, "ShowCLIHints": settings.ui.show_cli_hints},
        "TLSConfig": tls_json(&settings.tls),
        "Exposures": settings.exposures(),
        "ACL": {"Enabled": settings.acl.enabled,
            "TokenMinExpirationTTL": settings.acl.ttl_min.to_string(),
            "TokenMaxExpirationTTL": settings.acl.ttl_max.to_string()},
        "Version": version::document(),
        "Files": settings.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
    });
    match config_json {
        Value::Object(fields) => fields,
        other => unreachable!("an object literal is an object, not {other}"),
    }
}

/// The `tls` block as Nomad shows it.
fn tls_json(tls: &TlsSettings) -> Value {
    let path =
        |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let suites: Vec<String> = tls.cipher_suites.iter().map(|suite| format!("{suite:?}")).collect();
    json!({
        "EnableHTTP": tls.http,
        "EnableRPC": tls.rpc,
        "CAFile": path(&tls.ca_file),
        "CertFile": path(&tls.cert_file),
        "KeyFile": path(&tls.key_file),
        "VerifyServerHostname": tls.verify_server_hostname,
        "VerifyHTTPSClient": tls.verify_https_client,
        "RPCUpgradeMode": tls.rpc_upgrade_mode,
        "TLSCipherSuites": suites.join(","),
        "TLSMinVersion": tls.min_version.as_str(),
        "TLSPreferServerCipherSuites": false,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn live(
        read: impl Fn() -> anyhow::Result<AgentSettings> + Send + Sync + 'static,
    ) -> (LiveConfig, Arc<Mutex<Vec<Level>>>) {
        let levels = Arc::new(Mutex::new(Vec::new()));
        let set = levels.clone();
        let set_log_level: Box<dyn Fn(Level) + Send + Sync> =
            Box::new(move |level| set.lock().unwrap().push(level));
        let sources = ConfigSources { read: Box::new(read), set_log_level };
        (LiveConfig::new(AgentSettings::dev(), "/data".into(), sources, None), levels)
    }

    #[test]
    fn a_changed_level_is_applied_and_the_rest_is_named() {
        let (config, levels) = live(|| {
            let mut wanted = AgentSettings::dev();
            wanted.log.level = Level::TRACE;
            wanted.ports.http = 5646;
            wanted.client.node_pool = "gpu".to_string();
            wanted.server.scheduler.memory_oversubscription =
                !wanted.server.scheduler.memory_oversubscription;
            wanted.notes.push("a note".to_string());
            Ok(wanted)
        });
        assert_eq!(config.shown()["LogLevel"], "DEBUG");
        let reloaded = config.reload().unwrap();
        assert_eq!(reloaded.applied, ["log_level"]);
        let named = ["ports", "server.default_scheduler_config", "client.node_pool"];
        assert_eq!(reloaded.needs_restart, named);
        assert_eq!(
            (config.shown()["LogLevel"].as_str(), config.shown()["Ports"]["HTTP"].as_u64()),
            (Some("TRACE"), Some(4646))
        );
        // Once more: nothing is applied twice, and what needs a restart still does.
        let again = config.reload().unwrap();
        assert_eq!((again.applied.as_slice(), again.needs_restart.as_slice()), (&[][..], &named[..]));
        assert_eq!(*levels.lock().unwrap(), [Level::TRACE]);
    }

    #[test]
    fn a_bad_configuration_changes_nothing() {
        let (config, levels) = live(|| anyhow::bail!("agent.hcl:1:1: \"log_levl\": unknown key"));
        let why = config.reload().unwrap_err();
        assert_eq!(why, "the configuration is not read again: agent.hcl:1:1: \"log_levl\": unknown key");
        assert_eq!(config.shown()["LogLevel"], "DEBUG");
        assert!(levels.lock().unwrap().is_empty());
    }

    #[test]
    fn a_setting_without_a_name_of_its_own_is_not_passed_over() {
        let (mut running, wanted) = (AgentSettings::dev(), AgentSettings::dev());
        assert_eq!(differences(&running, &wanted), [""; 0]);
        running.dev = false;
        running.client.gc_max_allocs += 1;
        assert_eq!(differences(&running, &wanted), ["client", "others"]);
    }
}

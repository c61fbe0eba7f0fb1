//! An agent's settings: from `-dev`, then from files in the order given, then from flags. The last one wins.
//!
//! [`AgentSettings`] is plain data. Keys that this release does not support are rejected with their position, or, if
//! they would change nothing, listed in [`AgentSettings::notes`]: nothing is ignored silently.

#[cfg(test)]
pub(crate) mod accepted;
mod artifacts;
mod audit;
mod clouds;
mod cluster;
mod consul;
mod decode;
mod dns;
mod exposures;
mod flags;
mod history;
mod log;
mod network;
mod plugins;
mod reserved;
mod scheduler;
mod system_flags;
mod templates;
mod tls;
mod unsupported;
mod unsupported_flags;
mod value;
mod vault;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use ::tls::TlsSettings;
use anyhow::bail;
use artifacts::ArtifactConfig;
use base::Duration;
use control::heartbeats::HeartbeatSettings;
use control::{BrokerSettings, GarbageSettings};
use ipnet::IpNet;
use keyring::IntroductionSettings;
use listener::AddressLimit;
use model::command::LeftoverAges;
use model::{Autopilot, SchedulerRules};
use node::cloud::Probes;
use node::dns::DnsSettings;
use node::drain::ShutdownDrain;
use node::log_shipping::sink::SinkAddress;
use node::network::NetworkSettings;
use node::settings::{DeniedUsers, HostVolume, NameFilter};
use node::templates::TemplateSettings;
use node::users::DynamicUsers;
use server::AccessSettings;
use server::AddressRules;
use server::PageFolder;
use server::RootKeySettings;
use server::gossip::Key;

pub(crate) use audit::AuditConfig;
pub(crate) use clouds::with_addresses as clouds_with_addresses;
pub(crate) use cluster::JoinSettings;
pub(crate) use consul::ConsulConfig;
pub(crate) use flags::{AGENT_FLAGS, read};
pub(crate) use history::HistoryConfig;
pub(crate) use log::LogSettings;
pub(crate) use network::AddressFamily;
use reserved::ReservedSettings;
pub(crate) use system_flags::SYSTEM_FLAGS;
pub(crate) use unsupported_flags::UNSUPPORTED_FLAGS;
pub(crate) use vault::VaultConfigs;

/// All settings of an agent.
/// Which metrics there are, and how they are labelled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TelemetrySettings {
    /// How often the figures of a node are read at most.
    pub collection_interval: Duration,
    /// Metrics do not say which agent they come from.
    pub disable_hostname: bool,
    /// Figures of the host.
    pub publish_node_metrics: bool,
    /// Figures of each task.
    pub publish_allocation_metrics: bool,
}

/// The web page of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UiSettings {
    pub enabled: bool,
    /// Commands name the page of what they show.
    pub show_cli_hints: bool,
    /// What is served in place of our own page.
    pub folder: Option<PageFolder>,
}

impl Default for TelemetrySettings {
    fn default() -> TelemetrySettings {
        TelemetrySettings {
            collection_interval: Duration::from_secs(1),
            disable_hostname: false,
            publish_node_metrics: false,
            publish_allocation_metrics: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentSettings {
    /// State is in memory or a temporary directory, and is lost with the agent.
    pub dev: bool,
    pub region: String,
    pub datacenter: String,
    /// The host's name unless another is given.
    pub name: String,
    /// Absolute; `None` only with `dev`.
    pub data_dir: Option<PathBuf>,
    pub bind_addr: IpAddr,
    /// Where to listen instead of `bind_addr`.
    pub addresses: Addresses,
    /// The address given to others instead of the one listened on: `HOST` or `HOST:PORT`.
    pub advertise: Advertise,
    pub ports: Ports,
    pub log: LogSettings,
    pub audit: AuditConfig,
    pub history: HistoryConfig,
    pub limits: LimitSettings,
    pub tls: TlsSettings,
    pub acl: AccessSettings,
    /// The host of the agent may be looked at over HTTP, environment included.
    pub enable_debug: bool,
    /// Servers also serve metrics in the Prometheus text format.
    pub prometheus_metrics: bool,
    pub telemetry: TelemetrySettings,
    pub ui: UiSettings,
    /// Put on every answer of the HTTP API.
    pub response_headers: BTreeMap<String, String>,
    pub server: ServerSettings,
    /// The initial autopilot configuration; later changes are in the log.
    pub autopilot: Autopilot,
    /// Whether a server leaves its cluster when it is stopped by SIGTERM.
    pub leave_on_terminate: bool,
    pub leave_on_interrupt: bool,
    pub client: ClientSettings,
    /// None without a `consul` block.
    pub consul: Option<ConsulConfig>,
    /// What such a block begins with.
    pub consul_usual: ConsulConfig,
    /// The `vault` blocks.
    pub vaults: VaultConfigs,
    /// The `config` of each `plugin` block, by driver.
    pub plugins: node::driver::registry::PluginConfigs,
    /// Where plugins are that are programs of their own; none for a directory below the data directory.
    pub plugin_dir: Option<PathBuf>,
    /// The `plugin` blocks of such programs, by the names of their files.
    pub external_plugins: BTreeMap<String, node::settings::ExternalPlugin>,
    /// The agent only holds what a recorder reads of another cluster.
    pub recording: Option<RecordingSettings>,
    /// Settings without effect, for the operator to read.
    pub notes: Vec<String>,
    /// Files that were read, in order.
    pub files: Vec<PathBuf>,
}

/// Which cluster is recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordingSettings {
    pub source: String,
    /// It may have had another address before.
    pub moved: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Addresses {
    pub http: Option<IpAddr>,
    pub rpc: Option<IpAddr>,
    pub serf: Option<IpAddr>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Advertise {
    pub http: Option<String>,
    pub rpc: Option<String>,
    pub serf: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ports {
    pub http: u16,
    pub rpc: u16,
    pub serf: u16,
}

/// Limits per client address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LimitSettings {
    /// 0 means no limit per address; the limit for all addresses still applies.
    pub http_max_conns_per_client: u32,
    /// Addresses and networks for which `http_max_conns_per_client` does not count.
    pub http_proxies: Vec<IpNet>,
    /// 0 means no limit.
    pub rpc_max_conns_per_client: u32,
    /// How long a new connection may take for its handshake.
    pub rpc_handshake_timeout: Duration,
    pub https_handshake_timeout: Duration,
}

impl LimitSettings {
    pub(crate) fn http(&self) -> AddressLimit {
        AddressLimit { max: self.http_max_conns_per_client as usize, proxies: self.http_proxies.clone() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSettings {
    pub enabled: bool,
    /// Servers to wait for before the cluster is bootstrapped; 0 never bootstraps one.
    pub bootstrap_expect: u32,
    pub join: JoinSettings,
    /// The gossip encryption key.
    pub encrypt: Option<Key>,
    /// The region that decides for all of them; empty where each decides for itself.
    pub authoritative_region: String,
    /// `acl.replication_token`: what the decisions of that region are read with.
    pub replication_token: String,
    /// The leader raises the cluster's epoch by itself once all servers were upgraded.
    pub raise_epoch: bool,
    /// Scheduler workers; `None` means one per core.
    pub num_schedulers: Option<u32>,
    /// Most allocations that a job may ask for; 0 for as many as it likes.
    pub job_max_count: u32,
    /// Once an evaluation has waited this long for a scheduler, what makes more of them waits too; 0 for never.
    pub placement_lag_max: Duration,
    /// How long a node may be silent.
    pub heartbeats: HeartbeatSettings,
    /// When what is over is forgotten.
    pub garbage: GarbageSettings,
    /// Which nodes may register for the first time.
    pub introduction: IntroductionSettings,
    /// When root keys are replaced and removed.
    pub root_keys: RootKeySettings,
    /// The address under which others find the public keys of the cluster. It stands in the tokens of workloads.
    pub oidc_issuer: Option<String>,
    /// How the scheduler of a new cluster works; later changes are in the log.
    pub scheduler: SchedulerRules,
    /// Which addresses sinks of the event stream may send to.
    pub sinks: AddressRules,
    /// How often the whole log on the disk is read again to find damage, in the background and with at most a twentieth
    /// of the disk's time; 0 never does.
    pub scrub_interval: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClientSettings {
    pub enabled: bool,
    /// `HOST` or `HOST:PORT` of servers' RPC; empty means the server in the same process.
    pub servers: Vec<String>,
    pub state_dir: Option<PathBuf>,
    pub alloc_dir: Option<PathBuf>,
    pub node_class: String,
    pub node_pool: String,
    pub meta: BTreeMap<String, String>,
    /// Older spelling of driver settings: `driver.raw_exec.enable` and its likes.
    pub options: BTreeMap<String, String>,
    pub host_volumes: BTreeMap<String, HostVolume>,
    /// Where volumes are made; `None` for a place below the state directory.
    pub host_volumes_dir: Option<PathBuf>,
    /// Programs that make them; `None` for a place below the data directory.
    pub host_volume_plugin_dir: Option<PathBuf>,
    /// `driver.allowlist` and `driver.denylist` of `options`.
    pub drivers: NameFilter,
    /// `fingerprint.allowlist` and `fingerprint.denylist` of `options`.
    pub fingerprints: NameFilter,
    /// The `fingerprint` blocks.
    pub clouds: Probes,
    /// What of the host tasks of `exec` see, by its path there; empty for what programs need.
    pub chroot_env: BTreeMap<PathBuf, PathBuf>,
    /// Of the control groups of tasks; empty for Nomad's.
    pub cgroup_parent: String,
    /// `user.denylist` and `user.checked_drivers` of `options`.
    pub denied_users: DeniedUsers,
    /// Users that tasks may have for themselves.
    pub dynamic_users: DynamicUsers,
    /// `log_sink.NAME` of `options`.
    pub log_sinks: BTreeMap<String, SinkAddress>,
    /// Where services are found by the DNS; none without an enabled `dns` block.
    pub dns: Option<DnsSettings>,
    pub network_interface: String,
    /// Megabits a second; 0 means measured.
    pub network_speed: u64,
    pub preferred_address_family: AddressFamily,
    /// Services of provider `nomad` are registered.
    pub nomad_service_discovery: bool,
    /// A new node has an id that follows from the host.
    pub id_of_host: bool,
    /// Networks of groups.
    pub network: NetworkSettings,
    pub reserved: ReservedSettings,
    /// The processors that jobs may get for themselves; empty for all.
    pub reservable_cores: Vec<u16>,
    /// Nobody runs commands in tasks of this node.
    pub disable_remote_exec: bool,
    /// Override the measured values; 0 means measured.
    pub cpu_total_compute: u64,
    pub memory_total_mb: u64,
    pub disk_total_mb: u64,
    pub min_dynamic_port: u16,
    pub max_dynamic_port: u16,
    pub max_kill_timeout: Duration,
    pub gc_interval: Duration,
    /// Percent.
    pub gc_disk_usage_threshold: u8,
    /// Percent.
    pub gc_inode_usage_threshold: u8,
    pub gc_max_allocs: u32,
    /// What an allocation stores is bounded by quotas of the file system.
    pub ephemeral_disk_quota: bool,
    /// Volumes that were made on this node are forgotten with it.
    pub gc_volumes_on_node_gc: bool,
    /// How many allocations are removed at the same time.
    pub gc_parallel_destroys: u32,
    /// Before the agent leaves.
    pub drain_on_shutdown: Option<ShutdownDrain>,
    /// 0 means no limit.
    pub node_max_allocs: u32,
    pub default_ineligible: bool,
    pub templates: TemplateSettings,
    pub artifacts: ArtifactConfig,
    /// Below the data directory unless given.
    pub common_plugin_dir: Option<PathBuf>,
    /// With what a new node introduces itself to the servers.
    pub intro_token: String,
}

impl AgentSettings {
    /// The defaults.
    pub(crate) fn defaults() -> AgentSettings {
        AgentSettings {
            dev: false,
            region: "global".to_string(),
            datacenter: "dc1".to_string(),
            name: String::new(),
            data_dir: None,
            bind_addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            addresses: Addresses::default(),
            advertise: Advertise::default(),
            ports: Ports { http: 4646, rpc: 4647, serf: 4648 },
            log: LogSettings {
                level: tracing::Level::INFO,
                json: false,
                include_location: false,
                file: None,
                rotate_bytes: 0,
                rotate_duration: Duration::from_secs(24 * 60 * 60),
                rotate_max_files: 0,
            },
            audit: AuditConfig::default(),
            history: HistoryConfig::default(),
            limits: LimitSettings {
                http_max_conns_per_client: AddressLimit::MAX as u32,
                http_proxies: AddressLimit::default().proxies,
                rpc_max_conns_per_client: wire::Limits::SERVER.connections_per_ip as u32,
                rpc_handshake_timeout: wire::Limits::SERVER.handshake.into(),
                https_handshake_timeout: listener::HANDSHAKE_TIMEOUT.into(),
            },
            tls: TlsSettings::default(),
            acl: AccessSettings::default(),
            enable_debug: false,
            prometheus_metrics: false,
            telemetry: TelemetrySettings::default(),
            ui: UiSettings { enabled: true, show_cli_hints: true, folder: None },
            response_headers: BTreeMap::new(),
            server: ServerSettings {
                enabled: false,
                bootstrap_expect: 0,
                join: JoinSettings::defaults(),
                encrypt: None,
                authoritative_region: String::new(),
                replication_token: String::new(),
                raise_epoch: true,
                num_schedulers: None,
                job_max_count: 50_000,
                sinks: AddressRules::default(),
                placement_lag_max: BrokerSettings::default().lag_max,
                heartbeats: HeartbeatSettings::default(),
                garbage: GarbageSettings::default(),
                introduction: IntroductionSettings::default(),
                root_keys: RootKeySettings::default(),
                oidc_issuer: None,
                scheduler: SchedulerRules::default(),
                scrub_interval: Duration::from_secs(24 * 60 * 60),
            },
            autopilot: Autopilot::default(),
            leave_on_terminate: false,
            leave_on_interrupt: false,
            client: ClientSettings::defaults(),
            consul: None,
            consul_usual: ConsulConfig::usual(),
            vaults: VaultConfigs::new(),
            plugins: BTreeMap::new(),
            plugin_dir: None,
            external_plugins: BTreeMap::new(),
            recording: None,
            notes: Vec::new(),
            files: Vec::new(),
        }
    }

    /// What `-dev` means: server and client in one process, on the loopback, without persistent state.
    pub(crate) fn dev() -> AgentSettings {
        let mut settings = AgentSettings::defaults();
        settings.dev = true;
        settings.bind_addr = IpAddr::V4(Ipv4Addr::LOCALHOST);
        settings.log.level = tracing::Level::DEBUG;
        settings.enable_debug = true;
        settings.prometheus_metrics = true;
        settings.telemetry.publish_node_metrics = true;
        settings.telemetry.publish_allocation_metrics = true;
        settings.server.enabled = true;
        settings.server.bootstrap_expect = 1;
        settings.client.enabled = true;
        settings.client.network_interface = "lo".to_string();
        settings.client.gc_interval = Duration::from_secs(600);
        settings.client.gc_disk_usage_threshold = 99;
        settings.client.gc_inode_usage_threshold = 99;
        settings.plugins = plugins::of_dev();
        settings
    }

    /// The directory of plugins that are programs of their own.
    pub(crate) fn plugin_dir(&self) -> Option<PathBuf> {
        self.plugin_dir.clone().or_else(|| Some(self.data_dir.as_ref()?.join("plugins")))
    }

    /// Where the HTTP API listens.
    pub(crate) fn http_ip(&self) -> IpAddr {
        self.addresses.http.unwrap_or(self.bind_addr)
    }

    /// Where the node RPC listens.
    pub(crate) fn rpc_ip(&self) -> IpAddr {
        self.addresses.rpc.unwrap_or(self.bind_addr)
    }

    /// Where gossip between servers listens.
    pub(crate) fn serf_ip(&self) -> IpAddr {
        self.addresses.serf.unwrap_or(self.bind_addr)
    }

    /// Checks rules that involve several settings.
    ///
    /// # Errors
    /// A message for the operator.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if !self.server.enabled && !self.client.enabled {
            bail!("Must specify either server, client or dev mode for the agent.");
        }
        match &self.data_dir {
            None if !self.dev => {
                bail!("data_dir is required: where the agent keeps its state");
            }
            Some(dir) if !dir.is_absolute() => {
                bail!("data_dir must be absolute: \"{}\" is not", dir.display());
            }
            None | Some(_) => {}
        }
        let token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let fits = |name: &str, value: &str| {
            !name.is_empty() && name.chars().all(token) && value.chars().all(|c| (' '..='~').contains(&c))
        };
        if let Some((name, _)) = self.response_headers.iter().find(|(name, value)| !fits(name, value)) {
            bail!("http_api_response_headers: \"{name}\" is not a header of HTTP");
        }
        check_thresholds(&self.server)?;
        if let Some(issuer) = self.server.oidc_issuer.as_deref().filter(|issuer| !is_web_address(issuer)) {
            bail!("server.oidc_issuer: expected an address like https://cluster.example, got \"{issuer}\"");
        }
        cluster::check(self)?;
        if self.client.enabled && !self.server.enabled && self.client.servers.is_empty() {
            bail!("client.servers is required when the agent is no server itself");
        }
        if self.client.gc_parallel_destroys == 0 {
            bail!("client.gc_parallel_destroys = 0: expected at least 1");
        }
        if self.client.min_dynamic_port > self.client.max_dynamic_port {
            bail!("client.min_dynamic_port is above client.max_dynamic_port");
        }
        Ok(())
    }
}

/// Of a host, perhaps with a path, and nothing behind it: paths are appended to it.
fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '"' | '\\');
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(plain))
}

/// # Errors
/// The first interval or threshold that is too short.
fn check_thresholds(server: &ServerSettings) -> anyhow::Result<()> {
    let GarbageSettings { every, jobs_after, nodes_after, leftovers } = &server.garbage;
    let LeftoverAges { evals, batch_evals, deployments } = leftovers;
    let keys = &server.root_keys;
    let (second, none) = (Duration::from_secs(1), Duration::ZERO);
    let least = [
        ("job_gc_interval", every, second),
        ("job_gc_threshold", jobs_after, none),
        ("node_gc_threshold", nodes_after, none),
        ("eval_gc_threshold", evals, none),
        ("batch_eval_gc_threshold", batch_evals, none),
        ("deployment_gc_threshold", deployments, none),
        ("root_key_gc_interval", &keys.every, second),
        ("root_key_gc_threshold", &keys.remove_after, none),
        ("root_key_rotation_threshold", &keys.rotate_after, Duration::from_secs(60)),
    ];
    match least.iter().find(|(_, given, least)| *given < least) {
        Some((key, given, least)) => bail!("server.{key} = {given}: expected at least {least}"),
        None => Ok(()),
    }
}

impl ClientSettings {
    fn defaults() -> ClientSettings {
        ClientSettings {
            enabled: false,
            servers: Vec::new(),
            state_dir: None,
            alloc_dir: None,
            node_class: String::new(),
            node_pool: "default".to_string(),
            meta: BTreeMap::new(),
            options: BTreeMap::new(),
            host_volumes: BTreeMap::new(),
            host_volumes_dir: None,
            host_volume_plugin_dir: None,
            drivers: NameFilter::default(),
            fingerprints: NameFilter::default(),
            clouds: Probes::new(),
            chroot_env: BTreeMap::new(),
            cgroup_parent: String::new(),
            denied_users: DeniedUsers::default(),
            dynamic_users: DynamicUsers::default(),
            log_sinks: BTreeMap::new(),
            dns: None,
            network_interface: String::new(),
            network_speed: 0,
            preferred_address_family: AddressFamily::default(),
            nomad_service_discovery: true,
            id_of_host: false,
            network: NetworkSettings::default(),
            reserved: ReservedSettings::default(),
            reservable_cores: Vec::new(),
            disable_remote_exec: false,
            cpu_total_compute: 0,
            memory_total_mb: 0,
            disk_total_mb: 0,
            min_dynamic_port: 20_000,
            max_dynamic_port: 32_000,
            max_kill_timeout: Duration::from_secs(30),
            gc_interval: Duration::from_secs(60),
            gc_disk_usage_threshold: 80,
            gc_inode_usage_threshold: 70,
            gc_max_allocs: 50,
            ephemeral_disk_quota: false,
            gc_volumes_on_node_gc: false,
            gc_parallel_destroys: 2,
            drain_on_shutdown: None,
            node_max_allocs: 0,
            default_ineligible: false,
            templates: TemplateSettings::usual(),
            artifacts: ArtifactConfig::usual(),
            common_plugin_dir: None,
            intro_token: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_collected_with_pauses() {
        let mut settings = AgentSettings::dev();
        settings.check().unwrap();
        settings.server.garbage.every = Duration::ZERO;
        assert!(
            settings
                .check()
                .unwrap_err()
                .to_string()
                .contains("server.job_gc_interval = 0s: expected at least 1s")
        );
    }
}

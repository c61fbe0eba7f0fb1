//! What the operator decides about a node. Plain data, read once by the program that embeds the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use monitor::Monitor;
use serde_json::{Map, Value};
use tls::AgentTls;

use crate::artifacts::ArtifactSettings;
use crate::csi::CsiSettings;
use crate::dns::DnsSettings;
use crate::driver::registry::{BuiltinDriver, PluginConfigs};
use crate::fingerprint::cloud::Probes;
use crate::log_shipping::sink::SinkAddress;
use crate::network::NetworkSettings;
use crate::services::consul::Consul;
use crate::templates::TemplateSettings;
use crate::users::DynamicUsers;
use crate::vault::VaultSettings;

#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Identity, local state and executors; made 0700.
    pub state_dir: PathBuf,
    /// One directory an allocation; made 0711.
    pub alloc_dir: PathBuf,
    /// What an allocation stores is bounded by `ephemeral_disk.size` of its group, by quotas of the file system.
    pub ephemeral_disk_quota: bool,
    /// A new node is given an id that follows from the host.
    pub id_of_host: bool,
    /// All allocations are destroyed when the agent stops; retries come after a second.
    pub dev: bool,
    /// The directories go with the agent: nothing is stored in them for the next one.
    pub ephemeral: bool,
    pub region: String,
    pub datacenter: String,
    /// Empty for the host's name.
    pub node_name: String,
    pub node_class: String,
    pub node_pool: String,
    pub meta: BTreeMap<String, String>,
    /// Where this agent's HTTP API can be reached, `host:port`.
    pub http_address: String,
    pub tls_http: bool,
    /// What this agent proves itself with to other nodes, and whom it trusts as one.
    pub tls: Option<Arc<AgentTls>>,
    pub reserved: Reserved,
    /// The processors that tasks may get for themselves; empty for all.
    pub reservable_cores: Vec<u16>,
    /// Nobody runs commands in tasks of this node.
    pub disable_remote_exec: bool,
    pub capacity: Capacity,
    /// Empty for the interface of the default route.
    pub network_interface: String,
    /// Megabits a second, in place of what interfaces say of themselves; 0 measures.
    pub network_speed_mbits: u64,
    /// Addresses of IPv6 stand before those of IPv4.
    pub ipv6_first: bool,
    /// Services of tasks may be registered with the servers.
    pub service_discovery: bool,
    /// Networks of groups.
    pub network: NetworkSettings,
    /// Where services are found by the DNS; `None` for nowhere.
    pub dns: Option<DnsSettings>,
    pub min_dynamic_port: u16,
    pub max_dynamic_port: u16,
    /// The longest time that a job may set between the kill signal and SIGKILL.
    pub max_kill_timeout: Duration,
    /// The drivers that this program contains; usually [`crate::drivers::BUILTIN`].
    pub drivers: Vec<&'static BuiltinDriver>,
    /// Which of them this node has.
    pub driver_filter: NameFilter,
    /// Which parts of the host are looked at: `arch`, `cgroup`, `cpu`, `host`, `memory`, `network`, `nomad`, `signal`,
    /// `storage` and the clouds.
    pub fingerprint_filter: NameFilter,
    /// How the clouds are looked for that this machine may be in.
    pub clouds: Probes,
    pub host_volumes: BTreeMap<String, HostVolume>,
    /// Where volumes are made that servers ask for.
    pub host_volumes_dir: PathBuf,
    /// Programs that make such volumes.
    pub host_volume_plugin_dir: PathBuf,
    /// Servers forget such volumes with the node.
    pub gc_volumes_on_node_gc: bool,
    pub csi: CsiSettings,
    /// The `config` of each `plugin` block, by driver.
    pub plugins: PluginConfigs,
    /// Where plugins are that are programs of their own.
    pub plugin_dir: PathBuf,
    /// Those that this node has, by the names of their files.
    pub external_plugins: BTreeMap<String, ExternalPlugin>,
    /// The program, by its absolute path, that becomes an executor when called `<program> executor <directory>`, and fetches
    /// an artifact when called `<program> artifact`; see [`executor::main`] and [`artifact::main`].
    pub executor_program: PathBuf,
    /// The parent of the control groups of tasks; empty for Nomad's.
    pub cgroup_parent: String,
    /// What of the host tasks of `exec` see, and where; empty for what programs need.
    pub chroot_env: BTreeMap<PathBuf, PathBuf>,
    pub denied_users: DeniedUsers,
    /// Users of the host that tasks may have for themselves.
    pub dynamic_users: DynamicUsers,
    /// Where output of tasks may be sent to, by the names that jobs use.
    pub log_sinks: BTreeMap<String, SinkAddress>,
    /// Registers as not to be scheduled on.
    pub default_ineligible: bool,
    /// 0 for no bound.
    pub node_max_allocs: u32,
    pub gc: GcSettings,
    pub templates: TemplateSettings,
    /// The Consul agent beside this one, if there is one. Whoever makes it also runs it.
    pub consul: Option<Arc<Consul>>,
    /// The Vaults that tasks may log in to.
    pub vaults: Vec<VaultSettings>,
    pub artifacts: ArtifactSettings,
    /// Files that a task may have open until it asks for more; `None` for as many as this process.
    pub task_open_files: Option<u64>,
    /// Where plugins are that need no settings: those for secrets are below `secrets`.
    pub common_plugin_dir: PathBuf,
    /// With what a node that the servers do not know introduces itself. Empty for what the state directory holds, if it
    /// does.
    pub intro_token: String,
    /// What this process logs, for those who follow it through a server.
    pub log: Monitor,
    /// What the host looks like may be shown, environment included.
    pub debug: bool,
}

/// The `plugin` block of a program in the plugin directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExternalPlugin {
    pub args: Vec<String>,
    /// Its `config`, which the plugin itself has a schema for.
    pub config: Map<String, Value>,
}

/// A directory of the host that jobs can ask for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostVolume {
    /// Must exist when the agent starts.
    pub path: PathBuf,
    pub read_only: bool,
}

/// Users of the host that no task of some drivers may run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedUsers {
    pub names: BTreeSet<String>,
    pub drivers: BTreeSet<String>,
}

impl Default for DeniedUsers {
    fn default() -> DeniedUsers {
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        DeniedUsers { names: set(&["root", "Administrator"]), drivers: set(&["exec", "qemu", "java"]) }
    }
}

/// Which of some names an operator wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameFilter {
    /// Empty for all.
    pub allowed: BTreeSet<String>,
    pub denied: BTreeSet<String>,
}

impl NameFilter {
    pub fn allows(&self, name: &str) -> bool {
        (self.allowed.is_empty() || self.allowed.contains(name)) && !self.denied.contains(name)
    }
}

/// What the scheduler must not use.
#[derive(Clone, Debug, Default)]
pub struct Reserved {
    pub cpu_mhz: u64,
    pub memory_mib: u64,
    pub disk_mib: u64,
    /// Port ranges such as `22,80,8500-8600`.
    pub ports: String,
    pub cores: Vec<u16>,
}

/// Values that replace a measurement; 0 measures.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity {
    pub cpu_mhz: u64,
    pub memory_mib: u64,
    pub disk_mib: u64,
}

/// When directories of allocations that have ended are removed, oldest end first.
#[derive(Clone, Copy, Debug)]
pub struct GcSettings {
    pub interval: Duration,
    /// Above this use of the disk of the allocations, in percent.
    pub disk_usage_percent_max: u8,
    pub inode_usage_percent_max: u8,
    /// Above this number of allocations, living ones included.
    pub allocs_max: usize,
    /// How many are removed at the same time.
    pub parallel_destroys: usize,
}

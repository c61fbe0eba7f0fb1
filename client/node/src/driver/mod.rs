//! What every driver does, and what the agent knows about drivers. The drivers themselves are in [`crate::drivers`].
//!
//! [`Driver`] starts tasks and finds them again after a restart of the agent; [`RunningTask`] is one of its tasks.
//! [`registry`] holds the drivers that the configuration asks for, [`schema`] checks configuration blocks, and
//! [`process`] is the shared part of all drivers whose tasks are processes below an executor.

pub mod capabilities;
pub mod exec;
mod handle;
pub mod process;
pub mod registry;
pub mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use executor::Exit;
use executor::cgroup::GroupUsage;
use executor::spec::LogSpec;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use model::document::PortMapping;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

pub use exec::{Exec, ExecConfig, ExecError};
pub use handle::TaskHandle;
pub use registry::Drivers;
pub use schema::{Field, Schema, ValueType, Values};

use crate::layout::TaskDir;

/// Starts and finds tasks. One object per driver of a node.
pub trait Driver: Debug + Send + Sync {
    /// The name that jobs use. It never changes.
    fn name(&self) -> &str;

    /// The key under which its handles are stored. It must never change: handles on disk carry it.
    fn handle_key(&self) -> &str {
        self.name()
    }

    fn capabilities(&self) -> Capabilities;

    /// What its tasks can do in the network of a group.
    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::No
    }

    /// Makes the network namespace of an allocation, with the hostname that its job gives it; one that is there already
    /// stays. Returns the path of the namespace. Only for drivers that [`GroupNetworks::Makes`] is of.
    fn create_network<'a>(
        &'a self,
        _alloc_id: &'a str,
        _hostname: Option<&'a str>,
    ) -> BoxFuture<'a, Result<PathBuf, DriverError>> {
        Box::pin(std::future::ready(Err(DriverError::Failed("the driver makes no networks".to_string()))))
    }

    /// Removes that again. It is no error when there is none.
    fn destroy_network<'a>(&'a self, _alloc_id: &'a str) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// True if its tasks can have a user that only their number makes one, [`TaskConfig::dynamic_user`].
    fn has_dynamic_users(&self) -> bool {
        false
    }

    /// The keys of the `config` block of its tasks. `None` for a driver that checks [`TaskConfig::block`] itself.
    fn task_schema(&self) -> Option<Schema>;

    /// Health and attributes: the first item at once, then one whenever something may have changed.
    fn fingerprint(&self) -> BoxStream<'static, Fingerprint>;

    /// Returns when the task runs.
    ///
    /// # Errors
    /// When it does not; a recoverable error is tried again under the restart policy of the task.
    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>>;

    /// Finds the task of an earlier agent. `state` is what [`Started::state`] was.
    ///
    /// # Errors
    /// When neither the task nor a record of its exit can be found.
    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>>;

    /// Removes what is left of a task. `force` also ends it if it still runs.
    ///
    /// # Errors
    /// [`DriverError::StillRunning`] without `force`.
    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>>;

    /// Ends tasks that no stored handle names: an agent died after it had started them and before it stored them.
    fn end_unknown<'a>(&'a self, _known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Messages about tasks while they start or run, such as the progress of a download.
    fn events(&self) -> BoxStream<'static, DriverEvent> {
        stream::pending().boxed()
    }
}

/// What earlier agents have stored that this one goes on with.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Of the tasks of all drivers.
    pub handles: Vec<TaskHandle>,
    /// The ids of the allocations.
    pub allocs: BTreeSet<String>,
}

/// One task that a driver has started or found again.
pub trait RunningTask: Debug + Send + Sync {
    /// Returns when the task has ended or its driver is lost; at once if that was so before.
    fn wait(&self) -> BoxFuture<'_, Outcome>;

    /// Asks with `signal` (`None`: the driver's default), kills after `grace`, and returns when the task has ended.
    ///
    /// # Errors
    /// When the task could not be reached; it may still run.
    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>>;

    /// # Errors
    /// When the task has ended or the driver rejects it.
    fn signal(&self, signal: Signal) -> BoxFuture<'_, Result<(), DriverError>>;

    fn inspect(&self) -> BoxFuture<'_, TaskStatus>;

    /// What the task uses: the first item at once, then one after each interval. Ends with the task.
    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage>;

    /// Runs a command inside the task with open streams; [`exec::run_once`] collects its output instead.
    ///
    /// # Errors
    /// When the command cannot be run.
    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>>;
}

/// What tasks of a driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Signals can be sent to its tasks.
    pub signals: bool,
    /// Commands can be run inside its tasks.
    pub exec: bool,
    pub fs_isolation: FsIsolation,
    /// Its tasks can be given volumes: they have a view of the file system of their own.
    pub mounts: bool,
    /// It can keep its tasks from writing to a device file that they are given.
    pub device_permissions: bool,
}

/// What tasks of a driver can do in the network of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupNetworks {
    /// They are in the network of the host.
    No,
    /// They join a namespace by its path, [`TaskConfig::network_namespace`].
    Joins,
    /// The same, and the driver has to make the namespace itself.
    Makes,
}

/// What a task sees of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsIsolation {
    /// The host's.
    None,
    /// Its own directory as the root.
    Chroot,
    /// The one of its image.
    Image,
}

/// What a driver reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    pub health: Health,
    pub description: String,
    /// Attributes of the node, such as `driver.raw_exec`.
    pub attributes: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The driver is not installed or is disabled.
    Undetected,
    Unhealthy,
    Healthy,
}

impl Fingerprint {
    pub fn healthy(attributes: impl IntoIterator<Item = (String, String)>) -> Fingerprint {
        let attributes = attributes.into_iter().collect();
        Fingerprint { health: Health::Healthy, description: "Healthy".to_string(), attributes }
    }

    pub fn undetected(description: &str) -> Fingerprint {
        Fingerprint {
            health: Health::Undetected,
            description: description.to_string(),
            attributes: BTreeMap::new(),
        }
    }

    /// For drivers whose fingerprint never changes.
    pub fn once(self) -> BoxStream<'static, Fingerprint> {
        stream::iter([self]).boxed()
    }
}

/// Everything a driver needs to start a task once.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    pub alloc_id: String,
    pub task: String,
    /// 8 hex digits, new for each start.
    pub instance: String,
    /// The job's `config` block, interpolated and checked against [`Driver::task_schema`].
    pub config: Values,
    /// The same as the job has it, for drivers without a schema; empty for the others.
    pub block: BTreeMap<String, Value>,
    pub env: BTreeMap<String, String>,
    /// Empty for the driver's own choice.
    pub user: String,
    /// A user of the task's own, if it asked for one; then `user` is empty.
    pub dynamic_user: Option<DynamicUser>,
    pub dir: TaskDir,
    /// The directory that all tasks of the allocation share.
    pub shared_dir: PathBuf,
    /// None where the job wants no logs.
    pub logs: Option<Logs>,
    pub limits: Limits,
    /// Cores of the node that are the task's alone; empty for none.
    pub cores: Vec<u16>,
    /// The ports that its group has on the node.
    pub ports: Vec<PortMapping>,
    /// Volumes of the host; only drivers whose tasks have files of their own get some.
    pub mounts: Vec<TaskMount>,
    /// Device files of the host that the task may use.
    pub devices: Vec<TaskDevice>,
    /// What of `env` tells the task which devices it has.
    pub device_env: BTreeMap<String, String>,
    /// The network namespace that the task has to be in; `None` for that of the host.
    pub network_namespace: Option<PathBuf>,
    /// What the task gets as `/etc/hosts` and `/etc/resolv.conf`; only for tasks in a namespace, or whose group has a
    /// `dns` block.
    pub hosts_file: Option<PathBuf>,
    pub resolv_conf: Option<PathBuf>,
    pub names: TaskNames,
}

/// A user that no file of the host names. Its group has the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicUser {
    pub uid: u32,
    /// As the task sees it.
    pub home: PathBuf,
}

/// A directory of the host that a task sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMount {
    pub host_path: PathBuf,
    pub task_path: String,
    pub read_only: bool,
    /// As the kernel calls it: `rprivate`, `rslave` or `rshared`.
    pub propagation: &'static str,
    /// Empty for none.
    pub selinux_label: String,
}

/// A device file of the host that a task may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDevice {
    pub host_path: PathBuf,
    pub task_path: String,
    /// Some of `r`, `w` and `m`.
    pub permissions: String,
}

/// What a task belongs to, for labels and messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskNames {
    pub namespace: String,
    pub job_id: String,
    pub job_name: String,
    /// Empty for a job that no other has started.
    pub parent_job_id: String,
    pub group: String,
    pub node_id: String,
    pub node_name: String,
}

/// Where the two output streams of a task are written.
#[derive(Clone, Debug)]
pub struct Logs {
    pub stdout: LogSpec,
    pub stderr: LogSpec,
}

/// The resources of a task. `memory_max_mb` 0 means none, -1 no hard limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub cpu_mhz: i64,
    pub memory_mb: i64,
    pub memory_max_mb: i64,
    /// What the whole node has, for drivers that need the task's share of it; 0 when that is not known.
    pub node_cpu_mhz: i64,
    pub node_cores: i64,
}

/// The shares of the CPU that a control group can have.
const SHARES: (i64, i64) = (2, 262_144);

impl Limits {
    /// As many as MHz, unless the node has more of these than there are shares.
    pub fn cpu_shares(&self) -> i64 {
        let Limits { cpu_mhz, node_cpu_mhz, .. } = *self;
        let shares = if node_cpu_mhz > SHARES.1 {
            (i128::from(cpu_mhz) * i128::from(SHARES.1) / i128::from(node_cpu_mhz)) as i64
        } else {
            cpu_mhz
        };
        shares.clamp(SHARES.0, SHARES.1)
    }
}

/// Why a task did not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The job's configuration is wrong; no retry can help.
    #[error("{0}")]
    Invalid(String),
    #[error("{message}")]
    Failed { message: String, recoverable: bool },
}

impl StartError {
    pub fn fatal(message: impl std::fmt::Display) -> StartError {
        StartError::Failed { message: message.to_string(), recoverable: false }
    }

    pub fn transient(message: impl std::fmt::Display) -> StartError {
        StartError::Failed { message: message.to_string(), recoverable: true }
    }
}

/// Why a driver could not do something with a task that was started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    #[error("unknown driver")]
    UnknownDriver,
    /// The handle is not one of this driver, or is damaged.
    #[error("unreadable task handle: {0}")]
    Handle(String),
    #[error("the task still runs")]
    StillRunning,
    #[error("{0}")]
    Failed(String),
}

impl DriverError {
    pub fn failed(error: impl std::fmt::Display) -> DriverError {
        DriverError::Failed(error.to_string())
    }
}

/// The network a driver gave a task, when it gave one of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverNetwork {
    pub ip: String,
    pub port_map: BTreeMap<String, i64>,
    pub auto_advertise: bool,
}

/// A task that was started.
#[derive(Debug)]
pub struct Started {
    pub task: Arc<dyn RunningTask>,
    /// Stored by the agent, and given back to [`Driver::recover`] and [`Driver::destroy`]. Later releases must still
    /// be able to read it: fields are only ever added.
    pub state: Value,
    pub network: Option<DriverNetwork>,
}

/// How the watch over a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Exited(Exit),
    /// The driver died, the task may live: recover it with its handle.
    DriverLost,
}

/// What [`RunningTask::inspect`] returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// None while the task runs.
    pub outcome: Option<Outcome>,
    /// What the driver knows about it besides, for people to read.
    pub attributes: BTreeMap<String, String>,
}

/// What a task has used so far (CPU, in clock ticks) and uses now (memory, in bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub resident_bytes: u64,
    pub processes: u64,
    /// What its control group says beyond that, where it has one of its own.
    pub group: GroupUsage,
}

/// A message of a driver about one of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverEvent {
    pub alloc_id: String,
    pub task: String,
    pub message: String,
}

/// The outcome of a task as a channel: for drivers that watch their tasks in the background.
pub async fn outcome_of(mut outcome: watch::Receiver<Option<Outcome>>) -> Outcome {
    match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().expect("waited until there is an outcome"),
        Err(_) => Outcome::DriverLost,
    }
}

/// A stream of readings, the first at once, for as long as `read` returns some.
pub fn sampled<T, F>(interval: Duration, read: F) -> BoxStream<'static, T>
where
    T: Send + 'static,
    F: FnMut() -> Option<T> + Send + 'static,
{
    let next = move |(mut read, wait): (F, Duration)| async move {
        tokio::time::sleep(wait).await;
        Some((read()?, (read, interval)))
    };
    stream::unfold((read, Duration::ZERO), next).boxed()
}

/// The signal of this name, with or without `SIG`.
pub fn signal_named(name: &str) -> Option<Signal> {
    let upper = name.to_uppercase();
    let full = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    full.parse().ok()
}

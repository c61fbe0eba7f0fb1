//! What runs tasks. A driver starts one, finds it again after a restart of the agent, and stops it.

pub mod config;
pub mod exec;
pub mod mock;
pub mod raw_exec;

use std::collections::BTreeMap;
use std::time::Duration;

use executor::Exit;
use executor::spec::LogSpec;
use model::document::{DriverInfo, Timestamp};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

pub use exec::{Exec, ExecConfig, ExecError};

use crate::layout::TaskDir;

/// All that a driver needs to start one task once.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    pub alloc_id: String,
    pub task: String,
    /// 8 hex digits, new for each start.
    pub instance: String,
    /// The job's `config` block with its texts replaced.
    pub config: BTreeMap<String, Value>,
    pub env: BTreeMap<String, String>,
    /// Empty for the driver's own choice.
    pub user: String,
    pub dir: TaskDir,
    /// None where the job wants no logs.
    pub logs: Option<Logs>,
    pub limits: Limits,
}

/// Where the two streams of a task go.
#[derive(Clone, Debug)]
pub struct Logs {
    pub stdout: LogSpec,
    pub stderr: LogSpec,
}

/// What a task was granted. `memory_max_mb` 0 means none, -1 no hard limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub cpu_mhz: i64,
    pub memory_mb: i64,
    pub memory_max_mb: i64,
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

/// The network a driver gave a task, when it gave one of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverNetwork {
    pub ip: String,
    pub port_map: BTreeMap<String, i64>,
    pub auto_advertise: bool,
}

/// What is stored to find a running task again. Older agents' handles must stay readable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handle {
    RawExec(raw_exec::Handle),
    Mock(Box<mock::Handle>),
}

/// A task that was started.
#[derive(Debug)]
pub struct Started {
    pub handle: Handle,
    pub running: Running,
    pub network: Option<DriverNetwork>,
}

/// What a running task came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Exited(Exit),
    /// The driver died, the task may live: recover it by its handle.
    DriverLost,
}

/// A running task under control.
#[derive(Debug)]
pub struct Running {
    outcome: watch::Receiver<Option<Outcome>>,
    control: Control,
}

#[derive(Debug)]
enum Control {
    RawExec(raw_exec::Link),
    Mock(mock::Link),
}

/// What a task has used so far (CPU, in clock ticks) and uses now (memory, in bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub resident_bytes: u64,
    pub processes: u64,
}

impl Running {
    /// Returns when the task has ended or its driver is lost; at once if that was so before.
    pub async fn wait(&mut self) -> Outcome {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().expect("waited until there is an outcome"),
            Err(_) => Outcome::DriverLost,
        }
    }

    /// Asks with `signal`, forces after `grace`, and returns when the task has ended.
    ///
    /// # Errors
    /// When the task could not be told; it may still run.
    pub async fn stop(&mut self, signal: Signal, grace: Duration) -> Result<Outcome, String> {
        match &self.control {
            Control::RawExec(link) => link.stop(signal, grace).await?,
            Control::Mock(link) => link.stop(),
        }
        Ok(self.wait().await)
    }

    /// # Errors
    /// The driver's words, when the task has ended or refuses.
    pub async fn signal(&self, signal: Signal) -> Result<(), String> {
        match &self.control {
            Control::RawExec(link) => link.signal(signal).await,
            Control::Mock(link) => link.signal(),
        }
    }
}

/// Reads what a task uses.
#[derive(Clone, Copy, Debug)]
pub struct Meter(Option<i32>);

impl Meter {
    pub fn of(handle: &Handle) -> Meter {
        match handle {
            Handle::RawExec(handle) => Meter(raw_exec::executor_pid(handle)),
            Handle::Mock(_) => Meter(None),
        }
    }

    pub fn read(self) -> Usage {
        self.0.map(raw_exec::usage).unwrap_or_default()
    }
}

/// Which drivers this node has, and how they are set.
#[derive(Debug)]
pub struct Drivers {
    pub raw_exec: raw_exec::RawExec,
    /// None outside of tests and development.
    pub mock: Option<mock::Mock>,
}

impl Drivers {
    /// # Errors
    /// When there is no such driver here, or it refuses, or fails.
    pub async fn start(&self, driver: &str, config: TaskConfig) -> Result<Started, StartError> {
        match (driver, &self.mock) {
            ("raw_exec", _) => self.raw_exec.start(config).await,
            ("mock_driver", Some(mock)) => mock.start(config).await,
            _ => Err(StartError::fatal(format!("failed to get driver \"{driver}\": unknown driver"))),
        }
    }

    /// Finds a task that an earlier agent started.
    ///
    /// # Errors
    /// When neither the task nor the record of its end can be found.
    pub async fn recover(&self, handle: &Handle) -> Result<Running, String> {
        match (handle, &self.mock) {
            (Handle::RawExec(handle), _) => raw_exec::recover(handle),
            (Handle::Mock(handle), Some(mock)) => Ok(mock.recover(handle)),
            (Handle::Mock(_), None) => Err("unknown driver".to_string()),
        }
    }

    /// Runs a command inside a task.
    ///
    /// # Errors
    /// When it cannot be run, or the driver fails.
    pub async fn exec(&self, handle: &Handle, config: ExecConfig) -> Result<Exec, ExecError> {
        match handle {
            Handle::RawExec(handle) => raw_exec::exec(handle, config).await,
            Handle::Mock(handle) => mock::run_command(handle),
        }
    }

    /// Forgets a task that has ended, and ends one that was lost.
    pub fn destroy(&self, handle: &Handle) {
        match handle {
            Handle::RawExec(handle) => raw_exec::destroy(handle),
            Handle::Mock(_) => {}
        }
    }

    /// Each driver by name, as the servers see it.
    pub fn fingerprint(&self, now: base::Time) -> BTreeMap<String, DriverInfo> {
        let info = |detected: bool, description: &str, attribute: (&str, &str)| DriverInfo {
            attributes: detected
                .then(|| (attribute.0.to_string(), attribute.1.to_string()))
                .into_iter()
                .collect(),
            detected,
            healthy: detected,
            health_description: description.to_string(),
            update_time: Timestamp::from(now),
        };
        let enabled = self.raw_exec.settings.enabled;
        let raw_exec = info(enabled, if enabled { "Healthy" } else { "disabled" }, ("driver.raw_exec", "1"));
        let mut drivers = BTreeMap::from([("raw_exec".to_string(), raw_exec)]);
        if self.mock.is_some() {
            drivers.insert("mock_driver".into(), info(true, "Healthy", ("driver.mock_driver", "1")));
        }
        drivers
    }
}

/// The signal of this name, with or without `SIG`.
pub fn signal_named(name: &str) -> Option<Signal> {
    let upper = name.to_uppercase();
    let full = if upper.starts_with("SIG") { upper } else { format!("SIG{upper}") };
    full.parse().ok()
}

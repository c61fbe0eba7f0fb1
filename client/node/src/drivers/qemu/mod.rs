//! Virtual machines, each a process of QEMU below an executor.
//!
//! The machine isolates what runs in it; the process itself is a plain one of the host, without a limit of memory: it needs
//! some beside that of the machine. Which files and arguments a job may name is the operator's business.

mod command;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use executor::spec::{CgroupSpec, ExecutorSpec};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::driver::process::{self, Executors, find_user};
use crate::driver::registry::{BuiltinDriver, DriverHost};
use crate::driver::{
    Capabilities, Driver, DriverError, Exec, ExecConfig, ExecError, Field, Fingerprint, FsIsolation,
    GroupNetworks, Known, Outcome, RunningTask, Schema, StartError, Started, TaskConfig, TaskStatus, Usage,
    ValueType, Values,
};

pub const BUILTIN: BuiltinDriver = BuiltinDriver {
    name: NAME,
    plugin_schema: Schema(&[&[
        // Directories outside of the allocation's in which images may be.
        Field::optional("image_paths", ValueType::TextList),
        // The flags that a job may give; all unless set.
        Field::optional("args_allowlist", ValueType::TextList),
        Field::optional("emulators_allowlist", ValueType::TextList),
    ]]),
    dev_config: &[],
    legacy_options: &[],
    make,
};

const NAME: &str = "qemu";

/// The program of an emulator is this and the name of the processor.
const PROGRAM: &str = "qemu-system-";

const TASK: Schema = Schema(&[&[
    Field::required("image_path", ValueType::Text),
    Field::optional("emulator", ValueType::Text),
    Field::optional("machine_type", ValueType::Text),
    Field::optional("accelerator", ValueType::Text),
    Field::optional("drive_interface", ValueType::Text),
    Field::optional("graceful_shutdown", ValueType::Boolean),
    Field::optional("guest_agent", ValueType::Boolean),
    Field::optional("args", ValueType::TextList),
    Field::optional("port_map", ValueType::TextMap),
]]);

/// The socket of the machine's monitor, in the directory of its task.
const MONITOR: &str = "qm.sock";

/// What the monitor says at first, and after each line.
const PROMPT: &[u8] = b"(qemu) ";

/// How long the monitor may take to take a line.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Qemu {
    /// Of the `plugin` block.
    config: Values,
    executors: Executors,
}

fn make(config: &Values, host: &DriverHost) -> Option<Arc<dyn Driver>> {
    Some(Arc::new(Qemu { config: config.clone(), executors: host.executors.clone() }))
}

/// What a handle holds beside the state of its executor.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct MachineState {
    /// The directory with the monitor's socket, for a machine that is asked to shut down.
    monitor: Option<PathBuf>,
}

impl Driver for Qemu {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            signals: false,
            exec: false,
            fs_isolation: FsIsolation::None,
            mounts: false,
            device_permissions: false,
        }
    }

    fn group_networks(&self) -> GroupNetworks {
        GroupNetworks::Joins
    }

    fn task_schema(&self) -> Option<Schema> {
        Some(TASK)
    }

    fn fingerprint(&self) -> BoxStream<'static, Fingerprint> {
        stream::once(detect()).boxed()
    }

    fn start(&self, config: TaskConfig) -> BoxFuture<'_, Result<Started, StartError>> {
        Box::pin(async move {
            let spec = self.spec(&config)?;
            let started = self.executors.start(&config.alloc_id, &config.instance, &spec).await?;
            let monitor = config.config.boolean("graceful_shutdown").then(|| config.dir.root.clone());
            let mut state = started.state;
            if let (Value::Object(state), Some(directory)) = (&mut state, &monitor) {
                let directory = directory
                    .to_str()
                    .ok_or_else(|| StartError::fatal("the path of the task is not text"))?;
                state.insert("monitor".to_string(), directory.into());
            }
            Ok(Started { task: with_monitor(started.task, monitor), state, network: started.network })
        })
    }

    fn recover<'a>(&'a self, state: &'a Value) -> BoxFuture<'a, Result<Arc<dyn RunningTask>, DriverError>> {
        Box::pin(async move {
            let machine =
                MachineState::deserialize(state).map_err(|error| DriverError::Handle(error.to_string()))?;
            Ok(with_monitor(process::recover(state)?, machine.monitor))
        })
    }

    fn destroy<'a>(&'a self, state: &'a Value, force: bool) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(process::destroy(state, force))
    }

    fn end_unknown<'a>(&'a self, known: &'a Known) -> BoxFuture<'a, ()> {
        Box::pin(self.executors.end_unknown(&known.handles))
    }
}

impl Qemu {
    fn spec(&self, config: &TaskConfig) -> Result<ExecutorSpec, StartError> {
        let (emulator, args) = command::of(&self.config, config).map_err(StartError::Invalid)?;
        let missing = || StartError::fatal(format!("binary \"{emulator}\" could not be found"));
        let program = emulators().into_iter().find(|path| path.ends_with(&emulator)).ok_or_else(missing)?;
        let mut env = config.env.clone();
        let user = find_user(&config.user, "", "", &mut env)?;
        Ok(ExecutorSpec {
            command: program,
            args,
            user: user.as_ref().map(|user| user.ids),
            groups: user.map(|user| user.groups).unwrap_or_default(),
            env,
            open_files: self.executors.open_files,
            cgroup: self.executors.cgroup(config).map(without_memory),
            network_namespace: config.network_namespace.clone(),
            work_dir: config.dir.root.clone(),
            stdout: config.logs.as_ref().map(|logs| logs.stdout.clone()),
            stderr: config.logs.as_ref().map(|logs| logs.stderr.clone()),
            ..ExecutorSpec::default()
        })
    }
}

/// The memory of a task is that of its machine.
fn without_memory(group: CgroupSpec) -> CgroupSpec {
    CgroupSpec { memory_max_bytes: None, memory_low_bytes: None, ..group }
}

fn with_monitor(task: Arc<dyn RunningTask>, monitor: Option<PathBuf>) -> Arc<dyn RunningTask> {
    match monitor {
        Some(directory) => Arc::new(Machine { task, directory }),
        None => task,
    }
}

/// A machine that is asked to shut down before it is ended.
#[derive(Debug)]
struct Machine {
    task: Arc<dyn RunningTask>,
    /// With the monitor's socket.
    directory: PathBuf,
}

impl RunningTask for Machine {
    fn wait(&self) -> BoxFuture<'_, Outcome> {
        self.task.wait()
    }

    fn stop(&self, signal: Option<Signal>, grace: Duration) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            let asked = Instant::now();
            match press_power_button(&self.directory).await {
                Ok(()) => {
                    if timeout(grace, self.task.wait()).await.is_ok() {
                        return Ok(());
                    }
                }
                Err(error) => {
                    let directory = self.directory.display();
                    tracing::warn!(%directory, %error, "a machine is ended without its monitor");
                }
            }
            self.task.stop(signal, grace.saturating_sub(asked.elapsed())).await
        })
    }

    fn signal(&self, signal: Signal) -> BoxFuture<'_, Result<(), DriverError>> {
        self.task.signal(signal)
    }

    fn inspect(&self) -> BoxFuture<'_, TaskStatus> {
        self.task.inspect()
    }

    fn stats(&self, interval: Duration) -> BoxStream<'static, Usage> {
        self.task.stats(interval)
    }

    fn exec(&self, config: ExecConfig) -> BoxFuture<'_, Result<Exec, ExecError>> {
        self.task.exec(config)
    }
}

async fn press_power_button(directory: &Path) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let press = async {
        // A short path: a socket's address holds 107 bytes. It is good as long as the directory is open.
        let directory = std::fs::File::open(directory)?;
        let path = format!("/proc/self/fd/{}/{MONITOR}", directory.as_raw_fd());
        let mut monitor = UnixStream::connect(path).await?;
        monitor.write_all(b"system_powerdown\n").await?;
        // A monitor whose caller is gone may drop what it has not read yet: its next prompt says that it has.
        let (mut said, mut chunk) = (Vec::new(), [0; 1024]);
        while said.windows(PROMPT.len()).filter(|window| *window == PROMPT).count() < 2 {
            match monitor.read(&mut chunk).await? {
                0 => break,
                length => said.extend_from_slice(&chunk[..length]),
            }
        }
        Ok(())
    };
    timeout(MONITOR_TIMEOUT, press).await?
}

/// The programs of emulators in PATH, each once.
fn emulators() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in std::env::split_paths(&path).filter(|directory| directory.is_absolute()) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_one = name.to_str().is_some_and(|name| name.starts_with(PROGRAM));
            if is_one && entry.path().is_file() && !found.iter().any(|other| other.file_name() == Some(&name))
            {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

async fn detect() -> Fingerprint {
    let programs = tokio::task::spawn_blocking(emulators).await.unwrap_or_default();
    let usual = format!("{PROGRAM}{}", command::EMULATOR);
    let Some(program) = programs.iter().find(|path| path.ends_with(&usual)).or(programs.first()) else {
        return Fingerprint::undetected("");
    };
    let run = tokio::process::Command::new(program).arg("--version").stdin(Stdio::null()).output().await;
    let said = run.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let Some(version) = version(&said) else { return Fingerprint::undetected("") };
    let names = programs.iter().filter_map(|path| path.file_name()?.to_str()?.strip_prefix(PROGRAM));
    let names: Vec<&str> = names.collect();
    let attributes = [("", "1".to_string()), (".version", version), (".emulators", names.join(","))];
    Fingerprint::healthy(attributes.map(|(name, value)| (format!("driver.qemu{name}"), value)))
}

/// Of `QEMU emulator version 7.2.18 (Debian …)`.
fn version(said: &str) -> Option<String> {
    let rest = said.split("version ").nth(1)?;
    let version: String = rest.chars().take_while(|char| char.is_ascii_digit() || *char == '.').collect();
    Some(version).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_says_its_version() {
        let said = "QEMU emulator version 7.2.18 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright";
        assert_eq!(version(said).as_deref(), Some("7.2.18"));
        assert_eq!(version("something else"), None);
    }
}

//! What the agent and an executor exchange: files in one private directory, and lines on a socket.
//!
//! The directory is 0700 in the agent's state directory, not in the task's own: the task could write there,
//! and its environment may hold secrets. An executor of an older release may still be alive when a newer
//! agent reads its files, so fields are only ever added, with defaults.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Exit;
use crate::process::ProcessIdentity;

/// The hidden subcommand that turns our program into an executor.
pub const SUBCOMMAND: &str = "executor";

/// What to run, written by the agent.
pub const SPEC_FILE: &str = "spec.json";
/// Who runs it, written by the executor once the task runs.
pub const STATE_FILE: &str = "state.json";
/// How it ended, written by the executor last of all.
pub const EXIT_FILE: &str = "exit.json";
pub const SOCKET_FILE: &str = "sock";
/// Messages of the executor itself, which are few.
pub const OUTPUT_FILE: &str = "executor.out";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorSpec {
    /// Absolute. For an isolated task a name as the job has it, which is looked for in its root.
    pub command: PathBuf,
    pub args: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub work_dir: PathBuf,
    /// None keeps the agent's own user.
    pub user: Option<UserIds>,
    /// Groups of the user besides its first. Those of an isolated task are in its [`IsolationSpec`].
    pub groups: Vec<u32>,
    /// None discards the output.
    pub stdout: Option<LogSpec>,
    pub stderr: Option<LogSpec>,
    pub oom_score_adj: Option<i32>,
    /// Files that the task may have open until it asks for more. None leaves it what the executor has.
    pub open_files: Option<u64>,
    /// None where this host gives us no control groups.
    pub cgroup: Option<CgroupSpec>,
    /// The network namespace of the task, by its path. None leaves it that of the agent.
    pub network_namespace: Option<PathBuf>,
    /// None for a plain process of the host.
    pub isolation: Option<IsolationSpec>,
}

/// What keeps a task apart from its host. Its mounts are its own in any case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IsolationSpec {
    /// The directory that becomes the root of the task.
    pub root: PathBuf,
    /// Moves the root over that of the host instead of changing places: for hosts that run from memory.
    pub no_pivot_root: bool,
    /// The processes of the host, and its shared memory and queues, instead of own ones.
    pub host_pids: bool,
    pub host_ipc: bool,
    /// What the task sees of the host's files.
    pub layers: Vec<LayerSpec>,
    /// Paths of the host of which no layer shows anything.
    pub hidden: Vec<PathBuf>,
    /// Below these paths of the host, layers show only what the task's user may read.
    pub private: Vec<PathBuf>,
    /// Directories that the task has besides.
    pub mounts: Vec<MountSpec>,
    /// Device files of the host that it may use besides the usual ones.
    pub devices: Vec<DeviceSpec>,
    /// Groups of the user besides its first.
    pub groups: Vec<u32>,
    /// The task is in a user namespace of its own, in which its user and group are the only ones and have number 0. Capabilities
    /// that it has there are of no use outside of it.
    pub user_namespace: bool,
    /// Names without `CAP_`, in capitals: all that the task and what it starts may ever have.
    /// `ALL` is all that the agent has.
    pub capabilities: Vec<String>,
    /// What of these it has not after all.
    pub without: Vec<String>,
    /// No program gives the task more rights than it has, whatever the file says.
    pub no_new_privileges: bool,
    /// System calls that are of use for leaving the isolation fail.
    pub seccomp: bool,
}

/// A file or directory of the host that a task sees and cannot change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerSpec {
    pub source: PathBuf,
    /// As the task calls it.
    pub target: PathBuf,
    /// A directory that takes what the task changes and adds. None where it cannot.
    pub changes: Option<PathBuf>,
}

/// A file or directory of the host that a task shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MountSpec {
    pub source: PathBuf,
    /// As the task calls it.
    pub target: PathBuf,
    pub read_only: bool,
    /// What the host mounts below it later is seen by the task.
    pub follows_host: bool,
}

/// A device file of the host, or a directory of some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceSpec {
    pub source: PathBuf,
    /// As the task calls it.
    pub target: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserIds {
    pub uid: u32,
    pub gid: u32,
}

/// One stream's files: `<directory>/<name>.<n>`, n from 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogSpec {
    pub directory: PathBuf,
    pub name: String,
    pub files_max: u64,
    pub file_bytes_max: u64,
}

/// A control group of the task's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupSpec {
    /// Of version 2. Empty for version 1, which has `controllers`.
    pub path: PathBuf,
    /// The groups of version 1: one for each controller, by its name.
    pub controllers: BTreeMap<String, PathBuf>,
    /// False when it and its limits were made elsewhere.
    pub managed: bool,
    pub memory_max_bytes: Option<u64>,
    pub memory_low_bytes: Option<u64>,
    /// For version 2.
    pub cpu_weight: Option<u64>,
    /// For version 1.
    pub cpu_shares: Option<u64>,
    /// Cores that are the task's alone. None for those that all tasks share.
    pub cores: Option<CoresSpec>,
}

/// Cores of one task: they are taken from those that the others share while its group is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoresSpec {
    /// Like `3-5,8`.
    pub cpus: String,
    /// The group of the tasks without cores of their own.
    pub share: PathBuf,
}

/// The content of [`STATE_FILE`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorProcesses {
    pub executor: ProcessIdentity,
    pub task: ProcessIdentity,
}

/// The one line an executor prints for the agent that started it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartReport {
    Started(ExecutorProcesses),
    Failed(String),
}

/// One line to the socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorRequest {
    /// To the task's first process only.
    Signal { number: i32 },
    /// Sends the signal, then SIGKILL after the grace. Answered when the task has ended.
    Stop { number: i32, grace_ms: u64 },
    /// Answered when the task has ended.
    Wait,
    /// Runs a command beside the task, as a part of it. Answered with [`ExecutorResponse::Ready`]; then its three streams
    /// are sent as descriptors. The end of the connection, from either side, ends the command.
    Exec(ExecSpec),
}

/// A command to run in the task's environment, directory, user and control group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The streams are one terminal, which becomes the command's own.
    pub tty: bool,
}

/// One line back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutorResponse {
    Done,
    /// To [`ExecutorRequest::Exec`]: the streams may come.
    Ready,
    Exited(Exit),
    Failed(String),
}

/// Reads a file of the directory; `None` when it is not there.
///
/// # Errors
/// When it cannot be read, or holds something else than a `T`.
pub fn read<T: DeserializeOwned>(directory: &Path, name: &str) -> io::Result<Option<T>> {
    match std::fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file of the directory whole or not at all, for the owner's eyes.
pub fn write<T: Serialize>(directory: &Path, name: &str, content: &T) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let draft = directory.join(format!("{name}.new"));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    file.sync_data()?;
    std::fs::rename(draft, directory.join(name))
}

/// A short path to the socket: a socket's address holds 107 bytes, a directory's name may be longer. The
/// path is good as long as the file is kept.
pub fn socket_path(directory: &Path) -> io::Result<(std::fs::File, PathBuf)> {
    use std::os::fd::AsRawFd;
    let handle = std::fs::File::open(directory)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_FILE}", handle.as_raw_fd()));
    Ok((handle, path))
}

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
    /// Absolute.
    pub command: PathBuf,
    pub args: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub work_dir: PathBuf,
    /// None keeps the agent's own user.
    pub user: Option<UserIds>,
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

/// A control group (version 2) of the task's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupSpec {
    pub path: PathBuf,
    /// False when it and its limits were made elsewhere.
    pub managed: bool,
    pub memory_max_bytes: Option<u64>,
    pub memory_low_bytes: Option<u64>,
    pub cpu_weight: Option<u64>,
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

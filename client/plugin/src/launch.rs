//! How a plugin is started, found again and ended, as go-plugin has it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use executor::process::ProcessIdentity;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use crate::call::{CallError, Caller};
use crate::proto::base::Empty;
use crate::proto::go_plugin;

/// Without it a plugin says that it is none to be run by hand, and exits.
pub const COOKIE: (&str, &str) =
    ("NOMAD_PLUGIN_MAGIC_COOKIE", "e4327c2e01eabfd75a8a67adb114fb34a757d57eee7728d857a8cec6e91a7255");

/// Of the handshake, and of the services.
const CORE_VERSION: &str = "1";
const APP_VERSION: &str = "2";

/// What a plugin may know of its host besides the host's own variables.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PLUGIN_MIN_PORT", "10000"), ("PLUGIN_MAX_PORT", "25000"), ("PLUGIN_PROTOCOL_VERSIONS", APP_VERSION)];

/// Until its line comes.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest line: a path, and perhaps a certificate.
const HANDSHAKE_BYTES_MAX: u64 = 16 * 1024;

/// How much of a wrong line is shown.
const SHOWN_BYTES_MAX: usize = 200;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Between the request to end and SIGKILL.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How often is looked where the kernel cannot say that a process has ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{}: {source}", path.display())]
    Start { path: PathBuf, source: std::io::Error },
    #[error("no handshake within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("{0}")]
    Handshake(String),
    #[error("{}: {why}", socket.display())]
    Connect { socket: PathBuf, why: String },
}

/// What is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<String>,
    /// For the handshake; tests shorten it.
    pub patience: Duration,
}

/// Where a plugin runs: enough to find it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    pub process: ProcessIdentity,
    pub socket: PathBuf,
}

/// A plugin that answers.
#[derive(Clone, Debug)]
pub struct Running {
    pub address: Address,
    pub caller: Caller,
}

impl Program {
    /// Starts the program in a process group of its own, so that what ends this process does not end it, and waits until it
    /// answers. What it writes to its standard error goes to `stderr`.
    ///
    /// # Errors
    /// When it cannot be started, or what it says first is no handshake; then it is killed.
    pub async fn launch(&self, stderr: impl Into<Stdio>) -> Result<Running, LaunchError> {
        let start = |source| LaunchError::Start { path: self.path.clone(), source };
        let mut command = Command::new(&self.path);
        command.args(&self.args).env(COOKIE.0, COOKIE.1).envs(ENVIRONMENT).env_remove("PLUGIN_CLIENT_CERT");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
        let mut child = Unattached(Some(command.spawn().map_err(start)?));
        let spawned = child.0.as_mut().expect("it is taken below");
        let pid = spawned.id().expect("nobody has waited for it yet") as i32;
        let stdout = spawned.stdout.take().expect("its standard output is a pipe");
        let process = ProcessIdentity::of(pid).map_err(start)?;
        let socket = self.handshake(stdout).await?;
        let attached = attach(&Address { process, socket }).await?;
        // Nobody waits for it here: it may outlive us. While we live, the runtime reaps it.
        drop(child.0.take());
        Ok(attached)
    }

    /// The socket that the plugin names.
    async fn handshake(
        &self,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> Result<PathBuf, LaunchError> {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        let read = async { (&mut stdout).take(HANDSHAKE_BYTES_MAX).read_until(b'\n', &mut line).await };
        match tokio::time::timeout(self.patience, read).await {
            Err(_) => return Err(LaunchError::Silent(self.patience)),
            Ok(Err(source)) => return Err(LaunchError::Start { path: self.path.clone(), source }),
            Ok(Ok(_)) => {}
        }
        let socket = parse(&String::from_utf8_lossy(&line)).map_err(LaunchError::Handshake)?;
        // A plugin that goes on writing must not be stuck.
        tokio::spawn(async move { tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await });
        Ok(socket)
    }
}

/// A plugin that does not answer yet: it is killed if that is given up.
struct Unattached(Option<Child>);

impl Drop for Unattached {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.start_kill().ok();
        }
    }
}

/// Reads a line like `1|2|unix|/tmp/plugin1|grpc|`, behind which go-plugin may have more.
fn parse(line: &str) -> Result<PathBuf, String> {
    let line = line.trim_end_matches(['\n', '\r']);
    let shown: String = line.chars().take(SHOWN_BYTES_MAX).collect();
    if line.is_empty() {
        return Err("it ended without a handshake: expected a line like 1|2|unix|/path|grpc".to_string());
    }
    let parts: Vec<&str> = line.split('|').collect();
    let [core, app, network, address, protocol, more @ ..] = parts.as_slice() else {
        return Err(format!("expected a handshake like 1|2|unix|/path|grpc, not \"{shown}\""));
    };
    for (what, found, expected) in [
        ("version of the handshake", core, CORE_VERSION),
        ("version of the plugin protocol", app, APP_VERSION),
        ("network", network, "unix"),
        ("protocol", protocol, "grpc"),
    ] {
        if *found != expected {
            return Err(format!("the {what} is \"{found}\": expected {expected}, in \"{shown}\""));
        }
    }
    if more.first().is_some_and(|certificate| !certificate.is_empty()) {
        return Err("the plugin asks for TLS, which was not offered to it".to_string());
    }
    match address.starts_with('/') {
        true => Ok(PathBuf::from(address)),
        false => Err(format!("the socket's path is not absolute, in \"{shown}\"")),
    }
}

/// Connects to a plugin that runs.
///
/// # Errors
/// When its process is gone, or its socket does not answer.
pub async fn attach(address: &Address) -> Result<Running, LaunchError> {
    let fails = |why: String| LaunchError::Connect { socket: address.socket.clone(), why };
    if !address.process.is_alive() {
        return Err(fails("the process of the plugin is gone".to_string()));
    }
    let channel = grpc::connect(&address.socket, CONNECT_TIMEOUT);
    let channel = channel.await.map_err(|error| fails(base::reasons(&error)))?;
    Ok(Running { address: address.clone(), caller: Caller::new(channel) })
}

impl Running {
    /// Asks the plugin to end, and kills it after a moment. Its tasks are its own business.
    pub async fn end(&self) {
        let asked: Result<Empty, CallError> =
            self.caller.call(go_plugin::CONTROLLER, "Shutdown", Empty {}, SHUTDOWN_GRACE).await;
        if let Err(error) = asked {
            tracing::debug!(%error, "a plugin was asked to end");
        }
        let ended = tokio::time::timeout(SHUTDOWN_GRACE, exited(&self.address.process)).await;
        if ended.is_err() {
            kill(&self.address.process);
        }
    }
}

/// Kills the process, if it is still the same one.
pub fn kill(identity: &ProcessIdentity) {
    let Some(pid) = pid_of(identity) else { return };
    // Opened before it is looked: the number may be another's by now, but not from here on.
    let pidfd = pidfd_open(pid, PidfdFlags::empty());
    if identity.is_alive() {
        let sent = match pidfd {
            Ok(pidfd) => pidfd_send_signal(pidfd, Signal::KILL),
            Err(_) => kill_process(pid, Signal::KILL),
        };
        sent.ok();
    }
}

fn pid_of(identity: &ProcessIdentity) -> Option<Pid> {
    Pid::from_raw(identity.pid)
}

/// Returns when the process has ended.
pub async fn exited(identity: &ProcessIdentity) {
    let pidfd = pid_of(identity).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok());
    if !identity.is_alive() {
        return;
    }
    // It is waited for as a pipe is.
    if let Some(watched) = pidfd.and_then(|pidfd| pipe::Receiver::from_owned_fd_unchecked(pidfd).ok()) {
        watched.readable().await.ok();
        return;
    }
    while identity.is_alive() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The programs of a directory by their names, less `.exe`; none if it is not there.
///
/// # Errors
/// When the directory cannot be read.
pub fn programs(directory: &Path) -> std::io::Result<std::collections::BTreeMap<String, PathBuf>> {
    use std::os::unix::fs::PermissionsExt;
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(error),
    };
    let program = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let is_program =
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        let name = entry.file_name().into_string().ok()?;
        is_program.then(|| (name.strip_suffix(".exe").unwrap_or(&name).to_string(), path))
    };
    Ok(entries.flatten().filter_map(program).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_names_a_socket() {
        for line in ["1|2|unix|/tmp/p|grpc\n", "1|2|unix|/tmp/p|grpc|\r\n", "1|2|unix|/tmp/p|grpc||true\n"] {
            assert_eq!(parse(line).unwrap(), Path::new("/tmp/p"));
        }
        for (line, text) in [
            ("", "it ended without a handshake: expected a line like 1|2|unix|/path|grpc"),
            ("hello\n", "expected a handshake like 1|2|unix|/path|grpc, not \"hello\""),
            (
                "3|2|unix|/p|grpc",
                "the version of the handshake is \"3\": expected 1, in \"3|2|unix|/p|grpc\"",
            ),
            ("1|1|unix|/p|grpc", "the version of the plugin protocol is \"1\": expected 2"),
            ("1|2|tcp|127.0.0.1:1|grpc", "the network is \"tcp\": expected unix"),
            ("1|2|unix|/p|netrpc", "the protocol is \"netrpc\": expected grpc"),
            ("1|2|unix|/p|grpc|MIIB", "the plugin asks for TLS, which was not offered to it"),
            ("1|2|unix|p|grpc", "the socket's path is not absolute"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }

    async fn launched(script: &str) -> String {
        let args = ["-c".to_string(), script.to_string()].into();
        let program = Program { path: "/bin/sh".into(), args, patience: Duration::from_millis(300) };
        program.launch(Stdio::null()).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_program_that_is_no_plugin_is_named_and_killed() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let silent = format!("echo $$ > {}; exec tail -f /dev/null", pid.display());
        assert_eq!(launched(&silent).await, "no handshake within 0 s");
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        if let Ok(process) = ProcessIdentity::of(pid) {
            exited(&process).await;
        }
        assert!(launched("exit 3").await.starts_with("it ended without a handshake"));
        assert!(launched("echo 'usage: x'").await.contains("not \"usage: x\""));
        assert!(launched("head -c 100000 /dev/zero | tr '\\0' x").await.contains("expected a handshake"));
        let gone = launched("echo '1|2|unix|/nowhere/p|grpc'; exec tail -f /dev/null").await;
        assert!(gone.starts_with("/nowhere/p: "), "{gone}");
        let missing = Program { path: "/nowhere/x".into(), args: Vec::new(), patience: HANDSHAKE_TIMEOUT };
        let error = missing.launch(Stdio::null()).await.unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/x: "), "{error}");
    }
}

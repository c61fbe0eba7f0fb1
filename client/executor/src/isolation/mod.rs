//! How an isolated task comes to its namespaces, its root and its rights.
//!
//! Between fork and exec only unsafe code could run. So each step that has to happen in a process of its own is our
//! own program, started again:
//!
//! ```text
//! executor ── outer: enters the control group, makes the namespaces, starts ── inner, and ends
//!        └─── inner: process 1 of its namespace, a child of the executor now; makes the root, gives up rights, becomes the task
//! ```
//!
//! Both get their orders, and report, on a socket that is their standard input until the task gets its own. Nothing of a
//! job is in their arguments or environment: they are root, and variables of a job may name libraries.

mod enter;
mod filter;
pub mod find;
mod inner;
pub mod mounts;
mod outer;
mod privileges;
mod root;
mod view;

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::spec::{ExecutorSpec, SUBCOMMAND};
use crate::supervisor::Started;

pub use enter::{enter, inside};

/// The arguments that make the program one of the two.
pub const OUTER: &str = "isolate";
pub const INNER: &str = "become";

/// Longest order: a spec holds the environment and the arguments of a task.
const ORDER_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// What both are to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    /// Of the executor.
    directory: PathBuf,
    spec: ExecutorSpec,
}

/// What they report. The inner one reports nothing when all went well: its socket ends when it becomes the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    /// The inner one was started.
    Born {
        pid: i32,
    },
    Failed(String),
}

/// Starts the task, and returns when it runs.
///
/// # Errors
/// Why it does not.
pub fn start(directory: &Path, spec: &ExecutorSpec) -> io::Result<Started> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let output = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUBCOMMAND).arg(OUTER).env_clear().current_dir("/").process_group(0);
    command.stdin(OwnedFd::from(theirs)).stdout(output(spec.stdout.is_some()));
    command.stderr(output(spec.stderr.is_some()));
    let mut outer = command.spawn()?;
    // It holds the other end of the socket.
    drop(command);
    let order = serde_json::to_vec(&Order { directory: directory.to_path_buf(), spec: spec.clone() })?;
    // One for each of them. A process that does not take it has reported why not.
    let sent = send(&mut ours, &order).and_then(|()| send(&mut ours, &order));
    let born = receive(&mut ours);
    outer.wait()?;
    let pid = match born? {
        Some(Report::Born { pid }) => sent.map(|()| pid)?,
        Some(Report::Failed(text)) => return Err(io::Error::other(text)),
        None => return Err(io::Error::other("the process that isolates the task ended without a report")),
    };
    // The outer one is gone, so the inner one is our child; it waits to be told.
    match ours.write_all(&[0]).and_then(|()| receive(&mut ours)) {
        Ok(None) => Ok(Started { pid, stdout: outer.stdout.take(), stderr: outer.stderr.take() }),
        Ok(Some(Report::Failed(text))) => {
            let _ = waitpid(Pid::from_raw(pid), None);
            Err(io::Error::other(text))
        }
        Ok(Some(other)) => Err(io::Error::other(format!("the task's process reported {other:?}"))),
        Err(error) => {
            crate::process::signal(pid, nix::sys::signal::Signal::SIGKILL).ok();
            let _ = waitpid(Pid::from_raw(pid), None);
            Err(error)
        }
    }
}

/// The life of the outer or inner process.
pub fn main(word: &str) -> ExitCode {
    let failed = match own_socket() {
        Ok(mut socket) => match serve(word, &mut socket) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(error) => report(&mut socket, &Report::Failed(error.to_string())),
        },
        Err(error) => Err(error),
    };
    if let Err(error) = failed {
        eprintln!("executor: {error}");
    }
    ExitCode::FAILURE
}

fn serve(word: &str, socket: &mut UnixStream) -> io::Result<()> {
    let order = take(socket)?;
    let order: Order = serde_json::from_slice(&order)?;
    match word {
        OUTER => {
            let pid = outer::run(&order)?;
            report(socket, &Report::Born { pid })
        }
        _ => Err(inner::run(&order, socket)),
    }
}

/// Standard input, under a number that does not pass to programs that are started.
fn own_socket() -> io::Result<UnixStream> {
    use std::os::fd::AsFd;
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn report(socket: &mut UnixStream, report: &Report) -> io::Result<()> {
    send(socket, &serde_json::to_vec(report)?)
}

fn receive(socket: &mut UnixStream) -> io::Result<Option<Report>> {
    match take(socket) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        // The other end went with something unread in it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error),
    }
}

/// A length, then as many bytes.
fn send(socket: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= ORDER_BYTES_MAX);
    let length =
        length.ok_or_else(|| io::Error::other("the task's environment and arguments are too long"))?;
    socket.write_all(&length.to_le_bytes())?;
    socket.write_all(bytes)
}

fn take(socket: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > ORDER_BYTES_MAX {
        return Err(io::Error::other("a message is too long"));
    }
    let mut bytes = vec![0; length as usize];
    socket.read_exact(&mut bytes)?;
    Ok(bytes)
}

//! Commands that are run beside the task, each for one connection of the agent.
//!
//! The streams of a command are the agent's own: they come as descriptors and carry data past the executor. The
//! executor starts the command, reaps it, reports its exit, and ends it when the connection ends.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::control::TaskControl;
use crate::launch::{self, Launch};
use crate::process;
use crate::spec::{ExecSpec, ExecutorResponse, ExecutorSpec, SUBCOMMAND};

/// Commands beside one task; more are rejected. Each takes two threads and one connection.
pub const EXECS_MAX: usize = 24;

/// Standard input, output and error.
pub const STREAMS: usize = 3;

/// How long the agent may take to send the streams.
const HANDOVER: Duration = Duration::from_secs(5);

/// Serves one command from its request to its end.
pub fn serve(connection: UnixStream, wanted: &ExecSpec, spec: &ExecutorSpec, task: &Arc<TaskControl>) {
    let last = match start(&connection, wanted, spec, task) {
        Ok(pid) => return attend(connection, pid, task),
        Err(error) => ExecutorResponse::Failed(error.to_string()),
    };
    answer(&connection, &last).ok();
}

fn start(
    connection: &UnixStream,
    wanted: &ExecSpec,
    spec: &ExecutorSpec,
    task: &TaskControl,
) -> io::Result<i32> {
    let launch = launch_of(wanted, spec)?;
    // Checked again at the start; here most callers get the error before they have sent their streams.
    task.takes_exec()?;
    answer(connection, &ExecutorResponse::Ready)?;
    connection.set_read_timeout(Some(HANDOVER))?;
    let [stdin, stdout, stderr] = receive(connection)?;
    connection.set_read_timeout(None)?;
    // What runs now is what the executor runs, also after its file was replaced by a newer release's.
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUBCOMMAND).arg(launch::WORD).arg(serde_json::to_string(&launch)?);
    command.env_clear().envs(&spec.env).current_dir(&spec.work_dir);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    task.start_exec(|| Ok(command.spawn()?.id() as i32))
}

fn launch_of(wanted: &ExecSpec, spec: &ExecutorSpec) -> io::Result<Launch> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "command is not present");
    let (name, args) = wanted.command.split_first().ok_or_else(missing)?;
    Ok(Launch {
        program: find(name, &spec.work_dir, spec.env.get("PATH").map_or("", String::as_str))?,
        args: args.to_vec(),
        user: spec.user,
        cgroup: spec.cgroup.as_ref().map(|group| group.path.clone()),
        tty: wanted.tty,
    })
}

/// The program of this name: a path as it is, anything else from PATH.
fn find(name: &str, work_dir: &Path, path: &str) -> io::Result<PathBuf> {
    let runnable = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = match name.contains('/') {
        true => Some(work_dir.join(name)).filter(runnable),
        false => std::env::split_paths(path).map(|directory| directory.join(name)).find(runnable),
    };
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("binary \"{name}\" could not be found"));
    found.filter(|_| !name.is_empty()).ok_or_else(missing)
}

/// Takes the three streams over.
fn receive(connection: &UnixStream) -> io::Result<[Stdio; STREAMS]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(connection, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(handed) = message {
            streams.extend(handed);
        }
    }
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "the streams of the command did not come");
    let streams: [OwnedFd; STREAMS] = streams.try_into().map_err(wrong)?;
    Ok(streams.map(Stdio::from))
}

/// Returns when the command has ended and its exit was sent, or when its caller has disconnected.
fn attend(connection: UnixStream, pid: i32, task: &Arc<TaskControl>) {
    let Ok((mut listening, reporter)) = report_end(connection, pid, task) else {
        process::kill_session(pid);
        task.exec_ended(pid);
        return;
    };
    // The agent sends nothing more: what is read is the end of the connection.
    let mut byte = [0];
    while matches!(listening.read(&mut byte), Ok(1..)) {}
    task.unless_reaped(pid, || process::kill_session(pid));
    reporter.join().ok();
}

/// Sends the exit once there is one, in a thread of its own. Returns the connection to listen to meanwhile.
fn report_end(
    connection: UnixStream,
    pid: i32,
    task: &Arc<TaskControl>,
) -> io::Result<(UnixStream, JoinHandle<()>)> {
    let (listening, waiting) = (connection.try_clone()?, Arc::clone(task));
    let report = move || {
        let exit = waiting.exec_ended(pid);
        answer(&connection, &ExecutorResponse::Exited(exit)).ok();
        // Wakes who listens.
        connection.shutdown(std::net::Shutdown::Both).ok();
    };
    Ok((listening, std::thread::Builder::new().spawn(report)?))
}

fn answer(mut connection: &UnixStream, answer: &ExecutorResponse) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    connection.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_path_or_in_the_tasks_own_path() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("tool");
        std::fs::write(&own, "").unwrap();
        let find = |name: &str| find(name, dir.path(), "/nowhere:/usr/bin:/bin");
        assert!(find("sh").unwrap().ends_with("bin/sh"));
        assert_eq!(find("/bin/sh").unwrap(), Path::new("/bin/sh"));
        for name in ["tool", "./tool", "", "no-such", "/bin"] {
            let error = find(name).unwrap_err();
            assert_eq!(error.to_string(), format!("binary \"{name}\" could not be found"));
        }
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("./tool").unwrap(), dir.path().join("./tool"));
    }
}

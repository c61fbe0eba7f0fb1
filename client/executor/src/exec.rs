//! Commands that are run beside the task, each for one connection of the agent.
//!
//! The streams of a command are the agent's own: they come as descriptors and carry data past the executor. The
//! executor starts the command, reaps it, reports its exit, and ends it when the connection ends.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::control::TaskControl;
use crate::isolation::find;
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
    let launch = launch_of(wanted, spec, task)?;
    // Checked again at the start; here most callers get the error before they have sent their streams.
    task.takes_exec()?;
    answer(connection, &ExecutorResponse::Ready)?;
    connection.set_read_timeout(Some(HANDOVER))?;
    let [stdin, stdout, stderr] = receive(connection)?;
    connection.set_read_timeout(None)?;
    // What runs now is what the executor runs, also after its file was replaced by a newer release's.
    let mut command = Command::new("/proc/self/exe");
    command.arg(SUBCOMMAND).arg(launch::WORD).arg(serde_json::to_string(&launch)?);
    command.env_clear().current_dir("/");
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    task.start_exec(|| Ok(command.spawn()?.id() as i32))
}

fn launch_of(wanted: &ExecSpec, spec: &ExecutorSpec, task: &TaskControl) -> io::Result<Launch> {
    let mut command = wanted.command.clone();
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "command is not present");
    let name = command.first_mut().ok_or_else(missing)?;
    // What an isolated task calls so can be looked for only inside.
    if spec.isolation.is_none() {
        let program = find::in_path(name, &spec.work_dir, spec.env.get("PATH").map_or("", String::as_str))?;
        let not_text = |_| io::Error::new(io::ErrorKind::InvalidInput, "the path of the program is not text");
        *name = program.into_os_string().into_string().map_err(not_text)?;
    }
    Ok(Launch { directory: task.directory.clone(), command, tty: wanted.tty })
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

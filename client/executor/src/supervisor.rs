//! The life of an executor: leave the agent's session, start the task, copy its output, wait for its end.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Builder;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    Gid, LinkNameSpaceType, Uid, move_into_link_name_space, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use crate::Exit;
use crate::cgroup;
use crate::control::{self, TaskControl};
use crate::isolation;
use crate::process::{self, ProcessIdentity};
use crate::rotate::Rotator;
use crate::spec::{self, CgroupSpec, ExecutorProcesses, ExecutorSpec, LogSpec, StartReport, UserIds};

/// How long output may still come after the task ended: another process may hold the pipe open.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);

/// How long processes that the task left behind may take to die of SIGKILL.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the executor waits for callers to receive the exit.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// What is read from the task at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Runs the task of `directory` to its end.
///
/// # Errors
/// When the task could not be started, or its exit not written.
pub fn run(directory: &Path) -> io::Result<()> {
    // Fails only for a process that leads its session already, which is what is wanted.
    rustix::process::setsid().ok();
    // Children of the task whose parents are gone become ours, so that they can be found and killed.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let spec: ExecutorSpec = spec::read(directory, spec::SPEC_FILE)?
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no spec"))?;
    let spec = Arc::new(spec);
    join_network(&spec)?;
    let logs = [open_log(&spec.stdout)?, open_log(&spec.stderr)?];
    let listener = listen(directory)?;
    let oom_kills = || spec.cgroup.as_ref().map_or(0, cgroup::oom_kills);
    // A group of an earlier start may still be there.
    let killed_before = oom_kills();
    let started = start(directory, &spec)?;
    let pid = started.pid;
    let task = Arc::new(TaskControl::new(directory, pid));
    let drained = match attend(directory, started, logs, listener, &spec, &task) {
        Ok(drained) => drained,
        Err(error) => {
            // Nobody would find it again, or could end it.
            process::signal(pid, Signal::SIGKILL).ok();
            reap_until_gone(pid, &task);
            kill_leftovers(&spec, &task);
            return Err(error);
        }
    };
    let exit = reap_until_gone(pid, &task);
    let exit = Exit { oom_killed: oom_kills() > killed_before, ..exit };
    kill_leftovers(&spec, &task);
    wait_for_output(&drained);
    spec::write(directory, spec::EXIT_FILE, &exit)?;
    std::fs::remove_file(directory.join(spec::SOCKET_FILE)).ok();
    task.finish(exit, REPORT_TIMEOUT);
    Ok(())
}

/// Makes a task that has just started one of ours: its output is copied, its requests are answered, and it is written
/// down and reported last, when nothing can fail any more.
fn attend(
    directory: &Path,
    started: Started,
    logs: [Option<Rotator>; 2],
    listener: UnixListener,
    spec: &Arc<ExecutorSpec>,
    task: &Arc<TaskControl>,
) -> io::Result<(Receiver<()>, usize)> {
    let state = ExecutorProcesses {
        executor: ProcessIdentity::of(std::process::id() as i32)?,
        task: ProcessIdentity::of(started.pid)?,
    };
    let drained = copy_output(started, logs)?;
    let (answering, own) = (Arc::clone(task), Arc::clone(spec));
    Builder::new().spawn(move || control::serve(&listener, &own, &answering))?;
    spec::write(directory, spec::STATE_FILE, &state)?;
    report(&StartReport::Started(state));
    Ok(drained)
}

/// Reports the result of the start to the agent, once; afterwards nothing of ours is connected to it.
pub fn report(greeting: &StartReport) {
    let mut line = serde_json::to_vec(greeting).unwrap_or_default();
    line.push(b'\n');
    // The agent may be gone by now, which changes nothing for the task.
    io::stdout().write_all(&line).and_then(|()| io::stdout().flush()).ok();
    if let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") {
        rustix::stdio::dup2_stdout(nowhere).ok();
    }
}

/// Before there are other threads, so that all of them, and all processes that they start, are in it.
fn join_network(spec: &ExecutorSpec) -> io::Result<()> {
    let Some(path) = &spec.network_namespace else { return Ok(()) };
    let joined = std::fs::File::open(path).and_then(|namespace| {
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    });
    joined.map_err(|error| io::Error::other(format!("network namespace {}: {error}", path.display())))
}

fn open_log(spec: &Option<LogSpec>) -> io::Result<Option<Rotator>> {
    spec.clone().map(Rotator::open).transpose()
}

fn listen(directory: &Path) -> io::Result<UnixListener> {
    let (_handle, path) = spec::socket_path(directory)?;
    UnixListener::bind(path)
}

/// The first process of a task, and what it writes to.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

fn start(directory: &Path, spec: &ExecutorSpec) -> io::Result<Started> {
    if let Some(adjustment) = spec.oom_score_adj {
        std::fs::write("/proc/self/oom_score_adj", adjustment.to_string())?;
    }
    if let Some(files) = spec.open_files {
        let given = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..given })?;
    }
    if let Some(group) = &spec.cgroup {
        cgroup::prepare(group)?;
    }
    let started = match (&spec.isolation, &spec.cgroup) {
        (Some(_), _) => isolation::start(directory, spec),
        (None, Some(group)) => start_in(group, spec),
        (None, None) => spawn(spec),
    };
    if let (Err(_), Some(group)) = (&started, &spec.cgroup) {
        cgroup::destroy(group);
    }
    started
}

/// A child is born into the group of its parent; so the executor enters, starts it, and leaves again.
fn start_in(group: &CgroupSpec, spec: &ExecutorSpec) -> io::Result<Started> {
    let home = cgroup::current(Path::new(cgroup::ROOT), group)?;
    let child = cgroup::enter(group).and_then(|()| spawn(spec));
    cgroup::enter(&home).ok();
    child
}

fn spawn(spec: &ExecutorSpec) -> io::Result<Started> {
    let mut child = match spec.user {
        Some(user) => spawn_as(user, spec)?,
        None => command(spec).spawn()?,
    };
    Ok(Started { pid: child.id() as i32, stdout: child.stdout.take(), stderr: child.stderr.take() })
}

/// The standard library gives a child no groups but one. So a thread becomes the user, and no other of ours does; what it
/// starts is born with what it is.
fn spawn_as(user: UserIds, spec: &ExecutorSpec) -> io::Result<Child> {
    std::thread::scope(|scope| {
        let born = Builder::new().spawn_scoped(scope, || {
            // Without rights there is only one user to be, and its groups are there already.
            if rustix::process::geteuid().is_root() {
                let groups: Vec<Gid> = spec.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
                let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
                set_thread_groups(&groups)?;
                set_thread_res_gid(gid, gid, gid)?;
                set_thread_res_uid(uid, uid, uid)?;
                command(spec).spawn()
            } else {
                command(spec).uid(user.uid).gid(user.gid).spawn()
            }
        })?;
        born.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the task has panicked")))
    })
}

fn command(spec: &ExecutorSpec) -> Command {
    let output = |log: &Option<LogSpec>| if log.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut command = Command::new(&spec.command);
    command.args(&spec.args).env_clear().envs(&spec.env).current_dir(&spec.work_dir).process_group(0);
    command.stdin(Stdio::null()).stdout(output(&spec.stdout)).stderr(output(&spec.stderr));
    command
}

/// One thread a stream; each sends a message when its stream has ended.
fn copy_output(
    started: Started,
    [stdout, stderr]: [Option<Rotator>; 2],
) -> io::Result<(Receiver<()>, usize)> {
    let (done, drained) = mpsc::channel();
    let mut streams = 0;
    if let (Some(from), Some(to)) = (started.stdout, stdout) {
        copy(from, to, done.clone())?;
        streams += 1;
    }
    if let (Some(from), Some(to)) = (started.stderr, stderr) {
        copy(from, to, done)?;
        streams += 1;
    }
    Ok((drained, streams))
}

fn copy(from: impl Read + Send + 'static, to: Rotator, done: Sender<()>) -> io::Result<()> {
    let copying = move || {
        copy_all(from, to);
        done.send(()).ok();
    };
    Builder::new().spawn(copying).map(drop)
}

/// Until nobody writes any more.
pub fn copy_all(mut from: impl Read, mut to: Rotator) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return,
            // A full disk must not stop the task: its output is lost until there is room again.
            Ok(length) => to.write(&chunk[..length]).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Reaps whatever ends, the task's first process last. Orphans of the task end up here too.
fn reap_until_gone(pid: i32, task: &TaskControl) -> Exit {
    loop {
        // Looked at first and reaped afterwards: until then the number is not given to another process.
        let seen = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        match seen {
            Ok(status) if status.pid() == Some(Pid::from_raw(pid)) => {
                task.reaped(|| {
                    let _ = waitpid(Pid::from_raw(pid), None);
                });
                return exit_of(status);
            }
            Ok(status) => drop(status.pid().map(|other| task.reap(other.as_raw(), exit_of(status)))),
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Exit::lost(format!("the task's end was not seen: {errno}")),
        }
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match status {
        WaitStatus::Exited(_, code) => Exit { code: i64::from(code), ..Exit::default() },
        WaitStatus::Signaled(_, signal, _) => {
            let number = i64::from(signal as i32);
            Exit { code: 128 + number, signal: number, ..Exit::default() }
        }
        // Only ends are asked for; real-time signals have no name and arrive here.
        other => Exit::lost(format!("the task ended in an unknown way: {other:?}")),
    }
}

/// The task ends with its first process: nothing that it has started may go on.
fn kill_leftovers(spec: &ExecutorSpec, task: &TaskControl) {
    let deadline = Instant::now() + LEFTOVER_TIMEOUT;
    let seen = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
    loop {
        while let Ok(status) = waitid(Id::All, seen)
            && let Some(pid) = status.pid()
        {
            task.reap(pid.as_raw(), exit_of(status));
        }
        let left = process::descendants(std::process::id() as i32);
        if left.is_empty() || Instant::now() > deadline {
            break;
        }
        for process in &left {
            process::signal(process.pid, Signal::SIGKILL).ok();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(group) = &spec.cgroup {
        cgroup::destroy(group);
    }
}

fn wait_for_output((drained, streams): &(Receiver<()>, usize)) {
    let deadline = Instant::now() + OUTPUT_LINGER;
    for _ in 0..*streams {
        drained.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    }
}

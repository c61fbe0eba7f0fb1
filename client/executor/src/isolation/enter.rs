//! A command inside a task that is isolated, beside it: two processes again. The first enters the control group and the
//! process namespace, in which only its children are; the second enters all others, gives up its rights, and becomes
//! the command.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{Signal, set_parent_process_death_signal, setsid};

use super::{find, inner, outer, privileges};
use crate::exit::shell_code;
use crate::launch::{self, Launch};
use crate::process::ProcessIdentity;
use crate::spec::{self, ExecutorProcesses, ExecutorSpec, IsolationSpec, SUBCOMMAND};

/// Runs the command to its end, and returns how that was.
///
/// # Errors
/// When it cannot be started.
pub fn enter(launch: &Launch, isolation: &IsolationSpec) -> io::Result<u8> {
    let task = task(&launch.directory)?;
    if !isolation.host_pids {
        setns(namespace(&task, "pid")?, CloneFlags::CLONE_NEWPID)?;
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let program = outer::own_program(&launch.directory)?;
    let mut command = Command::new(program);
    command.arg(SUBCOMMAND).arg(launch::INSIDE).arg(serde_json::to_string(launch)?).env_clear();
    let status = command.status()?;
    Ok(shell_code(status))
}

/// Becomes the command; returns only with the reason why not.
pub fn inside(launch: &Launch, spec: &ExecutorSpec, isolation: &IsolationSpec) -> io::Error {
    match prepare(launch, spec, isolation) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(launch: &Launch, spec: &ExecutorSpec, isolation: &IsolationSpec) -> io::Result<Command> {
    let task = task(&launch.directory)?;
    setsid()?;
    launch::take_terminal(launch.tty, spec.user)?;
    let kinds = [
        ("ipc", CloneFlags::CLONE_NEWIPC),
        ("net", CloneFlags::CLONE_NEWNET),
        ("mnt", CloneFlags::CLONE_NEWNS),
    ];
    let namespaces: Vec<File> =
        kinds.iter().map(|(name, _)| namespace(&task, name)).collect::<io::Result<_>>()?;
    let users = match isolation.user_namespace {
        true => Some(namespace(&task, "user")?),
        false => None,
    };
    for (namespace, (_, kind)) in namespaces.into_iter().zip(kinds) {
        setns(namespace, kind)?;
    }
    let path = spec.env.get("PATH").map_or("", String::as_str);
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "command is not present");
    let (name, args) = launch.command.split_first().ok_or_else(missing)?;
    let program = find::in_path(name, &spec.work_dir, path)?;
    let capabilities = match users {
        Some(users) => privileges::give_up_into(users, isolation, spec.user)?,
        None => privileges::give_up(isolation, spec.user)?,
    };
    inner::go_to(&spec.work_dir)?;
    // After the change of the user, which undoes it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(&spec.env);
    privileges::confine(isolation, capabilities)?;
    Ok(command)
}

fn task(directory: &Path) -> io::Result<ProcessIdentity> {
    let processes: Option<ExecutorProcesses> = spec::read(directory, spec::STATE_FILE)?;
    processes.map(|processes| processes.task).ok_or_else(ended)
}

/// A namespace of the task, and not of a later process with its number.
fn namespace(task: &ProcessIdentity, name: &str) -> io::Result<File> {
    let file = File::open(format!("/proc/{}/ns/{name}", task.pid)).map_err(|_| ended())?;
    if task.is_alive() { Ok(file) } else { Err(ended()) }
}

fn ended() -> io::Error {
    io::Error::other("the task has ended")
}

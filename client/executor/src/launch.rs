//! The last step before a command that is run beside a task: a process of its own that puts itself in place and
//! then becomes the command. What must happen between fork and exec happens here, in ordinary code.
//!
//! It is root, so nothing of a job is in its environment: variables may name libraries. It reads them from the spec.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::unistd::Uid;
use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::isolation;
use crate::spec::{self, ExecutorSpec, UserIds};
use crate::user;

/// The arguments before the launch in the arguments of an executor's program: at first, and once more when it has entered
/// the processes of an isolated task.
pub const WORD: &str = "launch";
pub const INSIDE: &str = "launch-inside";

/// What shells exit with when a command was found and cannot be run, and when it was not found.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What to become. Streams are inherited; the rest is in the spec of the task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    /// Of the executor.
    pub directory: PathBuf,
    /// The program and its arguments. For a plain process its path, for an isolated one as the caller calls it.
    pub command: Vec<String>,
    /// Standard input is a terminal, to be the controlling one.
    pub tty: bool,
}

/// Becomes the command, or says on standard error why it cannot.
pub fn main(word: &str, launch: &str) -> ExitCode {
    let read = || {
        let launch: Launch = serde_json::from_str(launch)?;
        let spec = spec::read(&launch.directory, spec::SPEC_FILE)?;
        Ok((launch, spec.ok_or_else(|| io::Error::other("the task is gone"))?))
    };
    let done = read().and_then(|(launch, spec)| become_it(word, &launch, &spec));
    let error = match done {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    eprintln!("the command cannot be run: {error}");
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN })
}

/// Returns with the exit of a command that it is not itself, or the reason why there is none.
fn become_it(word: &str, launch: &Launch, spec: &ExecutorSpec) -> io::Result<u8> {
    if let Some(isolation) = spec.isolation.as_ref().filter(|_| word == INSIDE) {
        return Err(isolation::inside(launch, spec, isolation));
    }
    // By the session all that the command starts is found again. An executor that is killed cannot end what it has started. Changing the user undoes this.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setsid()?;
    if let Some(group) = &spec.cgroup {
        cgroup::enter(group)?;
    }
    if let Some(isolation) = &spec.isolation {
        return isolation::enter(launch, isolation);
    }
    take_terminal(launch.tty, spec.user)?;
    let (program, args) = launch.command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let mut command = Command::new(Path::new(program));
    command.args(args).env_clear().envs(&spec.env).current_dir(&spec.work_dir);
    if let Some(ids) = spec.user {
        if Uid::effective().is_root() {
            user::set_groups(&spec.groups)?;
        }
        user::set_user(ids)?;
    }
    Err(command.exec())
}

/// Makes the terminal that of the session, which the calling process leads.
pub fn take_terminal(tty: bool, user: Option<UserIds>) -> io::Result<()> {
    if tty {
        let terminal = io::stdin();
        rustix::process::ioctl_tiocsctty(&terminal)?;
        if let Some(user) = user {
            let owner = rustix::fs::Uid::from_raw(user.uid);
            rustix::fs::fchown(&terminal, Some(owner), None)?;
        }
    }
    Ok(())
}

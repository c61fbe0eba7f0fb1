//! The last step before a command that is run beside a task: a process of its own that puts itself in place and
//! then becomes the command. What must happen between fork and exec happens here, in ordinary code.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::spec::UserIds;

/// The argument before the launch in the arguments of an executor's program.
pub const WORD: &str = "launch";

/// What shells exit with when a command was found and cannot be run.
const CANNOT_RUN: u8 = 126;

/// What to become. Environment, directory and streams are inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub user: Option<UserIds>,
    pub cgroup: Option<PathBuf>,
    /// Standard input is a terminal, to be the controlling one.
    pub tty: bool,
}

/// Becomes the command, or says on standard error why it cannot.
pub fn main(launch: &str) -> ExitCode {
    let error = match serde_json::from_str::<Launch>(launch) {
        Ok(launch) => become_it(&launch),
        Err(error) => error.into(),
    };
    eprintln!("the command cannot be run: {error}");
    ExitCode::from(CANNOT_RUN)
}

/// Returns only with the reason why not.
fn become_it(launch: &Launch) -> io::Error {
    if let Err(error) = prepare(launch) {
        return error;
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args);
    if let Some(user) = launch.user {
        command.uid(user.uid).gid(user.gid);
    }
    command.exec()
}

fn prepare(launch: &Launch) -> io::Result<()> {
    if let Some(group) = &launch.cgroup {
        cgroup::enter(group)?;
    }
    // An executor that is killed cannot end what it has started. Changing the user undoes this.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // By the session all that the command starts is found again.
    setsid()?;
    if launch.tty {
        let terminal = io::stdin();
        rustix::process::ioctl_tiocsctty(&terminal)?;
        if let Some(user) = launch.user {
            let owner = rustix::fs::Uid::from_raw(user.uid);
            rustix::fs::fchown(&terminal, Some(owner), None)?;
        }
    }
    Ok(())
}

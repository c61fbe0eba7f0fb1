//! The process between the agent and one task, so that the task outlives the agent.
//!
//! It is our own program, started again with hidden arguments (`<program> executor <directory>`). It leaves
//! the agent's session, starts the task, copies its output into rotated files, answers requests on a socket, and
//! writes the task's exit to a file before it exits itself. No async runtime and no logging: a few blocking
//! threads, so that a thousand tasks cost little.
//!
//! Read [`spec`] first: it holds every file and message that agent and executor exchange. What the agent does
//! with them is not here but in `client/node/src/driver/process`.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod cgroup;
mod control;
pub mod copy;
mod exec;
mod exit;
mod isolation;
mod launch;
pub mod process;
pub mod rotate;
mod signals;
pub mod spec;
mod supervisor;
mod user;

use std::path::Path;
use std::process::ExitCode;

pub use exit::{Exit, shell_code};
pub use isolation::mounts::below as mounts_below;

/// Runs one task to its end. `args` is what follows the word `executor`: the directory with the spec. An executor
/// also calls its own program this way to run a command inside its task.
///
/// A program that embeds the agent calls this when its own first argument is [`spec::SUBCOMMAND`], before anything
/// else, and exits with the returned code: 0 when the task was started, however it ended.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    close_inherited();
    if let Err(error) = signals::forget_ignored() {
        eprintln!("executor: signals that the agent was started without stay ignored: {error}");
    }
    let args: Vec<String> = args.into_iter().collect();
    let done = match args.as_slice() {
        [word] if word == isolation::OUTER || word == isolation::INNER => return isolation::main(word),
        [word, launch] if word == launch::WORD || word == launch::INSIDE => {
            return launch::main(word, launch);
        }
        [word, directory] if word == copy::WORD => copy::run(Path::new(directory)),
        [directory] => supervisor::run(Path::new(directory)),
        _ => {
            eprintln!("executor expects exactly one argument: the directory of its task");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            supervisor::report(&spec::StartReport::Failed(error.to_string()));
            eprintln!("executor: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the agent was started with open, by a shell or a service manager, would pass to tasks: a directory of the host among
/// it would be a way into the host. What we open ourselves never passes.
fn close_inherited() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The one of the list itself is among them, and closed already.
    for number in open.into_iter().filter(|number| *number > 2) {
        nix::unistd::close(number).ok();
    }
}

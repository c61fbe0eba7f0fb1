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
mod exec;
mod exit;
mod launch;
pub mod process;
pub mod rotate;
pub mod spec;
mod supervisor;

use std::path::Path;
use std::process::ExitCode;

pub use exit::Exit;

/// Runs one task to its end. `args` is what follows the word `executor`: the directory with the spec. An executor
/// also calls its own program this way to run a command inside its task.
///
/// A program that embeds the agent calls this when its own first argument is [`spec::SUBCOMMAND`], before anything
/// else, and exits with the returned code: 0 when the task was started, however it ended.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let args: Vec<String> = args.into_iter().collect();
    let directory = match args.as_slice() {
        [directory] => directory,
        [word, launch] if word == launch::WORD => return launch::main(launch),
        _ => {
            eprintln!("executor expects exactly one argument: the directory of its task");
            return ExitCode::from(2);
        }
    };
    match supervisor::run(Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            supervisor::report(&spec::StartReport::Failed(error.to_string()));
            eprintln!("executor: {error}");
            ExitCode::FAILURE
        }
    }
}

//! The process that stands between the agent and one task, so that the task outlives the agent.
//!
//! It is our own program, started again with hidden arguments (`<program> executor <directory>`). It leaves
//! the agent's session, starts the task, carries its output into rotated files, answers on a socket, and
//! writes down how the task ended before it ends itself. No runtime and no log: a few blocking threads, so
//! that a thousand tasks cost little. [`spec`] holds all that both sides say to each other.

mod cgroup;
mod control;
mod exec;
mod launch;
pub mod process;
pub mod rotate;
pub mod spec;
mod supervisor;

use std::path::Path;
use std::process::ExitCode;

/// Runs one task to its end; `args` is what follows the word `executor`: the directory with the spec. Or becomes a
/// command beside a task, for an executor that calls its own program.
///
/// Whoever embeds the agent calls this when its own first argument is [`spec::SUBCOMMAND`], before anything
/// else, and exits with the answer: 0 when the task was started, however it ended.
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
            supervisor::report(&spec::Greeting::Failed(error.to_string()));
            eprintln!("executor: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Allocations, their files, logs and tasks.

mod checks;
mod exec;
mod fs;
mod logs;
mod restart;
mod signal;
pub mod status;
mod stop;

use crate::call::Command;

pub const COMMANDS: &[&Command] = &[
    &checks::COMMAND,
    &exec::COMMAND,
    &fs::COMMAND,
    &logs::COMMAND,
    &restart::COMMAND,
    &signal::COMMAND,
    &status::COMMAND,
    &stop::COMMAND,
];

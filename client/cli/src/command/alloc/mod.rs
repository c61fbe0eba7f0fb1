//! Allocations, their files, logs and tasks.

mod checks;
pub(super) mod exec;
mod fs;
mod logs;
mod pause;
mod restart;
mod signal;
pub(super) mod status;
mod stop;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &checks::COMMAND,
    &exec::COMMAND,
    &fs::COMMAND,
    &logs::COMMAND,
    &pause::COMMAND,
    &restart::COMMAND,
    &signal::COMMAND,
    &status::COMMAND,
    &stop::COMMAND,
];

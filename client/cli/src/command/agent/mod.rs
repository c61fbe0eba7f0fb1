//! The agent: running it, its health and its log.

mod check;
mod config_validate;
mod info;
mod monitor;
pub(in crate::command) mod run;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &check::COMMAND,
    &config_validate::COMMAND,
    &info::COMMAND,
    &monitor::COMMAND,
    &monitor::EXPORT,
    &run::COMMAND,
];

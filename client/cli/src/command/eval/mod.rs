//! Evaluations.

mod delete;
mod list;
pub mod status;

use crate::call::Command;

pub const COMMANDS: &[&Command] = &[&delete::COMMAND, &list::COMMAND, &status::COMMAND];

//! Evaluations.

mod delete;
mod list;
pub(super) mod status;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[&delete::COMMAND, &list::COMMAND, &status::COMMAND];

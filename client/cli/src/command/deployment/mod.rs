//! Deployments.

pub mod change;
mod list;
pub mod status;

use crate::call::Command;

pub const COMMANDS: &[&Command] =
    &[&change::PROMOTE, &change::FAIL, &change::PAUSE, &change::RESUME, &list::COMMAND, &status::COMMAND];

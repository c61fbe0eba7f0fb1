//! Servers and the gossip between them.

mod force_leave;
mod join;
mod members;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[&force_leave::COMMAND, &join::COMMAND, &members::COMMAND];

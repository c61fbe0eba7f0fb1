//! Load, and what came of it.

mod cluster;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[&cluster::COMMAND];

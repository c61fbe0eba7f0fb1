//! The record of who asked for what.

mod verify;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[&verify::COMMAND];

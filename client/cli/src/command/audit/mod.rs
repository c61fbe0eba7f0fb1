//! The record of who asked for what.

mod effects;
mod verify;
mod who;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[&effects::COMMAND, &verify::COMMAND, &who::COMMAND];

//! Nodes.

mod config;
mod drain;
mod eligibility;
mod meta;
pub mod status;

use crate::call::Command;

pub const COMMANDS: &[&Command] =
    &[&config::COMMAND, &drain::COMMAND, &eligibility::COMMAND, &meta::APPLY, &meta::READ, &status::COMMAND];

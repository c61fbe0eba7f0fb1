//! Nodes.

mod config;
mod drain;
mod eligibility;
mod meta;
pub(super) mod status;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] =
    &[&config::COMMAND, &drain::COMMAND, &eligibility::COMMAND, &meta::APPLY, &meta::READ, &status::COMMAND];

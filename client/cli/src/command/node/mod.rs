//! Nodes.

mod config;
mod drain;
mod eligibility;
mod identity;
mod meta;
pub(super) mod status;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &config::COMMAND,
    &drain::COMMAND,
    &eligibility::COMMAND,
    &identity::GET,
    &identity::RENEW,
    &identity::INTRODUCE,
    &meta::APPLY,
    &meta::READ,
    &status::COMMAND,
];

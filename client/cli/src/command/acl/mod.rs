//! Access control.

mod bootstrap;
mod policy;
mod role;
mod token;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &bootstrap::COMMAND,
    &policy::APPLY,
    &policy::DELETE,
    &policy::INFO,
    &policy::LIST,
    &policy::OWN,
    &role::CREATE,
    &role::DELETE,
    &role::INFO,
    &role::LIST,
    &role::UPDATE,
    &token::CREATE,
    &token::DELETE,
    &token::INFO,
    &token::LIST,
    &token::OWN,
    &token::UPDATE,
];

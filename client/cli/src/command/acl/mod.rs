//! Access control.

mod auth_method;
mod binding_rule;
mod bootstrap;
mod policy;
mod role;
mod token;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &auth_method::CREATE,
    &auth_method::DELETE,
    &auth_method::INFO,
    &auth_method::LIST,
    &auth_method::UPDATE,
    &binding_rule::CREATE,
    &binding_rule::DELETE,
    &binding_rule::INFO,
    &binding_rule::LIST,
    &binding_rule::UPDATE,
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

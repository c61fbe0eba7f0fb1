//! Access control.

mod auth_method;
mod binding_rule;
mod bootstrap;
mod policy;
mod role;
mod token;

use api::VariableErasure;

use super::var::forget::{say_of, until_complete};
use crate::call::{Command, Failure, Outcome};
use crate::flags::Flag;

/// Of what has secrets.
const FORGET: Flag<bool> = Flag::switch(
    "forget",
    "Erase its secrets too: nobody can read them from the log, from snapshots or from the past any more. It waits for all servers, and cannot be taken back.",
);

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

/// Waits until all servers have erased the secrets of what was deleted, and says so.
async fn forgotten<F>(what: &str, erasure: VariableErasure, ask: impl Fn() -> F) -> Outcome
where
    F: Future<Output = Result<Vec<VariableErasure>, Failure>>,
{
    let report = |erasure: &VariableErasure| say_of(what, erasure);
    report(&until_complete(erasure, Some(report), ask).await?);
    Ok(0)
}

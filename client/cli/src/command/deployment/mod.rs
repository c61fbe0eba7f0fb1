//! Deployments.

pub(super) mod change;
mod list;
pub(super) mod status;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &change::PROMOTE,
    &change::FAIL,
    &change::PAUSE,
    &change::RESUME,
    &change::UNBLOCK,
    &list::COMMAND,
    &status::COMMAND,
];

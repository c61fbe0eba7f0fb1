//! Namespaces.

mod apply;
mod delete;
pub(super) mod show;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] =
    &[&apply::COMMAND, &delete::COMMAND, &show::LIST, &show::STATUS, &show::INSPECT];

//! Namespaces.

mod apply;
mod delete;
pub mod show;

use crate::call::Command;

pub const COMMANDS: &[&Command] =
    &[&apply::COMMAND, &delete::COMMAND, &show::LIST, &show::STATUS, &show::INSPECT];

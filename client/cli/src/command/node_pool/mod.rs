//! Node pools.

mod apply;
mod delete;
mod init;
pub(super) mod show;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] =
    &[&apply::COMMAND, &delete::COMMAND, &init::COMMAND, &show::LIST, &show::INFO, &show::NODES, &show::JOBS];

//! Node pools.

mod apply;
mod delete;
mod init;
pub mod show;

use crate::call::Command;

pub const COMMANDS: &[&Command] =
    &[&apply::COMMAND, &delete::COMMAND, &init::COMMAND, &show::LIST, &show::INFO, &show::NODES, &show::JOBS];

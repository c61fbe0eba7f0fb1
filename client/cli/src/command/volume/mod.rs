//! Volumes that are made on nodes, and those of storage plugins.

mod create;
mod csi_file;
mod csi_status;
mod delete;
mod detach;
mod init;
mod snapshot;
mod status;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &create::CREATE,
    &create::REGISTER,
    &delete::COMMAND,
    &detach::DETACH,
    &detach::DEREGISTER,
    &init::COMMAND,
    &snapshot::CREATE,
    &snapshot::DELETE,
    &snapshot::LIST,
    &status::COMMAND,
];

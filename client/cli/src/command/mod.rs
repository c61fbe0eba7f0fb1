//! Every command, one file each, in a folder for each kind of object. A new one is declared in its file and listed
//! in the table of its folder.

mod agent;
mod alloc;
mod deployment;
mod eval;
mod events;
mod fmt;
mod history;
mod job;
mod namespace;
mod node;
mod node_pool;
mod operator;
mod scaling;
mod server;
mod service;
mod status;
mod system;
mod ui;
pub mod version;
mod why;

use crate::call::Command;

/// Those that are of no folder.
const GENERAL: &[&Command] =
    &[&events::COMMAND, &fmt::COMMAND, &history::COMMAND, &status::COMMAND, &ui::COMMAND, &version::COMMAND];

/// All commands, by name.
pub fn all() -> Vec<&'static Command> {
    let tables = [
        GENERAL,
        agent::COMMANDS,
        alloc::COMMANDS,
        deployment::COMMANDS,
        eval::COMMANDS,
        job::COMMANDS,
        namespace::COMMANDS,
        node::COMMANDS,
        node_pool::COMMANDS,
        operator::COMMANDS,
        scaling::COMMANDS,
        server::COMMANDS,
        service::COMMANDS,
        system::COMMANDS,
        why::COMMANDS,
    ];
    let mut all = tables.concat();
    all.sort_by_key(|command| command.name);
    all
}

//! Every command, one file each. A new one is declared in its file and listed here.

pub mod agent;
mod alloc_logs;
mod alloc_status;
mod alloc_stop;
mod deployment;
mod eval_status;
mod events;
mod history_alloc;
mod job_history;
mod job_inspect;
mod job_run;
mod job_status;
mod job_stop;
mod job_validate;
mod node_status;
mod operator_api;
mod server_members;
pub mod version;

use crate::call::Command;

/// All commands, in the order they are listed.
pub fn all() -> Vec<&'static Command> {
    vec![
        &agent::COMMAND,
        &alloc_logs::COMMAND,
        &alloc_status::COMMAND,
        &alloc_stop::COMMAND,
        &deployment::LIST,
        &deployment::STATUS,
        &eval_status::COMMAND,
        &events::COMMAND,
        &history_alloc::COMMAND,
        &job_history::COMMAND,
        &job_inspect::COMMAND,
        &job_run::COMMAND,
        &job_status::COMMAND,
        &job_stop::COMMAND,
        &job_validate::COMMAND,
        &node_status::COMMAND,
        &operator_api::COMMAND,
        &server_members::COMMAND,
        &version::COMMAND,
    ]
}

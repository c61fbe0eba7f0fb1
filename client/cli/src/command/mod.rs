//! Every command, one file each. A new one is declared in its file and listed here.

pub mod agent;
mod alloc_exec;
mod alloc_logs;
mod alloc_status;
mod alloc_stop;
mod deployment;
mod deployment_change;
mod eval_status;
mod events;
mod history_alloc;
mod job_history;
mod job_inspect;
mod job_plan;
mod job_revert;
mod job_run;
mod job_status;
mod job_stop;
mod job_validate;
mod node_change;
mod node_pool;
mod node_status;
mod operator_api;
mod operator_autopilot;
mod operator_gossip;
mod operator_log;
mod operator_raft;
mod operator_scheduler;
mod operator_snapshot;
mod server_force_leave;
mod server_join;
mod server_members;
pub mod version;
mod why;

use crate::call::Command;

/// All commands, in the order they are listed.
pub fn all() -> Vec<&'static Command> {
    vec![
        &agent::COMMAND,
        &alloc_exec::COMMAND,
        &alloc_logs::COMMAND,
        &alloc_status::COMMAND,
        &alloc_stop::COMMAND,
        &deployment_change::FAIL,
        &deployment::LIST,
        &deployment_change::PAUSE,
        &deployment_change::PROMOTE,
        &deployment_change::RESUME,
        &deployment::STATUS,
        &eval_status::COMMAND,
        &events::COMMAND,
        &history_alloc::COMMAND,
        &job_history::COMMAND,
        &job_inspect::COMMAND,
        &job_plan::COMMAND,
        &deployment_change::PROMOTE_JOB,
        &job_revert::COMMAND,
        &job_run::COMMAND,
        &job_status::COMMAND,
        &job_stop::COMMAND,
        &job_validate::COMMAND,
        &node_change::DRAIN,
        &node_change::ELIGIBILITY,
        &node_pool::APPLY,
        &node_pool::DELETE,
        &node_pool::INFO,
        &node_pool::JOBS,
        &node_pool::LIST,
        &node_pool::NODES,
        &node_status::COMMAND,
        &operator_api::COMMAND,
        &operator_autopilot::GET_CONFIG,
        &operator_autopilot::HEALTH,
        &operator_autopilot::SET_CONFIG,
        &operator_gossip::GENERATE,
        &operator_log::REPAIR,
        &operator_raft::LIST_PEERS,
        &operator_raft::REMOVE_PEER,
        &operator_raft::TRANSFER_LEADERSHIP,
        &operator_scheduler::GET_CONFIG,
        &operator_scheduler::SET_CONFIG,
        &operator_snapshot::INSPECT,
        &operator_snapshot::RESTORE,
        &operator_snapshot::SAVE,
        &server_force_leave::COMMAND,
        &server_join::COMMAND,
        &server_members::COMMAND,
        &version::COMMAND,
        &why::ALLOC,
        &why::EVAL,
        &why::JOB,
    ]
}

//! Every command, one file each. A new one is declared in its file and listed here.

pub mod agent;
mod agent_info;
mod alloc_change;
mod alloc_checks;
mod alloc_exec;
mod alloc_fs;
mod alloc_logs;
mod alloc_status;
mod alloc_stop;
mod check;
mod config_validate;
mod deployment;
mod deployment_change;
mod eval_list;
mod eval_status;
mod events;
mod fmt;
mod history_alloc;
mod job_allocs;
mod job_deployments;
mod job_dispatch;
mod job_eval;
mod job_history;
mod job_init;
mod job_inspect;
mod job_periodic_force;
mod job_plan;
mod job_restart;
mod job_revert;
mod job_run;
mod job_scale;
mod job_start;
mod job_status;
mod job_stop;
mod job_tag;
mod job_validate;
mod monitor;
mod namespace;
mod node_change;
mod node_config;
mod node_meta;
mod node_pool;
mod node_status;
mod operator_api;
mod operator_autopilot;
mod operator_gossip;
mod operator_log;
mod operator_metrics;
mod operator_raft;
mod operator_scheduler;
mod operator_snapshot;
mod scaling_policy;
mod server_force_leave;
mod server_join;
mod server_members;
mod service;
mod status;
mod system;
mod ui;
pub mod version;
mod why;

use crate::call::Command;

/// All commands, by name.
pub fn all() -> Vec<&'static Command> {
    let mut all = vec![
        &agent::COMMAND,
        &alloc_exec::COMMAND,
        &agent_info::INFO,
        &alloc_change::RESTART,
        &alloc_change::SIGNAL,
        &alloc_checks::COMMAND,
        &alloc_fs::COMMAND,
        &alloc_logs::COMMAND,
        &alloc_status::COMMAND,
        &alloc_stop::COMMAND,
        &check::COMMAND,
        &config_validate::COMMAND,
        &deployment::LIST,
        &deployment::STATUS,
        &deployment_change::FAIL,
        &deployment_change::PAUSE,
        &deployment_change::PROMOTE,
        &deployment_change::PROMOTE_JOB,
        &deployment_change::RESUME,
        &eval_list::DELETE,
        &eval_list::LIST,
        &eval_status::COMMAND,
        &events::COMMAND,
        &fmt::COMMAND,
        &history_alloc::COMMAND,
        &job_allocs::COMMAND,
        &job_deployments::COMMAND,
        &job_dispatch::COMMAND,
        &job_eval::COMMAND,
        &job_history::COMMAND,
        &job_init::COMMAND,
        &job_inspect::COMMAND,
        &job_periodic_force::COMMAND,
        &job_plan::COMMAND,
        &job_restart::COMMAND,
        &job_revert::COMMAND,
        &job_run::COMMAND,
        &job_scale::EVENTS,
        &job_scale::SCALE,
        &job_start::COMMAND,
        &job_status::COMMAND,
        &job_stop::COMMAND,
        &job_tag::APPLY,
        &job_tag::UNSET,
        &job_validate::COMMAND,
        &monitor::COMMAND,
        &monitor::EXPORT,
        &namespace::APPLY,
        &namespace::DELETE,
        &namespace::INSPECT,
        &namespace::LIST,
        &namespace::STATUS,
        &node_change::DRAIN,
        &node_change::ELIGIBILITY,
        &node_config::COMMAND,
        &node_meta::APPLY,
        &node_meta::READ,
        &node_pool::APPLY,
        &node_pool::DELETE,
        &node_pool::INFO,
        &node_pool::INIT,
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
        &operator_metrics::COMMAND,
        &operator_raft::LIST_PEERS,
        &operator_raft::REMOVE_PEER,
        &operator_raft::TRANSFER_LEADERSHIP,
        &operator_scheduler::GET_CONFIG,
        &operator_scheduler::SET_CONFIG,
        &operator_snapshot::INSPECT,
        &operator_snapshot::RESTORE,
        &operator_snapshot::SAVE,
        &scaling_policy::INFO,
        &scaling_policy::LIST,
        &server_force_leave::COMMAND,
        &server_join::COMMAND,
        &server_members::COMMAND,
        &service::DELETE,
        &service::INFO,
        &service::LIST,
        &status::COMMAND,
        &system::GC,
        &system::RECONCILE,
        &ui::COMMAND,
        &version::COMMAND,
        &why::ALLOC,
        &why::EVAL,
        &why::JOB,
    ];
    all.sort_by_key(|command| command.name);
    all
}

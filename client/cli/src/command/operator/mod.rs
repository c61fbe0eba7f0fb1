//! Managing the servers.

mod api;
mod autopilot;
mod client_state;
mod debug;
mod doctor;
mod gossip;
mod history;
mod log;
mod metrics;
mod raft;
mod root_keyring;
mod scheduler;
mod snapshot;
mod stopped;
mod upgrade;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &api::COMMAND,
    &autopilot::GET_CONFIG,
    &autopilot::SET_CONFIG,
    &autopilot::HEALTH,
    &client_state::COMMAND,
    &debug::COMMAND,
    &doctor::COMMAND,
    &gossip::GENERATE,
    &gossip::INSTALL,
    &gossip::LIST,
    &gossip::REMOVE,
    &gossip::USE,
    &history::STATUS,
    &history::VERIFY,
    &history::EXPORT,
    &log::COMMAND,
    &metrics::COMMAND,
    &raft::INFO,
    &raft::LIST_PEERS,
    &raft::REMOVE_PEER,
    &raft::TRANSFER_LEADERSHIP,
    &root_keyring::LIST,
    &root_keyring::ROTATE,
    &root_keyring::REMOVE,
    &scheduler::GET_CONFIG,
    &scheduler::SET_CONFIG,
    &snapshot::SAVE,
    &snapshot::INSPECT,
    &snapshot::RESTORE,
    &snapshot::STATE,
    &snapshot::REDACT_FILE,
    &stopped::LOGS,
    &stopped::STATE,
    &upgrade::CHECK,
    &upgrade::FINISH,
];

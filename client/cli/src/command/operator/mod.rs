//! Managing the servers.

mod api;
mod autopilot;
mod gossip;
mod log;
mod metrics;
mod raft;
mod scheduler;
mod snapshot;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &api::COMMAND,
    &autopilot::GET_CONFIG,
    &autopilot::SET_CONFIG,
    &autopilot::HEALTH,
    &gossip::COMMAND,
    &log::COMMAND,
    &metrics::COMMAND,
    &raft::LIST_PEERS,
    &raft::REMOVE_PEER,
    &raft::TRANSFER_LEADERSHIP,
    &scheduler::GET_CONFIG,
    &scheduler::SET_CONFIG,
    &snapshot::SAVE,
    &snapshot::INSPECT,
    &snapshot::RESTORE,
];

//! Sinks of the event stream: where the leader sends it by itself.

mod apply;
mod show;
mod turn;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &show::LIST,
    &show::STATUS,
    &apply::COMMAND,
    &turn::DELETE,
    &turn::PAUSE,
    &turn::RESUME,
    &turn::RETRY,
    &turn::SKIP,
];

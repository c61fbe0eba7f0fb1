//! Turns API objects into text, in the layouts of Nomad's command line. Pure: clock, zone and colours are in the style.

pub(crate) mod acl;
pub(crate) mod alloc;
pub(crate) mod causes;
pub(crate) mod checks;
pub(crate) mod checkup;
pub(crate) mod cursor;
pub(crate) mod decisions;
pub(crate) mod deployment;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod history;
pub(crate) mod job;
pub(crate) mod log;
pub(crate) mod login;
pub(crate) mod metrics;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod operator;
pub(crate) mod past;
pub(crate) mod placement;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod scaling;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod sink;
pub(crate) mod storage;
pub(crate) mod task;
pub(crate) mod usage;
pub(crate) mod variable;
pub(crate) mod whatif;
pub(crate) mod why;

use std::fmt::Display;

/// A cell or value out of anything that can be shown.
fn cell(value: impl Display) -> String {
    value.to_string()
}

/// `1 node`, `2 nodes`.
pub(crate) fn plural(count: impl Display + PartialEq + From<u8>, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1.into() { "" } else { "s" })
}

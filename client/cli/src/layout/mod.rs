//! Turns API objects into text, in the layouts of Nomad's command line. Pure: clock, zone and colours are in the style.

pub mod alloc;
pub mod checks;
pub mod deployment;
pub mod devices;
pub mod eval;
pub mod files;
pub mod history;
pub mod job;
pub mod log;
pub mod metrics;
pub mod namespace;
pub mod node;
pub mod operator;
pub mod plan;
pub mod pool;
pub mod scaling;
pub mod server;
pub mod service;
pub mod task;
pub mod usage;
pub mod why;

use std::fmt::Display;

/// A cell or value out of anything that can be shown.
fn cell(value: impl Display) -> String {
    value.to_string()
}

/// `1 node`, `2 nodes`.
fn plural(count: i64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

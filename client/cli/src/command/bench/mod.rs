//! Load, and what came of it.

mod cluster;
mod plan;

use std::time::Duration;

use crate::call::{Call, Command, Failure};
use crate::flags::Flag;

pub(super) const COMMANDS: &[&Command] = &[&cluster::COMMAND, &plan::COMMAND];

/// A span that a flag gives.
///
/// # Errors
/// When it is none.
fn span(call: &Call, flag: &Flag<base::Duration>) -> Result<Option<Duration>, Failure> {
    // One below zero is out of every bound, too.
    let read = |span: base::Duration| Duration::from_nanos(u64::try_from(span.0).unwrap_or(u64::MAX));
    Ok(call.args.parsed(flag)?.map(read))
}

//! Reads what happens in another cluster, a Nomad above all, and has it written into a log of ours.
//!
//! The other cluster is only ever read. Its event stream says at once what changed, but forgets; its lists are whole, but do
//! not say what was in between. [`Recorder`] subscribes first, lists then, and goes on with both. What it reads becomes
//! commands (`Observe`): what of it is new is decided by the rules, on the state that is recorded. What could not be
//! read any more is an explicit gap in the log. Read `docs/record.md` for what is recorded from which call.

#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod document;
mod list;
mod recorder;
mod report;

use std::future::Future;
use std::sync::Arc;

use model::Command;
use state::State;

pub use recorder::{Recorder, Settings};
pub use report::Report;

/// The log that is written to.
pub trait Log: Send {
    /// The state as the last command left it.
    fn state(&self) -> Arc<State>;

    /// Returns once the command is in the log and in the state.
    fn submit(&mut self, command: Command) -> impl Future<Output = Result<(), LogError>> + Send;
}

/// Nothing can be written any more.
#[derive(Debug, thiserror::Error)]
#[error("what was read cannot be recorded: {0}")]
pub struct LogError(pub String);

/// Why a recorder gives up. Everything else it tries again.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The other cluster does not let it read, or answers what Nomad's API does not.
    #[error("cannot read {what}: {source}")]
    Read { what: &'static str, source: sdk::Error },
    #[error(transparent)]
    Log(#[from] LogError),
}

//! What hooks of allocations and of tasks have in common: their state on disk, and how they fail.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::future::BoxFuture;
use metrics::Samples;
use serde::{Deserialize, Serialize};

/// What a hook remembers across restarts of the agent. Stored as JSON after the hook has run, so that older and newer
/// agents read each other's: fields are only ever added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookState {
    /// The hook has nothing more to do before a start, not even after a restart of the agent.
    pub done: bool,
    /// Variables that the hook adds to the environment of the task, also when it is not run again.
    pub env: BTreeMap<String, String>,
    /// Whatever else the hook needs.
    pub values: BTreeMap<String, String>,
}

/// The names of the metrics of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepMetrics {
    pub success: &'static str,
    pub failed: &'static str,
    pub elapsed: &'static str,
}

impl StepMetrics {
    /// Counts a step, all its hooks together.
    pub fn count(&self, counters: &Samples, began: Instant, succeeded: bool) {
        let now = Instant::now();
        counters.happened(if succeeded { self.success } else { self.failed }, now);
        counters.took(self.elapsed, now, now.duration_since(began));
    }
}

/// A step that failed. Displayed as `<hook>: <message>`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{hook}: {message}")]
pub struct HookError {
    pub hook: &'static str,
    pub message: String,
    /// The start is tried again under the restart policy of the task.
    pub recoverable: bool,
    /// The task is ended with this message as the reason, and has failed.
    pub kills: bool,
    /// The hook has added an event of its own that says it.
    pub reported: bool,
}

impl HookError {
    pub fn fatal(hook: &'static str, message: impl std::fmt::Display) -> HookError {
        HookError { hook, message: message.to_string(), recoverable: false, kills: false, reported: false }
    }

    pub fn recoverable(hook: &'static str, message: impl std::fmt::Display) -> HookError {
        HookError { recoverable: true, ..HookError::fatal(hook, message) }
    }

    pub fn kills(hook: &'static str, message: impl std::fmt::Display) -> HookError {
        HookError { kills: true, ..HookError::fatal(hook, message) }
    }
}

pub type HookFuture<'a> = BoxFuture<'a, Result<(), HookError>>;

/// For steps at which a hook has nothing to do, or nothing to wait for.
pub fn ready<'a>(result: Result<(), HookError>) -> HookFuture<'a> {
    Box::pin(std::future::ready(result))
}

/// For steps whose failure stops nobody.
pub fn log_failure(alloc_id: &str, step: &str, result: Result<(), HookError>) {
    if let Err(error) = result {
        tracing::warn!(alloc = alloc_id, step, %error, "a hook failed");
    }
}

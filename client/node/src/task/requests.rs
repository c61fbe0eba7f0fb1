//! What others can ask of a task.

use nix::sys::signal::Signal;
use tokio::sync::oneshot;

use super::events::KillReason;

/// The order to end for good. It is never taken back.
#[derive(Clone, Debug, Default)]
pub struct Kill {
    pub reason: KillReason,
    /// The task's `shutdown_delay` is not waited for.
    pub at_once: bool,
}

/// What others may ask of a running task.
#[derive(Debug)]
pub enum TaskRequest {
    /// `revive` also starts a task that has ended.
    Restart {
        reason: String,
        revive: bool,
        reply: oneshot::Sender<Result<(), String>>,
    },
    Signal {
        signal: Signal,
        name: String,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

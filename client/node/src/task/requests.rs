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

/// Answered once the task runs again, or waits for other tasks before it does.
pub type RestartReply = oneshot::Sender<Result<(), String>>;

/// What others may ask of a running task.
#[derive(Debug)]
pub enum TaskRequest {
    /// `revive` also starts a task that has ended. A restart of an `unhealthy` task counts as its failure.
    Restart {
        reason: String,
        revive: bool,
        unhealthy: bool,
        reply: RestartReply,
    },
    /// Ends for good, as failed.
    Fail {
        reason: String,
    },
    Signal {
        signal: Signal,
        name: String,
        reply: oneshot::Sender<Result<(), String>>,
    },
}

//! An allocation as the rest of the agent sees it.

use std::sync::{Arc, Mutex, PoisonError};

use model::document::Allocation;
use nix::sys::signal::Signal;
use tokio::sync::{mpsc, oneshot, watch};

use crate::layout::AllocDir;
use crate::task::states::TaskStates;

/// Commands that one allocation has not taken yet; more are rejected, or wait where they come from.
pub const COMMANDS_MAX: usize = 32;

pub type Reply = oneshot::Sender<Result<(), String>>;

/// What others can ask of an allocation.
#[derive(Debug)]
pub enum AllocCommand {
    Update(Arc<Allocation>),
    /// None for all tasks that run; `revive` for all tasks, ended ones too.
    Restart {
        task: Option<String>,
        revive: bool,
        reply: Reply,
    },
    /// All tasks that run, because a check of the group's services fails; it counts as their failure.
    RestartUnhealthy {
        reason: String,
        reply: Reply,
    },
    /// None for all tasks that run.
    Signal {
        task: Option<String>,
        signal: Signal,
        name: String,
        reply: Reply,
    },
    /// End all tasks and remove everything.
    Destroy {
        done: oneshot::Sender<()>,
    },
}

/// How far an allocation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocStatus {
    pub client_status: String,
    /// All tasks have ended for good, and the last hooks have run.
    pub done: bool,
    /// When that was seen, in nanoseconds; orders garbage collection.
    pub done_at: i64,
}

/// The hook that sets an allocation up now; empty if none does.
#[derive(Debug, Default)]
pub struct CurrentHook(Mutex<&'static str>);

impl CurrentHook {
    pub fn name(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, name: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = name;
    }
}

#[derive(Clone, Debug)]
pub struct AllocHandle {
    pub commands: mpsc::Sender<AllocCommand>,
    pub status: watch::Receiver<AllocStatus>,
    pub alloc: watch::Receiver<Arc<Allocation>>,
    pub tasks: Arc<TaskStates>,
    pub dir: AllocDir,
    pub current_hook: Arc<CurrentHook>,
}

impl AllocHandle {
    /// # Errors
    /// The error of the task, or when the allocation is busy or gone.
    pub async fn ask(&self, command: impl FnOnce(Reply) -> AllocCommand) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        self.commands.try_send(command(reply)).map_err(|_| "the allocation is busy or gone".to_string())?;
        answer.await.unwrap_or_else(|_| Err("the allocation is gone".to_string()))
    }

    /// Returns when the tasks have ended and everything is removed.
    pub async fn destroy(&self) {
        let (done, removed) = oneshot::channel();
        if self.commands.send(AllocCommand::Destroy { done }).await.is_ok() {
            removed.await.ok();
        }
    }

    pub fn is_done(&self) -> bool {
        self.status.borrow().done
    }
}

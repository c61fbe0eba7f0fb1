//! An allocation as the rest of the agent sees it.

use std::sync::Arc;

use model::document::Allocation;
use nix::sys::signal::Signal;
use tokio::sync::{mpsc, oneshot, watch};

use crate::layout::AllocDir;
use crate::task::states::TaskStates;

/// What waits for one allocation at most; more is refused, or waits where it comes from.
pub const COMMANDS_MAX: usize = 32;

pub type Reply = oneshot::Sender<Result<(), String>>;

/// What an allocation can be told.
#[derive(Debug)]
pub enum Command {
    Update(Arc<Allocation>),
    /// None for all tasks that run; `revive` for all tasks, ended ones too.
    Restart {
        task: Option<String>,
        revive: bool,
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

/// What is known of an allocation from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub client_status: String,
    /// All task loops have ended.
    pub done: bool,
    /// When that was seen, in nanoseconds; orders garbage collection.
    pub done_at: i64,
}

#[derive(Clone, Debug)]
pub struct AllocHandle {
    pub commands: mpsc::Sender<Command>,
    pub facts: watch::Receiver<Facts>,
    pub alloc: watch::Receiver<Arc<Allocation>>,
    pub tasks: Arc<TaskStates>,
    pub dir: AllocDir,
}

impl AllocHandle {
    /// # Errors
    /// In the words of the task, or when the allocation is busy or gone.
    pub async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        self.commands.try_send(command(reply)).map_err(|_| "the allocation is busy or gone".to_string())?;
        answer.await.unwrap_or_else(|_| Err("the allocation is gone".to_string()))
    }

    /// Returns when the tasks have ended and everything is removed.
    pub async fn destroy(&self) {
        let (done, removed) = oneshot::channel();
        if self.commands.send(Command::Destroy { done }).await.is_ok() {
            removed.await.ok();
        }
    }

    pub fn is_done(&self) -> bool {
        self.facts.borrow().done
    }
}

//! The task's `shutdown_delay`: the time between the order to end and the signal, so that its clients can leave.

use std::time::Duration;

use super::{TaskContext, TaskHook};
use crate::hook::HookFuture;
use crate::task::events;
use crate::task::parts::TaskParts;

#[derive(Debug)]
pub struct ShutdownDelay;

impl TaskHook for ShutdownDelay {
    fn name(&self) -> &'static str {
        "shutdown_delay"
    }

    fn prekill<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        Box::pin(async {
            let alloc = task.alloc();
            let delay = TaskParts::find(&alloc, &task.name).map(|parts| parts.task.shutdown_delay.to_std());
            if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
                wait(task, delay).await;
            }
            Ok(())
        })
    }
}

/// Ends early with the task, or when the order becomes urgent.
async fn wait(task: &TaskContext, delay: Duration) {
    let mut kill = task.kill.clone();
    if kill.borrow().as_ref().is_some_and(|kill| kill.at_once) {
        task.tasks.add_event(&task.name, events::skipping_shutdown_delay(delay.into()));
        return;
    }
    task.tasks.add_event(&task.name, events::waiting_for_shutdown_delay(delay.into()));
    let running = task.tasks.running(&task.name);
    let ended = async {
        if let Some(running) = &running {
            running.wait().await;
        }
    };
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = ended => {}
        _ = kill.wait_for(|kill| kill.as_ref().is_some_and(|kill| kill.at_once)) => {}
    }
}

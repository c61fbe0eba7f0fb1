//! The directories of the task.

use super::{StartRequest, TaskContext, TaskHook};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task::events;

/// Remembers that the event was sent.
const ANNOUNCED: &str = "announced";

#[derive(Debug)]
pub struct TaskDirHook;

impl TaskHook for TaskDirHook {
    fn name(&self) -> &'static str {
        "task_dir"
    }

    /// Never done: a task may have removed its directories. Those that exist stay as they are.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        // It is news when the task starts first, not whenever it starts again.
        if state.values.insert(ANNOUNCED.to_string(), "true".to_string()).is_none() {
            task.tasks.add_event(&task.name, events::building_directory());
        }
        let built = task.alloc_dir.build_task(&task.name);
        ready(built.map(|dir| start.dir = dir).map_err(|error| HookError::fatal(self.name(), error)))
    }
}

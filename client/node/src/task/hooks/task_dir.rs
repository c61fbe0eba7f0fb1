//! The directories of the task.

use super::{StartRequest, TaskContext, TaskHook};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task::events;

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
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        task.tasks.add_event(&task.name, events::building_directory());
        let built = task.alloc_dir.build_task(&task.name);
        ready(built.map(|dir| start.dir = dir).map_err(|error| HookError::fatal(self.name(), error)))
    }
}

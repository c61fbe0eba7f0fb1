//! The directories of the task.

use model::document::Allocation;

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::layout::{SECRETS_MIB, TaskDir};
use crate::task::events;

const NAME: &str = "task_dir";

/// Remembers that the event was sent.
const ANNOUNCED: &str = "announced";

#[derive(Debug)]
pub struct TaskDirHook;

impl TaskHook for TaskDirHook {
    fn name(&self) -> &'static str {
        NAME
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
        ready(build(task, &start.alloc).map(|dir| start.dir = dir))
    }
}

fn build(task: &TaskContext, alloc: &Allocation) -> Result<TaskDir, HookError> {
    let resources = parts(alloc, task, NAME)?.task.resources.as_ref();
    let given = resources.and_then(|resources| resources.secrets_mb).filter(|mib| *mib > 0);
    let owner = task.context.users.of(&alloc.id, &task.name);
    let dir = task.alloc_dir.build_task(&task.name, owner).map_err(|error| HookError::fatal(NAME, error))?;
    let mounted = task.alloc_dir.mount_task(&dir, owner, given.map_or(SECRETS_MIB, |mib| mib as u64));
    mounted.map_err(|error| HookError::recoverable(NAME, error))?;
    Ok(dir)
}

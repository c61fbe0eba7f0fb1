//! The HTTP API on a socket in the secrets directory of the task, for as long as it lives.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::identities::{Reader, used};
use super::{StartRequest, TaskContext, TaskHook, environment, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task_api;

const NAME: &str = "api";

#[derive(Debug, Default)]
pub struct TaskApiHook(Option<AbortOnDropHandle<()>>);

impl TaskHook for TaskApiHook {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Never done: the next agent listens anew, and the task may have removed the socket.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        state: &'a mut HookState,
    ) -> HookFuture<'a> {
        let listening = self.listen(task, start);
        if listening.is_ok() && self.0.is_some() {
            state.env = address(task, start).into_iter().collect();
        }
        ready(listening)
    }

    /// The task goes on without it where it cannot be made: it may have been told another address.
    fn restored<'a>(&'a mut self, task: &'a TaskContext, _: &'a mut HookState) -> HookFuture<'a> {
        let mut start = StartRequest::new(task);
        let alloc = Arc::clone(&start.alloc);
        ready(parts(&alloc, task, NAME).and_then(|parts| {
            start.environment = environment::of_task(&task.context, &task.alloc_dir, &alloc, parts);
            self.listen(task, &start)
        }))
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        if self.0.take().is_some() {
            task_api::remove(&task.alloc_dir.task(&task.name).secrets);
        }
        ready(Ok(()))
    }
}

impl TaskApiHook {
    fn listen(&mut self, task: &TaskContext, start: &StartRequest) -> Result<(), HookError> {
        let Some(api) = task.context.task_api.get() else { return Ok(()) };
        let parts = parts(&start.alloc, task, NAME)?;
        let owner = Reader::of(task, parts.task, start).owner();
        // Without a token nobody gets an answer.
        let mode = if owner.is_some() { 0o600 } else { 0o666 };
        let listener = task_api::bind(&start.dir.secrets, owner, mode);
        let listener = listener.map_err(|error| HookError::fatal(NAME, error))?;
        let serving = tokio::spawn(task_api::accept(listener, Arc::clone(api)));
        self.0 = Some(AbortOnDropHandle::new(serving));
        Ok(())
    }
}

/// Where the task finds it, if the task sees a token.
fn address(task: &TaskContext, start: &StartRequest) -> Option<(String, String)> {
    let parts = parts(&start.alloc, task, NAME).ok()?;
    let secrets = start.environment.value("NOMAD_SECRETS_DIR")?;
    let sees_token = !used(parts.task).is_empty();
    sees_token.then(|| ("NOMAD_UNIX_ADDR".to_string(), format!("unix://{secrets}/{}", task_api::SOCKET)))
}

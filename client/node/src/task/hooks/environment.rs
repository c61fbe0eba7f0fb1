//! The environment of the task, and the variables that its texts may use.

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::driver::FsIsolation;
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::task::environment::{Environment, Sources};

#[derive(Debug)]
pub struct EnvironmentHook;

impl TaskHook for EnvironmentHook {
    fn name(&self) -> &'static str {
        "environment"
    }

    /// Never done: each start sees the newest node, job and metadata.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        ready(build(self.name(), task, start))
    }
}

fn build(hook: &'static str, task: &TaskContext, start: &mut StartRequest) -> Result<(), HookError> {
    let alloc = start.alloc.clone();
    let parts = parts(&alloc, task, hook)?;
    let (node, context) = (task.context.node(), &task.context);
    let isolation = context.drivers.capabilities(&parts.task.driver).map(|can| can.fs_isolation);
    let mut environment = Environment::build(&Sources {
        alloc: &alloc,
        job: parts.job,
        group: parts.group,
        task: parts.task,
        node: &node,
        region: &context.settings.region,
        alloc_dir: &task.alloc_dir,
        task_dir: &start.dir,
        isolation: isolation.unwrap_or(FsIsolation::None),
        inherited: &context.inherited,
    });
    // What earlier hooks have added stays.
    environment.variables.extend(std::mem::take(&mut start.environment.variables));
    start.environment = environment;
    Ok(())
}

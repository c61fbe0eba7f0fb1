//! The environment of the task, and the variables that its texts may use.

use model::document::{Allocation, Job, Task, TaskGroup};

use super::{StartRequest, TaskContext, TaskHook, parts};
use crate::context::Context;
use crate::driver::FsIsolation;
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::layout::AllocDir;
use crate::task::environment::{self, Environment, Sources};
use crate::task::parts::TaskParts;

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
    let mut environment = of_task(&task.context, &task.alloc_dir, &alloc, parts);
    // What earlier hooks have added stays.
    environment.variables.extend(std::mem::take(&mut start.environment.variables));
    start.environment = environment;
    Ok(())
}

/// Of a task in this version of its allocation, without what hooks add.
pub(crate) fn of_task(
    context: &Context,
    alloc_dir: &AllocDir,
    alloc: &Allocation,
    TaskParts { job, group, task }: TaskParts<'_>,
) -> Environment {
    let isolation = context.drivers.capabilities(&task.driver).map(|can| can.fs_isolation);
    let inside = context.networks.find(&alloc.id).map(|network| environment::inside(alloc, &network.status));
    let mut environment = Environment::build(&Sources {
        alloc,
        job,
        group,
        task,
        node: &context.node(),
        region: &context.settings.region,
        alloc_dir,
        task_dir: &alloc_dir.task(&task.name),
        isolation: isolation.unwrap_or(FsIsolation::None),
        inherited: &context.inherited,
    });
    environment.variables.extend(inside.unwrap_or_default());
    environment
}

/// What texts of the group itself may name: what is the same for all of its tasks.
pub(crate) fn of_group(
    context: &Context,
    alloc_dir: &AllocDir,
    alloc: &Allocation,
    job: &Job,
    group: &TaskGroup,
) -> Environment {
    let mut environment =
        of_task(context, alloc_dir, alloc, TaskParts { job, group, task: &Task::default() });
    for name in ["NOMAD_TASK_NAME", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR"] {
        environment.variables.remove(name);
    }
    environment
}

//! Registers the services of the task while it runs, and runs their checks.

use std::sync::Arc;

use executor::Exit;

use super::{StartRequest, TaskContext, TaskHook, environment, parts};
use crate::hook::{HookError, HookFuture, HookState, ready};
use crate::services::{self, Checks, Owner, Providers, Restarter, Workload};
use crate::task::events;
use crate::task::parts::TaskParts;

/// Without a state of its own: what is registered is stored by the registry.
#[derive(Debug, Default)]
pub struct TaskServices {
    checks: Checks,
    is_registered: bool,
}

impl TaskServices {
    fn register(&mut self, task: &TaskContext, start_over: bool) -> Result<(), HookError> {
        let alloc = task.alloc();
        let Some(parts) = TaskParts::find(&alloc, &task.name) else { return Ok(()) };
        let network = task.tasks.task(&task.name).network;
        let env = environment::of_task(&task.context, &task.alloc_dir, &alloc, parts);
        let inside = task.context.networks.find(&alloc.id).map(|network| network.status);
        let networks = (network.as_ref(), inside.as_ref());
        let wanted =
            services::of_task(&alloc, &task.name, &parts.task.services, networks, &env, providers(task));
        let wanted = wanted.map_err(|error| {
            // The task runs: it goes on without them, and says so.
            let error = HookError::fatal(self.name(), error);
            task.tasks.add_event(&task.name, events::hook_message(&error.to_string()));
            error
        })?;
        let of = Workload { alloc_id: &alloc.id, namespace: &alloc.namespace, task: &task.name };
        task.context.services.set(of, &owner(task), &mut self.checks, wanted, start_over);
        self.is_registered = true;
        Ok(())
    }

    fn remove(&mut self, task: &TaskContext) -> HookFuture<'static> {
        let alloc = task.alloc();
        let of = Workload { alloc_id: &alloc.id, namespace: &alloc.namespace, task: &task.name };
        task.context.services.remove(of, &owner(task), &mut self.checks);
        self.is_registered = false;
        ready(Ok(()))
    }
}

fn providers(task: &TaskContext) -> Providers {
    Providers::of(&task.context.settings)
}

fn owner(task: &TaskContext) -> Arc<Owner> {
    Arc::new(Owner {
        context: Arc::clone(&task.context),
        alloc_id: task.alloc.borrow().id.clone(),
        task: task.name.clone(),
        tasks: Arc::clone(&task.tasks),
        restarter: Restarter::Task(task.requests.clone()),
    })
}

impl TaskHook for TaskServices {
    fn name(&self) -> &'static str {
        "task_services"
    }

    /// What cannot be done is refused before the task runs.
    fn prestart<'a>(
        &'a mut self,
        task: &'a TaskContext,
        start: &'a mut StartRequest,
        _: &'a mut HookState,
    ) -> HookFuture<'a> {
        let name = self.name();
        let own_network = task.context.networks.find(&start.alloc.id).is_some();
        ready(parts(&start.alloc, task, name).and_then(|parts| {
            services::refused(&parts.task.services, own_network, providers(task))
                .map_err(|error| HookError::fatal(name, error))
        }))
    }

    fn restored<'a>(&'a mut self, task: &'a TaskContext, _: &'a mut HookState) -> HookFuture<'a> {
        ready(self.register(task, false))
    }

    fn poststart<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        ready(self.register(task, true))
    }

    fn update<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        ready(if self.is_registered { self.register(task, false) } else { Ok(()) })
    }

    fn prerestart<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.remove(task)
    }

    fn prekill<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.remove(task)
    }

    fn exited<'a>(&'a mut self, task: &'a TaskContext, _: &'a Exit) -> HookFuture<'a> {
        self.remove(task)
    }

    fn stop<'a>(&'a mut self, task: &'a TaskContext) -> HookFuture<'a> {
        self.remove(task)
    }
}
